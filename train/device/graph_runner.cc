#include "train/device/graph_runner.h"

#include <stdexcept>

namespace stoker {

void GraphRunner::run(std::unique_ptr<DeviceGraph>& graph, bool ready,
                      const std::function<void()>& work) {
  if (!wanted_ || !ready || !problem_.empty()) return work();
  if (graph == nullptr) {
    try {
      graph = capture(work);
    } catch (const std::runtime_error& error) {
      problem_ = error.what();
      return work();
    }
  }
  graph->launch();
}

std::unique_ptr<DeviceGraph> GraphRunner::capture(const std::function<void()>& work) {
  ops_.begin_capture();
  try {
    work();
  } catch (...) {
    try {
      ops_.end_capture();  // the stream must run again what is queued
    } catch (const std::runtime_error&) {
      // Says no more than what was thrown first.
    }
    throw;
  }
  return ops_.end_capture();
}

}  // namespace stoker
