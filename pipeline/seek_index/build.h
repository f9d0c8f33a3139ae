// Makes the seek indexes (decode/jpeg/seek_index.h) of all JPEG files of a data set, for `stoker
// index` and for stoker.index() in Python.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decode/jpeg/seek_index.h"
#include "pipeline/source/sample_checker.h"

namespace stoker {

struct SeekIndexTotals {
  int64_t indexed = 0;
  int64_t jpeg_bytes = 0;    // of the files with an index
  int64_t index_bytes = 0;   // of their indexes
  int64_t file_bytes = 0;    // of the file that holds them
  std::vector<Finding> bad;  // by id; the other files without an index are of another kind
};

struct SeekIndexOptions {
  SeekStep step = SeekStep::row;
  int workers = 1;  // threads
  // Called after each sample, one call at a time, from the workers. Return false to stop.
  std::function<bool(int64_t done, const SeekIndexTotals&)> go_on;
};

// Writes the indexes to `path`: the same file for any number of workers. Returns nullopt if it was
// stopped; nothing was written then. Throws std::invalid_argument if the source has no image files,
// std::runtime_error with path and reason if the file cannot be written; an old file at `path` is
// kept then.
std::optional<SeekIndexTotals> build_seek_indexes(const Source& source, const std::string& path,
                                                  const SeekIndexOptions& options);

}  // namespace stoker
