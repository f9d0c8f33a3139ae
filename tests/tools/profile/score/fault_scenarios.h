// The feeds that a profiler is scored on, the name of the stage that limits each, and the same
// feeds with a change applied: with one fault each, and under conditions that machines and data
// sets have. Rates are derived from the CPU time that a sample takes on this machine, so that a
// fault limits the feed on any machine with two cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "tests/tools/profile/score/injected_faults.h"
#include "tools/profile/diagnosis.h"

namespace stoker {

// A feed to run. Pointers are to what ScenarioData owns.
struct FaultyFeed {
  const Source* source = nullptr;
  SlowReads reads;                         // if a field is set, a SlowSource wraps the source
  const StoredPictures* stored = nullptr;  // instead of `source`
  bool in_store = false;                   // whether they are read from a store
  SlowStore store;
  AugmentSpec augment;
  LoaderOptions loader;
  double demand = 0;         // images/s
  double copy_s = 0;         // > 0: seconds that the device takes for a copy
  int neighbours = 0;        // busy processes beside the feed
  int cores = 0;             // > 0: the feed may use only this many
  double quota = 0;          // > 0: of cores
  double decoded_share = 0;  // of the samples, that a DecodedCache keeps
};

struct FaultScenario {
  std::string name;
  Limit expected;
  FaultyFeed feed;
  double length = 1;  // times the usual seconds; a rare fault needs longer to be seen
};

// The pictures, and the CPU time that a sample of them takes.
class ScenarioData {
 public:
  ScenarioData();
  std::vector<FaultScenario> faults() const;
  std::vector<FaultScenario> conditions() const;
  double sample_cpu_s() const { return row_s_; }

 private:
  double cost_of(const Source& source, const AugmentSpec& augment) const;
  FaultyFeed plain() const;
  FaultyFeed on_one_worker(const Source& source, double row_s) const;

  AugmentSpec augment_, colours_;
  std::unique_ptr<Source> pictures_, small_, mixed_, tenth_, half_, all_sizes_;
  std::unique_ptr<StoredPictures> stored_;
  // CPU time of a sample
  double row_s_ = 0, coloured_s_ = 0, mixed_s_ = 0, tenth_s_ = 0, half_s_ = 0, all_sizes_s_ = 0;
};

// Applies `change` to `feed`. Returns false if that is impossible on this machine.
bool apply_change(const FeedChange& change, FaultyFeed& feed);

}  // namespace stoker
