#include "tools/data/tar_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace stoker {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameBytes = 100, kPrefixBytes = 155;
constexpr uint64_t kMaxMember = (uint64_t{1} << 33) - 1;  // 11 octal digits

// A name as a ustar header holds it: `prefix`, a slash and `name`.
struct UstarName {
  std::string_view prefix, name;
};

size_t padded(size_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

std::string padding(size_t bytes) { return std::string(padded(bytes) - bytes, '\0'); }

std::optional<UstarName> ustar_name(std::string_view name) {
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  if (!std::all_of(name.begin(), name.end(), is_ascii)) return std::nullopt;
  if (name.size() <= kNameBytes) return UstarName{"", name};
  // The first slash that leaves a name which fits; a later one only makes the prefix longer.
  const size_t slash = name.find('/', name.size() - kNameBytes - 1);
  const bool fits = slash != std::string_view::npos && slash > 0 && slash <= kPrefixBytes &&
                    slash + 1 < name.size();
  if (!fits) return std::nullopt;
  return UstarName{name.substr(0, slash), name.substr(slash + 1)};
}

// Returns "LENGTH path=NAME\n", whose length counts its own digits.
std::string path_record(std::string_view name) {
  const size_t rest = std::string_view(" path=\n").size() + name.size();
  size_t length = rest;
  while (length != rest + std::to_string(length).size()) {
    length = rest + std::to_string(length).size();
  }
  return fmt::format("{} path={}\n", length, name);
}

std::string header(const UstarName& name, char kind, size_t bytes) {
  std::string block(kBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  put(0, name.name);
  put(100, "0000444");
  put(108, "0000000");  // user
  put(116, "0000000");  // group
  put(124, fmt::format("{:011o}", bytes));
  put(136, "00000000000");  // time
  put(148, "        ");     // the checksum counts itself as spaces
  block[156] = kind;
  put(257, std::string_view("ustar\0", 6));
  put(263, "00");
  put(329, "0000000");  // device
  put(337, "0000000");
  put(345, name.prefix);
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0u, [](unsigned total, char c) {
    return total + static_cast<uint8_t>(c);
  });
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

// Returns what stands in the archive before a member's content.
std::string headers(std::string_view name, size_t bytes) {
  if (const auto whole = ustar_name(name)) return header(*whole, '0', bytes);
  const std::string record = path_record(name);
  // Only readers that do not know extended headers see these two names.
  std::string shortened(name.substr(0, kNameBytes));
  std::replace_if(
      shortened.begin(), shortened.end(), [](char c) { return static_cast<uint8_t>(c) >= 0x80; },
      '?');
  return header({"", "././@PaxHeader"}, 'x', record.size()) + record + padding(record.size()) +
         header({"", shortened}, '0', bytes);
}

std::string member_name(const ShardSample& sample, std::string_view extension) {
  return fmt::format("{}.{}", sample.key, extension);
}

}  // namespace

int64_t TarShardWriter::bytes_with(const ShardSample& sample) const {
  const auto member = [&](std::string_view extension, size_t bytes) {
    return headers(member_name(sample, extension), bytes).size() + padded(bytes);
  };
  const size_t more = member(sample.extension, sample.image.size()) +
                      member("cls", std::to_string(sample.label).size()) + 2 * kBlock;
  return bytes_ + static_cast<int64_t>(more);
}

void TarShardWriter::add(const ShardSample& sample) {
  add_member(member_name(sample, sample.extension), sample.image);
  const std::string label = std::to_string(sample.label);
  add_member(member_name(sample, "cls"),
             {reinterpret_cast<const uint8_t*>(label.data()), label.size()});
}

void TarShardWriter::add_member(const std::string& name, std::span<const uint8_t> content) {
  if (content.size() > kMaxMember) {
    throw std::runtime_error(
        fmt::format("cannot write {}: {} has {} bytes, a member has at most {}", path_, name,
                    content.size(), kMaxMember));
  }
  write(headers(name, content.size()));
  write({reinterpret_cast<const char*>(content.data()), content.size()});
  write(padding(content.size()));
}

void TarShardWriter::write(std::string_view bytes) {
  file_.write_at(static_cast<uint64_t>(bytes_), bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
}

int64_t TarShardWriter::finish() {
  write(std::string(2 * kBlock, '\0'));
  file_.finish();
  return bytes_;
}

}  // namespace stoker
