// pipeline: files and records -> batches on devices. This is the folder's door.
//
// A Loader joins Source, Sampler, Augmenter, the flow graph (or none: 0 workers run inline in
// next()), one PinnedRing and one Stager per device. Batches of a device come in step order; the
// ring never drains between epochs. Pixels are a pure function of (seed, epoch, sample id) for any
// number of workers, devices, ranks, batch size and resume point. Owner: the user; source and
// devices outlive it. Threads: one consumer per device; with workers the devices advance together,
// so that none may get more than ring_depth + slots steps ahead of what another has given back.
// Errors: the constructor
// throws std::invalid_argument / std::runtime_error with path and numbers; next() throws
// std::runtime_error when the budget of bad samples is spent (every later call throws the same).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/invalid_field.h"
#include "pipeline/loader_types.h"
#include "pipeline/source/source.h"
#include "staging/device.h"
#include "staging/device_batch.h"

namespace stoker {

class Loader {
 public:
  // Throws std::invalid_argument (InvalidField where one field is to blame) as the constructor
  // would of these, without allocating a batch or touching a file.
  static void check(const Source& source, const AugmentSpec& augment,
                    const std::vector<Device*>& devices, const LoaderOptions& options);
  Loader(const Source& source, const AugmentSpec& augment, std::vector<Device*> devices,
         const LoaderOptions& options);
  ~Loader();  // stops at any time, within the time of the rows under way
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch of `device` (index into devices), leased on `compute`; empty when the feed has
  // ended.
  DeviceBatch next(int device, Stream& compute);
  // Blocks for at most `ms` milliseconds; whether next(device) would not wait for the feed now. For
  // consumers that must look after something else (an interrupt) while they wait.
  bool wait_ready(int device, int ms);
  // How many batches of `device` the consumer may hold at once: slots, or `leases`, or 1. The next
  // batch needs the slot of the one so many steps ago: that one must have been given back.
  int max_leases(int device) const;

  int64_t steps_per_epoch() const;
  Step end_step() const;  // steps are [first_step, end_step)
  // After the batches handed out so far (the slowest device's).
  LoaderState state() const;
  // Throws std::invalid_argument if `state` is of another configuration; returns the first_step to
  // use.
  static Step resume_step(const LoaderState& state, const Loader& like);
  // The same for a loader that differs from `like` in its seed alone.
  static Step resume_step(const LoaderState& state, const Loader& like, uint64_t seed);
  // Of what determines the pixels and their order: source, augmentation, seed, policies; the same
  // for any batch size, devices, ranks and workers. (LoaderState's covers the global batch too.)
  uint64_t fingerprint() const;
  MemoryPlan memory_plan() const;
  LoaderStats stats() const;
  void stop() noexcept;  // ends the feed from any thread: every next() returns empty

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
