// The decoded pictures that are kept of one data set, all of one form (decoded_form.h), in a
// DecodedCache. They stand in the order of a fixed permutation of the samples, and the first ones
// that fit are kept: a sample's place is its rank times the bytes of a place. There is no table, no
// lock, and nothing to evict. A place begins with a head (the stamp of the sample's file, the size
// of its image, what the pixels show of it): a file that changed, or a row that shows something
// else, is a miss. A bad sample is never kept.
//
// Owner: DecodedCache and the Loaders, shared. Threads: every method from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/augment/decoded_picture.h"
#include "pipeline/loader_types.h"
#include "pipeline/random/permutation.h"
#include "pipeline/source.h"

namespace stoker {

// Keeps pieces of bytes of one length by their numbers, which are all below its number of places.
// Threads: every method from any.
class DecodedSlots {
 public:
  virtual ~DecodedSlots() = default;
  // Returns the bytes of a place, in `buffer` or in memory that lives as long as this; empty: they
  // are not there, or not in memory with MayWait::no.
  virtual std::span<const uint8_t> read(int64_t number, MayWait may_wait,
                                        std::vector<uint8_t>& buffer) const = 0;
  virtual bool holds(int64_t number) const = 0;
  // Returns false if keep() would do nothing.
  virtual bool wants(int64_t number) const = 0;
  // May wait for the disk. Returns whether the bytes are there now.
  virtual bool keep(int64_t number, std::span<const uint8_t> bytes) = 0;
  virtual int64_t found() const = 0;         // how many were there at first
  virtual int64_t memory_bytes() const = 0;  // once all are there
  virtual std::string folder() const = 0;    // "": none
  virtual std::string problem() const = 0;   // why nothing is kept any more; "": it is
};

// `places`: how many; `bytes`: of each. Throw std::runtime_error with the size or the path.
std::unique_ptr<DecodedSlots> slots_in_memory(int64_t places, int64_t bytes);
std::unique_ptr<DecodedSlots> slots_on_disk(const std::string& folder, const std::string& about,
                                            int64_t places, int64_t bytes);

class DecodedSamples {
 public:
  static constexpr int kForm = 1;  // of places and their heads
  // The order in which samples are kept.
  static Permutation order_of(int64_t samples);
  static int64_t place_bytes(const DecodedForm& form);

  // `places` has that many places of place_bytes(form).
  DecodedSamples(const DecodedForm& form, int64_t samples, int64_t count,
                 std::unique_ptr<DecodedSlots> places);

  const DecodedForm& form() const { return form_; }
  // Returns true if the sample has been kept, by whatever process; its file may have changed since.
  bool holds(SampleId id) const;
  // Returns false if keep() would do nothing.
  bool wants(SampleId id) const;
  // Returns the sample's picture, in `buffer` or in memory that lives as long as this. Without
  // pixels: it is not here, or not in memory with MayWait::no, or it is damaged, or of a file with
  // another stamp.
  DecodedPicture read(SampleId id, const FileStamp& stamp, MayWait may_wait,
                      std::vector<uint8_t>& buffer) const;
  // Keeps a picture of form(), which was made of the sample's file with this stamp.
  void keep(SampleId id, const FileStamp& stamp, const DecodedPicture& picture);

  DecodedCacheStats stats() const;  // without hits and misses
  int64_t memory_bytes() const { return places_->memory_bytes(); }

 private:
  const DecodedForm form_;
  const int64_t samples_, count_;
  const std::unique_ptr<DecodedSlots> places_;
  const Permutation order_;  // position to sample
  std::atomic<int64_t> kept_ = 0;
};

}  // namespace stoker
