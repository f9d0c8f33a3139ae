// Runs queued work as captured graphs if possible. If a capture fails, all work is queued without
// graphs from then on: slower, with the same results, and problem() says why. Owner: DeviceEngine.
// Threads: the engine's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "train/device/ops.h"

namespace stoker {

class GraphRunner {
 public:
  GraphRunner(DeviceOps& ops, bool wanted) : ops_(ops), wanted_(wanted) {}

  // Runs `work`; if it is `ready` (it has loaded everything that it loads lazily), as a graph,
  // which is stored in `graph`.
  void run(std::unique_ptr<DeviceGraph>& graph, bool ready, const std::function<void()>& work);
  const std::string& problem() const { return problem_; }  // "" if there is none

 private:
  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work);

  DeviceOps& ops_;
  const bool wanted_;
  std::string problem_;
};

}  // namespace stoker
