// Keeps what decoding gives of a fixed part of the samples, in memory or on a disk of this machine:
// the pixels before everything random, so that a sample is decoded once, and not in every epoch.
// Rows and receipts are bit for bit those without it. It serves recipes whose rows show the same of
// an image in every epoch (evaluation, CIFAR's random crop with padding), and small images of one
// size; a Loader refuses it for others (decoded_form.h).
//
//   in memory   as long as the DecodedCache lives, for all Loaders that have it; pictures take
//               the memory as they come
//   on a disk   in FOLDER/DIGEST, for all processes; a kill -9 or damage leaves misses, and a full
//               disk makes it smaller. The digest has the data set (its root and its list of
//               samples), the version of stoker, how it decodes, and what is kept
//
// Owner: FeedOptions::cache, shared. Threads: every method from any. Errors: exceptions, as they
// say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "decode/image_decoder.h"
#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/source.h"

namespace stoker {

class DecodedSamples;

struct DecodedCacheOptions {
  std::string folder{};  // "": in memory
  int64_t bytes = 0;     // the most for each data set and recipe, at least 1
};

class DecodedCache {
 public:
  // Throws std::invalid_argument for a size below 1 or an address in a store.
  explicit DecodedCache(const DecodedCacheOptions& options);
  ~DecodedCache();
  DecodedCache(const DecodedCache&) = delete;
  DecodedCache& operator=(const DecodedCache&) = delete;

  // Returns what is kept of this source's samples; the same object for the same samples, decoding
  // and form. It reads some samples. Throws InvalidField ("cache") with the reason if nothing of
  // them can be kept, and std::runtime_error for a folder that cannot be used, with the path, or if
  // no sample can be read.
  std::shared_ptr<DecodedSamples> open(const Source& source, const AugmentSpec& augment,
                                       const DecodeOptions& decode);
  // Returns what open() has, without hits and misses. Throws as open().
  DecodedCacheStats stats(const Source& source, const AugmentSpec& augment,
                          const DecodeOptions& decode);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns why a Loader with these arguments refuses a DecodedCache; "": it does not. Throws
// std::runtime_error if no sample can be read.
std::string decoded_cache_refusal(const Source& source, const AugmentSpec& augment,
                                  const DecodeOptions& decode);

}  // namespace stoker
