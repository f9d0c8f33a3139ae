// Keeps a fixed part of a store's samples on a disk of this machine. Which samples, and where each
// of them lies, are functions of the data set and of the size alone: so there is no table of
// places, no lock and nothing to evict, and any number of processes use one cache at a time.
//
// FOLDER/DIGEST has a data set (its samples, their objects' versions, and their places there) as
// SealedPieces: one sample's bytes behind the other's.
//
// The samples stand in the order of a fixed permutation, and the first ones that fit are kept. So a
// cache of another size has the same samples at the same places, as far as both reach: a larger one
// goes on with what is there, a smaller one is cut. What a kill, a crash or a damaged disk left is
// a miss, which is fetched and written again. A full disk ends the keeping, not the reading.
//
// Owner: a SampleWindow. Threads: every method from any. Errors: open()
// throws std::runtime_error with the path and the reason, and std::invalid_argument for options
// that name half a cache, or a server that gives its objects no versions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/files/sealed_pieces.h"
#include "pipeline/random/permutation.h"
#include "pipeline/source.h"
#include "pipeline/source/blob/stored_samples.h"

namespace stoker {

class SampleCache {
 public:
  // Asks for the place of every sample, and for its length. Returns nullptr if the options name no
  // cache. The functions of `samples` outlive the result.
  static std::unique_ptr<SampleCache> open(const StoreOptions& options,
                                           const StoredSamples& samples);
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  // Returns true if the sample has been kept, by whatever process. It reads 8 bytes of a file of
  // which hardly a page ever leaves the memory.
  bool holds(SampleId id) const;
  // Returns true if keep() would write.
  bool wants(SampleId id) const;
  // Returns the sample's bytes, in `buffer`; empty if they are not here, or not in memory with
  // MayWait::no, or damaged. What is damaged is no longer held then.
  std::span<const uint8_t> read(SampleId id, MayWait may_wait,
                                std::unique_ptr<uint8_t[]>& buffer) const;
  // Writes a sample if wants() it. May wait for the disk.
  void keep(SampleId id, std::span<const uint8_t> bytes);

  const std::string& folder() const { return files_.folder(); }
  const StoredBytes& sizes() const { return sizes_; }  // as they were when it was opened
  int64_t kept_bytes() const { return kept_bytes_; }   // by this object
  // Why nothing is kept any more; "" if it is.
  std::string problem() const { return files_.problem(); }
  int64_t memory_bytes() const;

 private:
  struct Identity;
  SampleCache(const StoreOptions& options, const StoredSamples& samples, const Identity& identity);
  static Identity identify(const StoredSamples& samples);
  static std::string about(const StoredSamples& samples, const Identity& identity);
  void place_samples(int64_t most_bytes);
  int64_t offset_of(int64_t position) const;

  const StoredSamples samples_;
  const Permutation order_;  // position to sample
  SealedPieces files_;
  StoredBytes sizes_;
  std::vector<int64_t> places_;  // in the file, of each kNotedStride-th position
  std::atomic<int64_t> kept_bytes_ = 0;
};

}  // namespace stoker
