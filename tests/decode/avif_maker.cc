#include "tests/decode/avif_maker.h"

#include <algorithm>

namespace stoker {
namespace {

AvifBytes number(uint64_t value, int bytes) {
  AvifBytes out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<uint8_t>(value >> 8 * i));
  return out;
}

}  // namespace

AvifBytes operator+(AvifBytes left, const AvifBytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

AvifBytes be16(uint32_t value) { return number(value, 2); }
AvifBytes be32(uint32_t value) { return number(value, 4); }
AvifBytes be64(uint64_t value) { return number(value, 8); }
AvifBytes avif_text(const std::string& text) { return {text.begin(), text.end()}; }

AvifBytes avif_box(const std::string& type, const AvifBytes& content) {
  return be32(static_cast<uint32_t>(content.size()) + 8) + avif_text(type) + content;
}

AvifBytes avif_full_box(const std::string& type, int version, const AvifBytes& content) {
  return avif_box(type, be32(static_cast<uint32_t>(version) << 24) + content);
}

AvifBytes content_of(const AvifBytes& file, const std::string& type) {
  const auto at = std::search(file.begin(), file.end(), type.begin(), type.end());
  if (at - file.begin() < 4 || at == file.end()) return {};
  size_t size = 0;
  for (int i = -4; i < 0; ++i) size = size << 8 | at[i];
  return {at + 4, at - 4 + static_cast<ptrdiff_t>(size)};
}

AvifBytes avif_name(uint32_t item, const std::string& type) {
  return avif_full_box("infe", 2, be16(item) + be16(0) + avif_text(type) + AvifBytes{0});
}

AvifBytes avif_size(Size size) {
  return avif_full_box(
      "ispe", 0,
      be32(static_cast<uint32_t>(size.width)) + be32(static_cast<uint32_t>(size.height)));
}

AvifParts::AvifParts(const AvifBytes& data, Size size, const AvifBytes& coding)
    : coded(data),
      names(avif_name(1, "av01")),
      places(avif_full_box("iloc", 0,
                           be16(0x4400) + be16(1) + be16(1) + be16(0) + be16(1) + be32(kCodedAt) +
                               be32(static_cast<uint32_t>(data.size())))),
      properties(avif_size(size) + avif_box("av1C", coding)),
      uses(be16(1) + AvifBytes{2, 1, 0x82}) {}

AvifBytes AvifParts::file() const {
  AvifBytes meta = handler + primary + avif_full_box("iinf", 0, be16(name_count) + names) + places;
  if (!references.empty()) meta = meta + avif_full_box("iref", 0, references);
  meta = meta + avif_box("iprp", avif_box("ipco", properties) +
                                     avif_full_box("ipma", 0, be32(use_count) + uses));
  AvifBytes head = avif_box("ftyp", brands);
  head = head + avif_box("free", AvifBytes(kCodedAt - 16 - head.size(), 0));
  return head + avif_box("mdat", coded) + before_meta + avif_full_box("meta", 0, meta + more_meta);
}

}  // namespace stoker
