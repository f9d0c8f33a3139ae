// Makes the seek indexes (decode/jpeg/seek_index.h) of all of a data set's JPEG files: `stoker
// index`, and stoker.index() in Python.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decode/jpeg/seek_index.h"
#include "pipeline/sample_checker.h"

namespace stoker {

struct SeekIndexTotals {
  int64_t indexed = 0;
  int64_t jpeg_bytes = 0;    // of the files with an index
  int64_t index_bytes = 0;   // of their indexes
  int64_t file_bytes = 0;    // of the file that holds them
  std::vector<Finding> bad;  // by id; the others without an index are of another kind
};

struct SeekIndexOptions {
  SeekStep step = SeekStep::row;
  int workers = 1;  // threads
  // Called after each sample, one call at a time, from the workers. False: stop.
  std::function<bool(int64_t done, const SeekIndexTotals&)> go_on;
};

// Writes them to `path`: the same file for any number of workers. nullopt: stopped, and nothing was
// written. Throws std::invalid_argument if the source has no image files, std::runtime_error with
// path and reason where the file cannot be written; what was at `path` is still there then.
std::optional<SeekIndexTotals> build_seek_indexes(const Source& source, const std::string& path,
                                                  const SeekIndexOptions& options);

}  // namespace stoker
