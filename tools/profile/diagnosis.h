// Why the device waits: the verdict says which stage limits a run, how sure that is, what the
// evidence is, and which changes are recommended. A stage limits if the run gets faster when the
// stage costs nothing (FeedWhatIf); that is tried for each stage. diagnose() is a pure function of
// the measurements; what was not measured is listed as unknown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/store/store_stats.h"
#include "tools/profile/feed_whatif.h"
#include "tools/profile/storage_probe.h"

namespace stoker {

enum class Limit : uint8_t {
  device,      // the device computes all the time: nothing starves it
  storage,     // storage delivers no more, however many threads read
  io_threads,  // storage could deliver more, but too few threads read
  decode,      // the workers decode too slowly
  pixels,      // the augmentation after the decoding takes too long
  ring_depth,  // feed and step wait for each other in turn: too few batches are between them
  copy,        // the copy to the device takes too long
  stolen_cpu,  // the workers wait for cores that other programs use
  launch,      // the thread that queues the device's work is late
  unknown,     // nothing that was measured limits
};
inline constexpr int kLimits = static_cast<int>(Limit::unknown) + 1;
const char* to_string(Limit limit);
const char* describe(Limit limit);  // the subject of a sentence: "decoding" of "decoding limits"

struct ProfileMeasurements {
  FeedShape shape;
  RunMeasurements measured;  // the run as it is
  RunMeasurements replayed;  // with the same batch again and again; steps == 0: not measured
  RunMeasurements other;     // with `other_workers` workers
  int other_workers = 0;     // 0: not measured
  StorageRates storage;
  std::optional<StoreStats> store;  // of samples in a store
  int64_t dropped_spans = 0;
  std::string no_gpus;  // why there are no figures of GPUs; "" where there are
  NoEnergy no_energy;
};

// A sentence of the verdict, and the measurement that it is based on.
struct Evidence {
  std::string text;
  std::string measured_by;
};

// A change, and what the model predicts with it.
struct Recommendation {
  std::string what;  // "+3 workers"
  FeedChange change;
  double samples_per_second = 0;
  double low = 0, high = 0;  // how far that may be off: samples/s
  double waiting_share = 0;  // of a step, 0 to 1
};

struct StageGain {
  Limit stage;
  double gain = 0;  // of the rate if the stage cost nothing, relative: 0.2 is 20 %
};

struct Verdict {
  Limit limit = Limit::unknown;
  std::string detail;  // a second sentence: "all 2 cores ... are busy with it: ..."; may be empty
  double confidence = 0;  // 0 to 1
  std::string confidence_text;
  double waiting_share = 0;              // of a step, 0 to 1
  double bound_samples_per_second = -1;  // the steps' rate without their input; -1: not measured
  double feed_samples_per_second = -1;   // the feed's rate without the step (modelled)
  double model_error = 0;                // of the model against the measured rate, relative
  double experiment_error = 0;  // of the model against the run with other_workers, relative
  bool experiment_done = false;
  double doubt = 0;                             // how far predictions may be off, relative
  std::vector<StageGain> gains;                 // the largest first
  std::vector<Recommendation> recommendations;  // for this machine, the best first
  std::vector<Recommendation> larger_machine;   // for a larger machine only
  std::vector<Evidence> evidence;
  std::vector<std::string> unknown;
};

Verdict diagnose(const ProfileMeasurements& profile);

}  // namespace stoker
