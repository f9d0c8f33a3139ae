// Writes a file of seek indexes (file.h): a temporary one beside it, which is flushed to
// the disk and takes its name at the end. So a reader finds the old file or the whole new one.
// Owner: the command. Threads: one at a time. Errors: std::runtime_error with path and reason; a
// file that was not finished is removed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/seek_index/file.h"

namespace stoker {

class SeekIndexWriter {
 public:
  explicit SeekIndexWriter(const std::string& path);  // makes its folder
  ~SeekIndexWriter();
  SeekIndexWriter(const SeekIndexWriter&) = delete;
  SeekIndexWriter& operator=(const SeekIndexWriter&) = delete;

  void add(std::string_view name, std::span<const uint8_t> index);
  void finish();  // the file is there when this returns
  int64_t bytes() const { return static_cast<int64_t>(offset_); }  // written so far

 private:
  void write(const void* data, size_t bytes);
  void flush();
  [[noreturn]] void fail() const;

  const std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  uint64_t offset_ = 0;
  std::vector<char> pending_;  // not yet written
  std::vector<SeekFileEntry> table_;
};

}  // namespace stoker
