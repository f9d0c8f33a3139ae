// Reads a blob line by line. Owner: one scan. Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/source/format/blob_reader.h"

namespace stoker {

enum class LineQuotes : uint8_t {
  none,
  csv,  // a line goes on while a field that began with a double quote is open
};

class LineReader {
 public:
  // A byte order mark of UTF-8 at the start is dropped. Throws BlobError for an empty blob.
  LineReader(BlobReader& blob, LineQuotes quotes);
  // Sets `line` to the next line, without its "\n" or "\r\n"; the last one may end without them.
  // It is valid until the next call on this or on the blob. Returns false after the last line.
  // Throws BlobError for a line of more than 1 MiB and for a quote that is never closed.
  bool next(std::string_view& line);
  // Throws BlobError at the last line: "line 5: REASON".
  [[noreturn]] void fail(const std::string& reason) const;
  // The last line: where it begins in the blob, and its number, from 1.
  int64_t offset() const { return at_; }
  int64_t number() const { return number_; }

 private:
  int64_t find_line(std::string_view& text, bool& open);
  size_t find_end(std::string_view text, bool& open) const;

  BlobReader& blob_;
  const LineQuotes quotes_;
  int64_t at_ = 0, next_at_ = 0;          // of the last line and of the next one
  int64_t number_ = 0, next_number_ = 1;  // from 1; a field in quotes may have several lines
};

}  // namespace stoker
