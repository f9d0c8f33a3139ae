#include "pipeline/source/annotated/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace stoker {
namespace {

constexpr size_t kScannerBytes = size_t{1} << 18;
constexpr size_t kDeepestValue = 512;

constexpr std::array<double, 16> kPowersOfTen = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

bool is_json_digit(char c) { return c >= '0' && c <= '9'; }

bool is_of_json_number(char c) {
  return is_json_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

void append_utf8(uint32_t code, std::string& out) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

ByteSupply supply_of(std::string_view text) {
  return [text](std::span<char> out) mutable {
    const size_t count = std::min(text.size(), out.size());
    std::memcpy(out.data(), text.data(), count);
    text.remove_prefix(count);
    return count;
  };
}

JsonScanner::JsonScanner(ByteSupply supply, size_t bytes)
    : supply_(std::move(supply)), buffer_(std::clamp(bytes, 2 * kLongestToken, kScannerBytes)) {}

void JsonScanner::refill() {
  std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
  before_ += static_cast<int64_t>(at_);
  end_ -= at_;
  at_ = 0;
  while (end_ < buffer_.size() && !is_last_) {
    const size_t count = supply_(std::span(buffer_).subspan(end_));
    is_last_ = count == 0;
    end_ += count;
  }
}

void JsonScanner::fail(const std::string& what) const {
  throw JsonError("byte " + std::to_string(byte()) + ": " + what);
}

bool JsonScanner::accept_word(std::string_view word) {
  gather();
  if (std::string_view(buffer_.data() + at_, end_ - at_).substr(0, word.size()) != word) {
    return false;
  }
  at_ += word.size();
  return true;
}

std::string_view JsonScanner::number_token() {
  size_t end = at_;
  while (end != end_ && is_of_json_number(buffer_[end])) ++end;
  if (end == at_) fail("a number is expected");
  if (end - at_ >= kLongestToken) fail("a number of too many digits");
  return {buffer_.data() + at_, end - at_};
}

// Numbers that are not exact in the short way, which are few.
double JsonScanner::exact_number() {
  const std::string_view token = number_token();
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  const bool is_number = end == token.data() + token.size() && token.back() != '.' &&
                         is_json_digit(token[token[0] == '-' ? 1 : 0]);
  if (!is_number || error == std::errc::invalid_argument) fail("a number is expected");
  if (error == std::errc::result_out_of_range) {
    const bool is_small = token.find("e-") != token.npos || token.find("E-") != token.npos ||
                          token.starts_with("0.") || token.starts_with("-0.");
    value = is_small ? 0 : std::numeric_limits<double>::infinity();
  }
  at_ += token.size();
  return value;
}

// A whole number of up to 15 digits divided by a power of ten of up to 15 is rounded once, and so
// correctly (Clinger, How to read floating point numbers accurately, 1990).
double JsonScanner::read_number() {
  const char kind = next_kind();
  gather();
  const char* const first = buffer_.data() + at_;
  const char* const last = buffer_.data() + end_;
  const char* c = first + (kind == '-' ? 1 : 0);
  uint64_t digits = 0;
  const char* const whole = c;
  for (; c != last && is_json_digit(*c); ++c)
    digits = 10 * digits + static_cast<uint64_t>(*c - '0');
  ptrdiff_t count = c - whole, behind = 0;
  if (c != last && *c == '.' && count > 0) {
    const char* const fraction = ++c;
    for (; c != last && is_json_digit(*c); ++c)
      digits = 10 * digits + static_cast<uint64_t>(*c - '0');
    behind = c - fraction;
    count = behind == 0 ? 0 : count + behind;
  }
  if (count > 0 && count <= 15 && (c == last || !is_of_json_number(*c))) {
    at_ += static_cast<size_t>(c - first);
    const double value = static_cast<double>(digits) / kPowersOfTen[static_cast<size_t>(behind)];
    return kind == '-' ? -value : value;
  }
  if (accept_word("NaN")) return std::numeric_limits<double>::quiet_NaN();
  if (accept_word("Infinity")) return std::numeric_limits<double>::infinity();
  if (accept_word("-Infinity")) return -std::numeric_limits<double>::infinity();
  return exact_number();
}

int64_t JsonScanner::read_whole() {
  next_kind();
  gather();
  const std::string_view token = number_token();
  int64_t value = 0;
  const char* const last = token.data() + token.size();
  const auto [end, error] = std::from_chars(token.data(), last, value);
  if (error == std::errc() && end == last) {
    at_ += token.size();
    return value;
  }
  // Perhaps "5.0", as a table of numbers is written by some.
  const int64_t place = byte();
  const double number = read_number();
  if (std::abs(number) < 9e15 && number == std::floor(number)) return static_cast<int64_t>(number);
  throw JsonError("byte " + std::to_string(place) + ": a whole number is expected");
}

bool JsonScanner::read_flag() {
  next_kind();
  if (accept_word("true")) return true;
  if (accept_word("false")) return false;
  const int64_t value = read_whole();
  if (value != 0 && value != 1) fail("0 or 1 is expected");
  return value == 1;
}

void JsonScanner::read_string(std::string& out) {
  expect('"', "a string is expected");
  out.clear();
  while (has_byte()) {
    const char* const first = buffer_.data() + at_;
    const char* const last = buffer_.data() + end_;
    const char* const stop = std::find_if(first, last, [](char c) {
      return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
    });
    out.append(first, stop);
    at_ += static_cast<size_t>(stop - first);
    if (stop == last) continue;
    if (*stop != '"' && *stop != '\\') fail("a control character in a string");
    ++at_;
    if (buffer_[at_ - 1] == '"') return;
    read_escape(out);
  }
  fail("the text ends inside of a string");
}

void JsonScanner::read_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  gather();
  if (at_ == end_) fail("the text ends inside of a string");
  const char letter = buffer_[at_++];
  if (const size_t place = kLetters.find(letter); place != std::string_view::npos) {
    out += kMeanings[place];
    return;
  }
  if (letter != 'u') fail("an unknown escape in a string");
  uint32_t code = read_four_digits();
  if (code >= 0xd800 && code < 0xdc00 && accept_word("\\u")) {
    const uint32_t second = read_four_digits();
    if (second < 0xdc00 || second >= 0xe000) fail("half of a character in a string");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  if (code >= 0xd800 && code < 0xe000) fail("half of a character in a string");
  append_utf8(code, out);
}

uint32_t JsonScanner::read_four_digits() {
  gather();
  uint32_t code = 0;
  const char* const first = buffer_.data() + at_;
  const char* const last = first + std::min<size_t>(4, end_ - at_);
  const auto [end, error] = std::from_chars(first, last, code, 16);
  if (error != std::errc() || end != first + 4) fail("four hexadecimal digits are expected");
  at_ += 4;
  return code;
}

void JsonScanner::skip_string() {
  ++at_;
  while (has_byte()) {
    const char c = buffer_[at_++];
    if (c == '"') return;
    if (c == '\\' && has_byte()) ++at_;
  }
  fail("the text ends inside of a string");
}

// A number, true, false or null.
void JsonScanner::skip_word() {
  const int64_t first = byte();
  while (has_byte() &&
         (is_of_json_number(buffer_[at_]) || (buffer_[at_] >= 'a' && buffer_[at_] <= 'z'))) {
    ++at_;
  }
  if (byte() == first && !accept_word("NaN") && !accept_word("Infinity")) {
    fail("a value is expected");
  }
}

// Does not look whether what it skips is in order, but for its brackets.
void JsonScanner::skip() {
  std::string closing;
  do {
    const char kind = next_kind();
    if (kind == '"') {
      skip_string();
    } else if (kind == '{' || kind == '[') {
      if (closing.size() == kDeepestValue) fail("values are nested too deep");
      closing += kind == '{' ? '}' : ']';
      ++at_;
    } else if (!closing.empty() && kind == closing.back()) {
      closing.pop_back();
      ++at_;
    } else if (kind == '}' || kind == ']') {
      fail(closing.empty() ? "a value is expected" : "another bracket is expected");
    } else if (!closing.empty()) {
      ++at_;
    } else {
      skip_word();
    }
  } while (!closing.empty());
}

void JsonScanner::expect_end() {
  skip_space();
  if (at_ != end_) fail("there is more behind the end of the JSON");
}

}  // namespace stoker
