// Why the device waits: which stage limits a run, how sure that is, what it rests on, and what
// would change it. A stage limits if the run gets faster once the stage costs nothing (FeedWhatIf);
// that is tried for each stage. A pure function of what was measured; what was not is listed as
// unknown.
#pragma once

#include <string>
#include <vector>

#include "tools/profile/feed_whatif.h"
#include "tools/profile/storage_probe.h"

namespace stoker {

enum class Limit : uint8_t {
  device,      // nothing starves it: it computes all the time
  storage,     // it cannot give more, however many ask
  io_threads,  // it could, but too few ask
  decode,
  pixels,      // augmentation after the decoding
  ring_depth,  // each side waits for the other in turn: too few batches lie between them
  copy,        // to the device
  stolen_cpu,  // the workers wait for cores that others use
  launch,      // the thread that queues the device's work is late
  unknown,
};
inline constexpr int kLimits = static_cast<int>(Limit::unknown) + 1;
const char* to_string(Limit limit);
const char* describe(Limit limit);  // for a sentence: "decoding limits"

struct ProfileMeasurements {
  FeedShape shape;
  RunMeasurements measured;  // as it is
  RunMeasurements replayed;  // the same batch again: steps == 0 where not measured
  RunMeasurements other;     // with other_workers
  int other_workers = 0;     // 0: not measured
  StorageRates storage;
  int64_t dropped_spans = 0;
  std::string no_gpus;  // why there are no figures of GPUs; "" where there are
};

struct Evidence {
  std::string text;
  std::string measured_by;
};

struct Recommendation {
  std::string what;  // "+3 workers"
  FeedChange change;
  double rows_per_second = 0;
  double waiting_share = 0;
};

struct StageGain {
  Limit stage;
  double gain = 0;  // of the rate, were the stage free
};

struct Verdict {
  Limit limit = Limit::unknown;
  std::string detail;     // what a word cannot say: "the cores are all busy", "1% of the files ..."
  double confidence = 0;  // 0 to 1
  std::string confidence_text;
  double waiting_share = 0;
  double bound_rows_per_second = -1;  // of the steps without input
  double feed_rows_per_second = -1;   // of the feed without the step (modelled)
  double model_error = 0;             // relative
  double experiment_error = 0;        // of the model with other_workers, relative
  bool experiment_done = false;
  std::vector<StageGain> gains;                 // the largest first
  std::vector<Recommendation> recommendations;  // what this machine can do, the best first
  std::vector<Recommendation> larger_machine;   // what it would take that this one has not
  std::vector<Evidence> evidence;
  std::vector<std::string> unknown;
};

Verdict diagnose(const ProfileMeasurements& profile);

}  // namespace stoker
