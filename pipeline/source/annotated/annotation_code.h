// Annotations as bytes, without loss: whole numbers in as few bytes as they need (7 bits each), and
// numbers that are hundredths, as almost all of COCO's, as whole numbers of hundredths; points as
// differences from the last one. A polygon's point takes about 4 bytes instead of 16. A reader
// never goes beyond its bytes, and no count makes it take memory that the bytes do not justify.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/annotation/annotations.h"

namespace stoker {

// Small numbers of both signs as small ones without a sign: 0, -1, 1, -2 are 0, 1, 2, 3.
inline uint64_t folded_sign(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline uint64_t unfolded_sign(uint64_t code) { return code >> 1 ^ (~(code & 1) + 1); }

class CodeWriter {
 public:
  explicit CodeWriter(std::string& out) : out_(out) {}
  void put_count(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void put_whole(int64_t value) { put_count(folded_sign(value)); }
  void put_text(std::string_view text) {
    put_count(text.size());
    out_.append(text);
  }
  // `last`: the hundredths of a number to which this one is near; set to those of this one.
  void put_number(double value, int64_t& last);

 private:
  std::string& out_;
};

class CodeReader {
 public:
  explicit CodeReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  uint64_t get_count() {
    uint64_t value = 0;
    for (int shift = 0; at_ != end_ && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }
  int64_t get_whole() { return static_cast<int64_t>(unfolded_sign(get_count())); }
  // Returns the number of things that follow, each of at least one byte.
  uint64_t get_length() {
    const uint64_t length = get_count();
    if (length <= static_cast<uint64_t>(end_ - at_)) return length;
    fail();
    return 0;
  }
  std::string_view get_text() {
    const uint64_t length = get_length();
    const std::string_view text(at_, length);
    at_ += length;
    return text;
  }
  double get_number(int64_t& last);
  // A read that failed gave zeros, and so do all after it.
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  void fail() {
    at_ = end_;
    ok_ = false;
  }

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

// Writes the object at `place`, with its corners, keypoints and mask.
void put_object(const AnnotationInfo& info, const Annotations& from, size_t place, CodeWriter& out);
// Appends an object to `to`.
void get_object(const AnnotationInfo& info, CodeReader& in, Annotations& to);

}  // namespace stoker
