#include "decode/codec/pnm_file.h"

#include <cstring>
#include <string>

namespace stoker {
namespace {

constexpr size_t kMagic = 2;
constexpr int kMostDigits = 10;  // of a number in the header, as in Pillow

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Reads the numbers of the header as Pillow does: a comment may stand anywhere, also within a
// number, and one blank ends a number.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Returns a status that is not ok for what is no number from 1 to `most`.
  DecodeStatus number(int64_t most, int64_t& value) {
    const size_t begin = at_;
    value = 0;
    int digits = 0;
    for (bool ended = false; !ended;) {
      if (at_ == bytes_.size()) return cut_short();
      const uint8_t c = bytes_[at_++];
      if (c == '#') {
        skip_comment();
      } else if (is_space(c)) {
        ended = digits > 0;
      } else if (c < '0' || c > '9' || ++digits > kMostDigits) {
        return bad(begin);
      } else {
        value = 10 * value + (c - '0');
      }
    }
    return value >= 1 && value <= most ? DecodeStatus{} : bad(begin);
  }
  int64_t at() const { return static_cast<int64_t>(at_); }

 private:
  DecodeStatus cut_short() const {
    return {DecodeCode::truncated, static_cast<int64_t>(bytes_.size()), "the file ends too early"};
  }
  static DecodeStatus bad(size_t at) {
    return {DecodeCode::corrupt, static_cast<int64_t>(at), "a bad PGM or PPM header"};
  }
  void skip_comment() {
    while (at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
    if (at_ < bytes_.size()) ++at_;
  }

  const std::span<const uint8_t> bytes_;
  size_t at_ = kMagic;
};

}  // namespace

DecodeStatus read_pnm_layout(std::span<const uint8_t> bytes, PnmLayout& layout) {
  constexpr int64_t kMostSide = 0x7fffffff;
  if (bytes.size() <= kMagic) return {DecodeCode::truncated, 0, "the file ends too early"};
  const auto kind = static_cast<char>(bytes[1]);
  if (kind != '5' && kind != '6') {
    return {DecodeCode::unsupported, 0, std::string("a Netpbm file of type P") + kind};
  }
  HeaderReader reader(bytes);
  int64_t width = 0, height = 0, most = 0;
  DecodeStatus status = reader.number(kMostSide, width);
  if (status.ok()) status = reader.number(kMostSide, height);
  if (status.ok()) status = reader.number(0xffff, most);
  if (!status.ok()) return status;
  if (most != 255) {
    return {DecodeCode::unsupported, 0,
            "a PGM or PPM with values up to " + std::to_string(most) + ", not 255"};
  }
  layout.size = {static_cast<int>(width), static_cast<int>(height)};
  layout.channels = kind == '5' ? 1 : 3;
  layout.pixels_at = reader.at();
  return {};
}

void read_pnm_row(std::span<const uint8_t> bytes, const PnmLayout& layout, int y, int x, int width,
                  uint8_t* to) {
  const uint8_t* from =
      bytes.data() + layout.pixels_at + y * layout.row_bytes() + int64_t{x} * layout.channels;
  if (layout.channels == 3) {
    std::memcpy(to, from, size_t{3} * static_cast<size_t>(width));
    return;
  }
  for (int i = 0; i < width; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
}

}  // namespace stoker
