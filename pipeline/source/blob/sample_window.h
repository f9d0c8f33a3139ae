// Fetches the samples of a store before they are read. It knows from a SampleSequence which those
// will be, joins samples that lie near each other to one range, and asks for as many ranges at a
// time as ObjectReader finds useful, within a fixed number of bytes. A sample that nobody announced
// is fetched when it is read. With a cache (sample_cache.h), samples that are there are not
// fetched, and others are written to it by whoever reads them. Owner: a source. Threads: every
// method from any thread. Errors: read() throws the StoreError of the sample's range.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "pipeline/source.h"
#include "pipeline/source/blob/stored_samples.h"
#include "pipeline/store/object_reader.h"

namespace stoker {

class SampleWindow {
 public:
  // The functions of `samples` are called at once, if the options have a cache, and from any
  // thread. Throws what SampleCache::open() throws.
  SampleWindow(std::shared_ptr<const ObjectStore> store, const StoreOptions& options,
               StoredSamples samples);
  // REQUIRES: every LookAhead has been destroyed. In a process that was forked meanwhile, where the
  // thread that carries requests does not exist, nothing is freed.
  ~SampleWindow();
  SampleWindow(const SampleWindow&) = delete;
  SampleWindow& operator=(const SampleWindow&) = delete;

  // Several share the memory. One that begins while another holds all of it gets it as that one's
  // samples are read.
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next);
  // Gives up one announcement of the sample, which was made or will be. What is fetched for no
  // other sample is forgotten.
  void skip(SampleId id);
  // Passes the sample's bytes to `use`, which must not keep them. Returns false, without a call, if
  // they are not here and MayWait::no, or if the sample is nowhere; else what `use` returned.
  bool read(SampleId id, MayWait may_wait,
            const std::function<bool(std::span<const uint8_t> bytes)>& use);
  // The same, and copies pieces of them; false also for a piece that is not in the sample. A store
  // is asked for whole samples: the pieces of one would be several requests.
  bool read_pieces(SampleId id, MayWait may_wait, std::span<const BytePiece> pieces);
  // The most memory for samples that were announced, for requests under way, and for the places of
  // the cache.
  int64_t bytes() const;
  StoreStats stats() const;
  StoredBytes stored_bytes() const;  // asks for the length of every sample if there is no cache

 private:
  void check_process() const;

  struct Impl;
  const pid_t process_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
