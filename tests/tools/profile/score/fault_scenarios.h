// The faults that a profiler is scored on: feeds in which one stage is too slow, the name of that
// stage, and the same feeds with a change applied. Rates are derived from the CPU time that a
// sample takes on this machine, so that a fault limits the feed on any machine with two cores.
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
  SlowReads reads;  // if a field is set, a SlowSource wraps the source
  AugmentSpec augment;
  LoaderOptions loader;
  double demand = 0;   // images/s
  double copy_s = 0;   // > 0: seconds that the device takes for a copy
  int neighbours = 0;  // busy processes beside the feed
  int cores = 0;       // > 0: the feed may use only this many
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
  std::vector<FaultScenario> scenarios() const;
  double sample_cpu_s() const { return row_s_; }

 private:
  double cost_of(const Source& source, const AugmentSpec& augment) const;
  FaultyFeed plain() const;

  AugmentSpec augment_, colours_;
  std::unique_ptr<Source> pictures_, small_, mixed_;
  double row_s_ = 0, coloured_s_ = 0, mixed_s_ = 0;  // CPU time
};

// Applies `change` to `feed`. Returns false if that is impossible on this machine.
bool apply_change(const FeedChange& change, FaultyFeed& feed);

}  // namespace stoker
