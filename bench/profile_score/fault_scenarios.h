// The faults that a profiler is scored on: feeds in which one thing is wrong, which stage that is,
// and the same feeds with it put right. Rates follow from the CPU time that a row takes here, so
// that a fault is one on any machine with two cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/profile_score/injected_faults.h"
#include "pipeline/loader.h"
#include "tools/profile/diagnosis.h"

namespace stoker {

// A feed to run. Pointers are to what ScenarioData owns.
struct FaultyFeed {
  const Source* source = nullptr;
  SlowReads reads;  // SlowSource around it, where any is set
  AugmentSpec augment;
  LoaderOptions loader;
  double demand = 0;   // images/s
  double copy_s = 0;   // > 0: on a device that copies so slowly
  int neighbours = 0;  // busy processes
  int cores = 0;       // > 0: of them only
};

struct FaultScenario {
  std::string name;
  Limit expected;
  FaultyFeed feed;
  double length = 1;  // times the usual seconds: what is rare needs longer to be seen
};

// The pictures, and what a row of them costs.
class ScenarioData {
 public:
  ScenarioData();
  std::vector<FaultScenario> scenarios() const;
  double row_cpu_s() const { return row_s_; }

 private:
  double cost_of(const Source& source, const AugmentSpec& augment) const;
  FaultyFeed plain() const;

  AugmentSpec augment_, colours_;
  std::unique_ptr<Source> pictures_, small_, mixed_;
  double row_s_ = 0, coloured_s_ = 0, mixed_s_ = 0;  // CPU time
};

// `feed` with `change`, as far as it can really be done here. False if it cannot.
bool apply_change(const FeedChange& change, FaultyFeed& feed);

}  // namespace stoker
