// Reads JSON once, from the first byte to the last, and keeps none of it: for files that are larger
// than what is wanted of them. The caller says which value it expects next. Beside JSON it takes
// NaN, Infinity and -Infinity as numbers, which Python writes. Owner: one caller. Threads: one at a
// time. Errors: JsonError with the number of the byte where the text is not what was expected.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Fills the bytes from the front, and returns how many it filled; 0: there are no more.
using ByteSupply = std::function<size_t(std::span<char>)>;
// The bytes of a text, which outlives it.
ByteSupply supply_of(std::string_view text);

class JsonScanner {
 public:
  // `bytes`: how many there are, if that is known: a short text needs a small buffer.
  explicit JsonScanner(ByteSupply supply, size_t bytes = SIZE_MAX);

  // Returns the first character of the next value, behind white space: it tells its kind.
  char next_kind() {
    skip_space();
    if (at_ == end_) fail("the text ends too soon");
    return buffer_[at_];
  }
  // Reads an object. take(key) must read the key's value; the key is valid until it does.
  template <typename Take>
  void read_object(const Take& take) {
    expect('{', "an object is expected");
    if (accept('}')) return;
    do {
      read_string(key_);
      expect(':', "a colon is expected");
      take(std::string_view(key_));
    } while (accept(','));
    expect('}', "a comma or the object's end is expected");
  }
  // Reads an array. take() must read one element, which begins at byte().
  template <typename Take>
  void read_array(const Take& take) {
    expect('[', "an array is expected");
    if (accept(']')) return;
    do {
      next_kind();
      take();
    } while (accept(','));
    expect(']', "a comma or the array's end is expected");
  }
  double read_number();
  // Throws for a number that is not whole, or has more than 63 bits.
  int64_t read_whole();
  // true, false, 1 or 0.
  bool read_flag();
  void read_string(std::string& out);
  void skip();  // the next value, of any kind
  // Throws if there is more than white space behind the last value.
  void expect_end();
  [[noreturn]] void fail(const std::string& what) const;
  int64_t byte() const { return before_ + static_cast<int64_t>(at_); }

 private:
  // Reads on, so that as many bytes as possible follow. The bytes that were read are gone.
  void refill();
  // Makes all of a short token lie in the buffer.
  void gather() {
    if (end_ - at_ < kLongestToken && !is_last_) refill();
  }
  bool has_byte() {
    if (at_ == end_ && !is_last_) refill();
    return at_ != end_;
  }
  void skip_space() {
    while (has_byte() && (buffer_[at_] == ' ' || buffer_[at_] == '\n' || buffer_[at_] == '\r' ||
                          buffer_[at_] == '\t')) {
      ++at_;
    }
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ == end_ || buffer_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted, const char* otherwise) {
    if (next_kind() != wanted) fail(otherwise);
    ++at_;
  }
  bool accept_word(std::string_view word);
  std::string_view number_token();
  double exact_number();
  void read_escape(std::string& out);
  uint32_t read_four_digits();
  void skip_string();
  void skip_word();

  // A number or a word that is longer is refused.
  static constexpr size_t kLongestToken = 512;

  const ByteSupply supply_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;  // what is left of the buffer
  bool is_last_ = false;     // the supply has no more
  int64_t before_ = 0;       // the number of the buffer's first byte
  std::string key_;
};

}  // namespace stoker
