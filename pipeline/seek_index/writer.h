// Writes a file of seek indexes (file.h), through a ReplacedFile (pipeline/files/durable_file.h).
// Owner: the command. Threads: one at a time. Errors: std::runtime_error with path and reason; an
// unfinished file is removed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "pipeline/seek_index/file.h"

namespace stoker {

class SeekIndexWriter {
 public:
  explicit SeekIndexWriter(const std::string& path);  // makes its folder
  SeekIndexWriter(const SeekIndexWriter&) = delete;
  SeekIndexWriter& operator=(const SeekIndexWriter&) = delete;

  void add(std::string_view name, const StoredIndex& stored);
  void add(uint64_t name, const StoredIndex& stored);  // by XXH3 of the name
  void finish();  // when this returns, the file is complete and in its place
  int64_t bytes() const { return static_cast<int64_t>(offset_); }  // written so far

 private:
  void write(const void* data, size_t bytes);
  void flush();

  ReplacedFile file_;
  uint64_t offset_ = 0;
  std::vector<char> pending_;  // not yet written
  std::vector<SeekFileEntry> table_;
};

}  // namespace stoker
