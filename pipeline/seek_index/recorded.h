// The seek indexes that decoders leave on their way through a feed's first epoch: they go to a file
// without a name, from which the next epochs read them, and at the end into the file of indexes
// (file.h) of the data set, for the next run.
//
// Owner: SeekIndexes. Threads: add(), read() and count() from any. Errors: the constructor and
// save() throw std::runtime_error with path and reason. Memory: table_bytes(), and up to 40 bytes
// per sample while they are saved; on the disk, the indexes (about 0.3 % of photographs' bytes,
// twice while they are saved). A killed process leaves no file behind, and no indexes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/seek_index/file.h"
#include "pipeline/source.h"

namespace stoker {

// Nothing is recorded for larger sources: the tables of places would take too much memory, now and
// in every later run.
inline constexpr int64_t kMaxRecordedSamples = int64_t{1} << 24;

class RecordedIndexes {
 public:
  // Makes `folder` and the file in it.
  RecordedIndexes(const std::string& folder, int64_t samples);
  ~RecordedIndexes();
  RecordedIndexes(const RecordedIndexes&) = delete;
  RecordedIndexes& operator=(const RecordedIndexes&) = delete;

  // Replaces the sample's index. Returns false if it could not be written (errno); the sample then
  // keeps the index that it had.
  bool add(SampleId id, const StoredIndex& stored) noexcept;
  // Returns the sample's index, inside `buffer`; an empty one if it has none here.
  StoredIndex read(SampleId id, std::vector<uint8_t>& buffer) const;
  int64_t count() const { return count_.load(std::memory_order_relaxed); }  // samples with an index
  int64_t table_bytes() const { return static_cast<int64_t>(places_.size() * sizeof(places_[0])); }

  // Writes the file of indexes at `path`: those of an older file there, of the samples that have
  // none here, and these. Processes that save to one folder take turns, so that none of theirs is
  // lost. REQUIRES: no thread calls add().
  void save(const Source& source, const std::string& path) const;

 private:
  int file_ = -1;
  std::atomic<uint64_t> end_{0};               // of the file
  std::vector<std::atomic<uint64_t>> places_;  // as SeekFileEntry::place, by sample; 0: none
  std::atomic<int64_t> count_{0};
};

}  // namespace stoker
