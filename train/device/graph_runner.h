// Runs queued work as captured graphs where that can be. Where a capture fails, everything is
// queued piece by piece for good: slower, the same numbers, and problem() says why.
// Owner: DeviceEngine. Threads: the engine's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "train/device/ops.h"

namespace stoker {

class GraphRunner {
 public:
  GraphRunner(DeviceOps& ops, bool wanted) : ops_(ops), wanted_(wanted) {}

  // Runs `work`; as a graph, kept in `graph`, if it is `ready`: all that it loads lazily is loaded.
  void run(std::unique_ptr<DeviceGraph>& graph, bool ready, const std::function<void()>& work);
  const std::string& problem() const { return problem_; }  // ""

 private:
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work);

  DeviceOps& ops_;
  const bool wanted_;
  std::string problem_;
};

}  // namespace stoker
