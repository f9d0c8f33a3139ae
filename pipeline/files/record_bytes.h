// Writes and reads the tables of cache files: vectors of records and lists of words, one after
// another, each behind its count. A reader never goes beyond its bytes. Threads: one at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stoker {

class RecordWriter {
 public:
  template <typename T>
  void put(const std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T>);
    const uint64_t count = values.size();
    put_bytes(&count, sizeof(count));
    put_bytes(values.data(), count * sizeof(T));
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }
  // The words must have no NUL.
  void put(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + '\0';
    put(text);
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  void put_bytes(const void* data, size_t count) {
    const char* first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  std::vector<char> bytes_;
};

class RecordReader {
 public:
  // `bytes` outlive this.
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}
  // Each get() returns false if the bytes end before that.
  template <typename T>
  bool get(std::vector<T>& values) {
    static_assert(std::has_unique_object_representations_v<T>);
    uint64_t count = 0;
    if (bytes_.size() - at_ < sizeof(count)) return false;
    std::memcpy(&count, bytes_.data() + at_, sizeof(count));
    at_ += sizeof(count);
    if ((bytes_.size() - at_) / sizeof(T) < count) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return true;
  }
  bool get(std::string& text) {
    std::vector<char> values;
    if (!get(values)) return false;
    text.assign(values.begin(), values.end());
    return true;
  }
  bool get(std::vector<std::string>& words) {
    std::string text;
    if (!get(text)) return false;
    words.clear();
    for (size_t at = 0; at < text.size(); at += words.back().size() + 1) {
      words.emplace_back(text.c_str() + at);
    }
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace stoker
