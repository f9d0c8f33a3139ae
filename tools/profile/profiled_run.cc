#include "tools/profile/profiled_run.h"

#include <algorithm>

namespace stoker {

const char* to_string(Phase phase) {
  static constexpr const char* kNames[] = {"warm-up", "settling", "measured", "other workers",
                                           "replayed"};
  return kNames[static_cast<int>(phase)];
}

std::vector<PhaseWindow> windows_of(const ProfiledRun& run, Phase phase) {
  std::vector<PhaseWindow> result;
  for (const PhaseWindow& window : run.windows) {
    if (window.phase == phase) result.push_back(window);
  }
  return result;
}

bool ends_inside(const Span& span, const std::vector<PhaseWindow>& windows) {
  return std::any_of(windows.begin(), windows.end(), [&](const PhaseWindow& window) {
    return span.end_ns >= window.begin_ns && span.end_ns < window.end_ns;
  });
}

}  // namespace stoker
