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
      ops_.end_capture();  // so that the stream runs queued work again
    } catch (const std::runtime_error&) {
      // The first error is the one to report.
    }
    throw;
  }
  return ops_.end_capture();
}

}  // namespace stoker
