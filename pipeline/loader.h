// Turns files and records into batches on devices. This is the entry point of the folder.
//
// A Loader combines Source, Sampler, Augmenter, the flow graph (or none: with 0 workers it runs
// inline in next()), and one PinnedRing and one Stager per device. Batches of a device come in step
// order; the ring never drains between epochs. Pixels are a pure function of (seed, epoch, sample
// id, repeat index in the epoch) for any number of workers, devices, ranks, batch size and resume
// point; if rows are mixed (MixSpec), also of the sample next to it in the epoch's order. Owner:
// the user; source and devices outlive it. Threads: one consumer per device; with workers the
// devices advance together, so no device can get more than ring_depth + slots steps ahead of what
// another has given back. Errors: the constructor throws std::invalid_argument / std::runtime_error
// with path and numbers; next() throws std::runtime_error when the budget of bad samples is spent
// (every later call throws the same).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/loader_types.h"
#include "pipeline/source.h"
#include "staging/device.h"
#include "staging/device_batch.h"

namespace stoker {

class RemoteRows;

class Loader {
 public:
  // Throws std::invalid_argument (InvalidField if one field is wrong) as the constructor would with
  // these arguments, without allocating a batch or touching a file.
  static void check(const Source& source, const AugmentSpec& augment,
                    const std::vector<Device*>& devices, const LoaderOptions& options);
  Loader(const Source& source, const AugmentSpec& augment, std::vector<Device*> devices,
         const LoaderOptions& options);
  ~Loader();  // stops at any time, as soon as the rows under way are done
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the next batch of `device` (index into devices), leased on `compute`; empty when the
  // feed has ended.
  DeviceBatch next(int device, Stream& compute);
  // Blocks for at most `ms` milliseconds. Returns true if next(device) would not wait for the feed
  // now. For consumers that must handle something else (an interrupt) while they wait.
  bool wait_ready(int device, int ms);
  // Returns how many batches of `device` the consumer may hold at once: slots, or `leases`, or 1.
  // The next batch reuses the slot of the batch that many steps ago, which must have been given
  // back.
  int max_leases(int device) const;

  // Returns the columns of DeviceBatch::target(): those of Source::targets(), the offsets of those
  // that vary (row/packed_values.h) and, if rows are mixed, mix_columns() behind them. Where a
  // column's shape is in pixels, it is that of batches with this BatchHeader::shape; a row has so
  // many bytes in them.
  const std::vector<TargetColumn>& targets(int shape = 0) const;

  int64_t steps_per_epoch() const;
  Step end_step() const;  // steps are [first_step, end_step)
  // Returns the state after the batches handed out so far (of the slowest device).
  LoaderState state() const;
  // Returns the first_step to resume with. Throws std::invalid_argument if `state` belongs to
  // another configuration.
  static Step resume_step(const LoaderState& state, const Loader& like);
  // The same for a loader that differs from `like` only in its seed.
  static Step resume_step(const LoaderState& state, const Loader& like, uint64_t seed);
  // Throws as resume_step() does unless the state belongs to a loader of these arguments with this
  // global batch. (continue_at() says where a loader with another one goes on.)
  static void check_state(const LoaderState& state, const Source& source,
                          const AugmentSpec& augment, const LoaderOptions& options,
                          int64_t global_batch);
  // Returns a fingerprint of what determines the pixels and their order: labels, augmentation,
  // seed, policies; the same for any batch size (unless MixSpec::per_batch is on), devices, ranks
  // and workers, and for the same samples in a folder, in shards or in a list. (LoaderState's
  // fingerprint also covers the samples' names and the global batch.)
  uint64_t fingerprint() const;
  MemoryPlan memory_plan() const;
  LoaderStats stats() const;
  void stop() noexcept;  // ends the feed from any thread: every next() returns empty
  // Internal (pipeline/exchange/remote_rows.h, which is not installed): where others take rows to
  // fill; null without LoaderOptions::remote_rows. It may outlive the loader.
  std::shared_ptr<RemoteRows> remote_rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
