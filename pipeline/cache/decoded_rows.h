// Takes rows of a Loader from a DecodedCache, and gives pictures to it. Between the cache, which
// knows no source, and RowFiller, which asks here before it reads a file.
//
// A source in a store fetches the samples that it was told of before they are read, and keeps them
// until they are: so a sample that it was told of is read from it, even if the cache has got it
// meanwhile, and it is not told of samples that the cache has.
//
// Owner: RowFiller. Threads: every method from any. Errors: the constructor throws what
// DecodedCache::open() throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/augment/decoded_picture.h"
#include "pipeline/cache/decoded_samples.h"
#include "pipeline/loader_types.h"
#include "pipeline/source.h"
#include "staging/mutex.h"

namespace stoker {

class DecodedRows {
 public:
  // Nothing is kept if options.cache is null. `source` outlives this.
  DecodedRows(const Source& source, const AugmentSpec& augment, const FeedOptions& options);
  DecodedRows(const DecodedRows&) = delete;
  DecodedRows& operator=(const DecodedRows&) = delete;

  // As DecodedSamples::read(), with the stamp that the sample's file has now.
  DecodedPicture read(SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer) const;
  // Returns the stamp that the sample's file has before it is read, if its picture shall be kept;
  // else an unknown one.
  FileStamp stamp_to_keep(SampleId id) const;
  const DecodedForm* form() const { return samples_ ? &samples_->form() : nullptr; }
  // Keeps a picture made of the sample's file, which had this stamp before it was read.
  void keep(SampleId id, const FileStamp& stamp, const DecodedPicture& picture);
  // Counts a row.
  void count(bool is_hit) {
    if (samples_) ++(is_hit ? hits_ : misses_);
  }

  // Notes that rows of this batch are being read.
  void reach(Step batch) {
    if (samples_ && batch > reached_) reached_ = batch;
  }
  // Returns the batch of which rows are being read; 0 without a cache.
  Step reached() const { return reached_; }
  // Returns whether the source shall be told of a sample that will be read.
  bool announces(SampleId id) const;
  // Notes that the sample was read from the source.
  void was_read(SampleId id);

  std::optional<DecodedCacheStats> stats() const;
  // For a picture on its way to the cache, in each worker.
  int64_t scratch_bytes() const {
    return samples_ ? 2 * DecodedSamples::place_bytes(samples_->form()) : 0;
  }
  int64_t memory_bytes() const { return samples_ ? samples_->memory_bytes() : 0; }

 private:
  bool is_announced(SampleId id) const;

  const Source& source_;
  const std::shared_ptr<DecodedSamples> samples_;  // or null
  std::atomic<int64_t> hits_ = 0, misses_ = 0;
  std::atomic<Step> reached_ = 0;
  mutable std::atomic<bool> any_announced_ = false;
  mutable Mutex mutex_;
  // How often the source was told of a sample since it was read.
  mutable std::unordered_map<SampleId, int> announced_ GUARDED_BY(mutex_);
};

}  // namespace stoker
