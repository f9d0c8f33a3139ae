#include "tools/profile/run_timeline.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

TrackedSpan span(SpanKind kind, Step step, double begin_s, double end_s) {
  TrackedSpan result;
  result.kind = kind;
  result.step = step;
  result.begin_ns = static_cast<int64_t>(begin_s * kSecondNs);
  result.end_ns = static_cast<int64_t>(end_s * kSecondNs);
  return result;
}

// Four seconds, of which the first is warm-up.
ProfiledRun run_of(std::vector<TrackedSpan> spans) {
  ProfiledRun run;
  run.spans = std::move(spans);
  run.windows = {{Phase::warm_up, 0, kSecondNs, 1, {}},
                 {Phase::measured, kSecondNs, 4 * kSecondNs, 1, {}}};
  return run;
}

TEST(RunTimeline, AStepLongerThanASliceIsSpreadOverSlices) {
  const auto slices = timeline_of(run_of({span(SpanKind::step, 0, 0.5, 2.5)}), 100, 1, 1);
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_NEAR(slices[0].samples_per_second, 25, 1e-6);
  EXPECT_NEAR(slices[1].samples_per_second, 50, 1e-6);
  EXPECT_NEAR(slices[2].samples_per_second, 25, 1e-6);
  EXPECT_NEAR(slices[3].samples_per_second, 0, 1e-6);
  EXPECT_EQ(slices[0].phase, Phase::warm_up);
  EXPECT_EQ(slices[1].phase, Phase::measured);
}

TEST(RunTimeline, WaitsAreSharedByDevicesAndBatchesLieReadyFromCommitToLease) {
  const auto slices =
      timeline_of(run_of({span(SpanKind::input_wait, 0, 1, 2), span(SpanKind::decode, -1, 1.5, 2),
                          span(SpanKind::commit, 7, 1, 1), span(SpanKind::lease, 7, 3, 4)}),
                  10, 2, 1);
  EXPECT_NEAR(slices[1].waiting_share, 0.5, 1e-6);
  EXPECT_NEAR(slices[1].busy_workers, 0.5, 1e-6);
  EXPECT_NEAR(slices[1].ready_batches, 0.5, 1e-6);
  EXPECT_NEAR(slices[2].ready_batches, 0.5, 1e-6);
  EXPECT_NEAR(slices[3].ready_batches, 0, 1e-6);
}

}  // namespace
}  // namespace stoker
