#include "decode/codec/pnm_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

namespace stoker {
namespace {

constexpr size_t kMagic = 2;
constexpr int kMaxDigits = 10;  // of a number, as in Pillow
constexpr int kMaxOfByte = 255, kMaxNetpbm = 65535;

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

// Returns where the line of a comment ends. As in Pillow, what is before and after it are one: a
// comment may stand within a number.
size_t skip_comment(std::span<const uint8_t> bytes, size_t at) {
  while (at < bytes.size() && bytes[at] != '\n' && bytes[at] != '\r') ++at;
  return std::min(at + 1, bytes.size());
}

enum class Number : uint8_t { read, ended, bad };

// Reads the next number and the blank that ends it; the end of the bytes ends one, too, if
// `may_end` says so.
Number read_number(std::span<const uint8_t> bytes, bool may_end, size_t& at, int64_t& value) {
  value = 0;
  int digits = 0;
  while (at < bytes.size()) {
    const uint8_t c = bytes[at++];
    if (c == '#') {
      at = skip_comment(bytes, at);
    } else if (is_space(c)) {
      if (digits > 0) return Number::read;
    } else if (!is_digit(c) || ++digits > kMaxDigits) {
      return Number::bad;
    } else {
      value = 10 * value + (c - '0');
    }
  }
  return may_end && digits > 0 ? Number::read : Number::ended;
}

// Reads a number of the header, from 1 to `most`.
DecodeStatus read_field(std::span<const uint8_t> bytes, int64_t most, size_t& at, int& field) {
  const size_t begin = at;
  int64_t value = 0;
  const Number number = read_number(bytes, false, at, value);
  if (number == Number::ended) return cut_short(bytes.size());
  if (number == Number::bad || value < 1 || value > most) {
    return {DecodeCode::corrupt, static_cast<int64_t>(begin), "a bad Netpbm header"};
  }
  field = static_cast<int>(value);
  return {};
}

}  // namespace

int64_t PnmLayout::row_bytes() const {
  if (is_bilevel) return (row_samples() + 7) / 8;
  return row_samples() * (most > kMaxOfByte ? 2 : 1);
}

bool is_pnm(std::span<const uint8_t> bytes) {
  constexpr std::string_view kKinds = "1234567fF", kAfter = "\t\n\v\f\r #";
  return bytes.size() > kMagic && bytes[0] == 'P' &&
         kKinds.find(static_cast<char>(bytes[1])) != std::string_view::npos &&
         kAfter.find(static_cast<char>(bytes[kMagic])) != std::string_view::npos;
}

DecodeStatus read_pnm_layout(std::span<const uint8_t> bytes, PnmLayout& layout) {
  constexpr int64_t kMaxSide = 0x7fffffff;
  layout = {};
  if (bytes.size() <= kMagic) return {DecodeCode::truncated, 0, "the file ends too early"};
  const auto kind = static_cast<char>(bytes[1]);
  if (kind < '1' || kind > '6') {
    return {DecodeCode::unsupported, 0,
            std::string("a Netpbm file of type P") + kind + " (PAM and PFM are not read)"};
  }
  layout.is_text = kind <= '3';
  layout.is_bilevel = kind == '1' || kind == '4';
  layout.channels = kind == '3' || kind == '6' ? 3 : 1;
  size_t at = kMagic;
  DecodeStatus status = read_field(bytes, kMaxSide, at, layout.size.width);
  if (status.ok()) status = read_field(bytes, kMaxSide, at, layout.size.height);
  if (status.ok() && !layout.is_bilevel) status = read_field(bytes, kMaxNetpbm, at, layout.most);
  layout.pixels_at = static_cast<int64_t>(at);
  return status;
}

DecodeStatus check_pnm_body(std::span<const uint8_t> bytes, const PnmLayout& layout) {
  const int64_t room = std::ssize(bytes) - layout.pixels_at;
  // In text a number and the blank behind it take two bytes at least; bits need no blanks.
  const int64_t row = !layout.is_text     ? layout.row_bytes()
                      : layout.is_bilevel ? layout.row_samples()
                                          : 2 * layout.row_samples();
  const int64_t spare = layout.is_text && !layout.is_bilevel ? 1 : 0;  // none behind the last
  return (room + spare) / row < layout.size.height ? cut_short(bytes.size()) : DecodeStatus{};
}

bool PnmRows::read(int y, int x, int width, uint8_t* to) {
  if (!layout_.is_text) {
    read_binary_row(y, x, width, to);
    return true;
  }
  while (next_row_ < y) {
    if (!read_text_row(0, 0, nullptr)) return false;
  }
  return read_text_row(x, width, to);
}

bool PnmRows::read_text_row(int x, int width, uint8_t* to) {
  ++next_row_;
  for (int column = 0; column < layout_.size.width; ++column) {
    const bool is_wanted = column >= x && column < x + width;
    for (int c = 0; c < layout_.channels; ++c) {
      int value = 0;
      if (!(layout_.is_bilevel ? next_bit(value) : next_number(value))) return false;
      if (!is_wanted) continue;
      *to++ = scaled(value);
      if (layout_.channels == 1) to = std::fill_n(to, 2, to[-1]);
    }
  }
  return true;
}

bool PnmRows::next_number(int& value) {
  int64_t number = 0;
  switch (read_number(bytes_, true, at_, number)) {
    case Number::ended:
      return fail(DecodeCode::truncated, "the file ends too early");
    case Number::read:
      if (number <= layout_.most) {
        value = static_cast<int>(number);
        return true;
      }
      [[fallthrough]];
    case Number::bad:
      break;
  }
  return fail(DecodeCode::corrupt, "a Netpbm text with something else than its numbers");
}

bool PnmRows::next_bit(int& value) {
  while (at_ < bytes_.size()) {
    const uint8_t c = bytes_[at_++];
    if (c == '#') {
      at_ = skip_comment(bytes_, at_);
    } else if (c == '0' || c == '1') {
      value = c - '0';
      return true;
    } else if (!is_space(c)) {
      return fail(DecodeCode::corrupt, "a Netpbm text with something else than its bits");
    }
  }
  return fail(DecodeCode::truncated, "the file ends too early");
}

bool PnmRows::fail(DecodeCode code, const char* what) {
  status_ = {code, static_cast<int64_t>(at_), what};
  return false;
}

void PnmRows::read_binary_row(int y, int x, int width, uint8_t* to) const {
  const uint8_t* row = bytes_.data() + layout_.pixels_at + y * layout_.row_bytes();
  if (layout_.most == kMaxOfByte && !layout_.is_bilevel) {
    const uint8_t* from = row + int64_t{x} * layout_.channels;
    if (layout_.channels == 3) {
      std::memcpy(to, from, size_t{3} * static_cast<size_t>(width));
    } else {
      for (int i = 0; i < width; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
    }
    return;
  }
  const int64_t begin = int64_t{x} * layout_.channels;
  for (int64_t i = begin; i < begin + int64_t{width} * layout_.channels; ++i) {
    const int value = layout_.is_bilevel          ? row[i / 8] >> (7 - i % 8) & 1
                      : layout_.most > kMaxOfByte ? row[2 * i] << 8 | row[2 * i + 1]
                                                  : row[i];
    *to++ = scaled(value);
    if (layout_.channels == 1) to = std::fill_n(to, 2, to[-1]);
  }
}

uint8_t PnmRows::scaled(int value) const {
  if (layout_.is_bilevel) return value == 0 ? 255 : 0;
  if (layout_.most == kMaxOfByte) return static_cast<uint8_t>(value);
  const int scale = layout_.channels == 1 && layout_.most > kMaxOfByte ? kMaxNetpbm : kMaxOfByte;
  const double exact = static_cast<double>(value) / layout_.most * scale;
  return static_cast<uint8_t>(std::min(std::nearbyint(exact), 255.0));
}

}  // namespace stoker
