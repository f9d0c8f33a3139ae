// A session ends by the number of spans where there are many: it keeps a bounded number of them.
#include "tools/profile/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace stoker {
namespace {

TEST(ProfileSession, EveryPhaseHasItsShareOfTheSpans) {
  constexpr size_t kMostSpans = size_t{2} << 20;
  Tracer tracer;
  ProfileSession session({.seconds = 1e6, .workers = 2}, tracer);
  std::atomic<bool> stopped = false;
  session.start({.limit_workers = [](int) {}, .stop = [&] { stopped = true; }});
  std::thread run([&] {
    for (Step step = 0; !stopped; ++step) {
      const SpanTimer timer(&tracer, SpanKind::step, step);
    }
  });
  run.join();
  const ProfiledRun result = session.finish();
  EXPECT_LE(result.spans.size(), kMostSpans);
  for (const Phase phase : {Phase::measured, Phase::other_workers, Phase::replayed}) {
    const auto windows = windows_of(result, phase);
    ASSERT_EQ(windows.size(), phase == Phase::measured ? 2u : 1u);
    for (const PhaseWindow& window : windows) {
      const auto inside =
          std::count_if(result.spans.begin(), result.spans.end(),
                        [&](const Span& span) { return ends_inside(span, {window}); });
      EXPECT_GT(inside, 100'000) << to_string(phase);
    }
  }
}

}  // namespace
}  // namespace stoker
