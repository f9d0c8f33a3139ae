// The Tracer keeps the spans of each thread in order, within its bound, and does not mix them up.

#include "staging/tracer.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "staging/pinned_ring.h"
#include "staging/stager.h"
#include "tests/support/wait_until.h"

namespace stoker {
namespace {

Span span_of(Step step, SpanKind kind = SpanKind::read) {
  Span span;
  span.kind = kind;
  span.step = step;
  return span;
}

TEST(Tracer, KeepsEachThreadsSpansInOrderWhileTheyAreDrained) {
  constexpr int kThreads = 3;
  constexpr Step kSpans = 20000;
  Tracer tracer(64);
  std::vector<TrackedSpan> spans;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        tracer.name_thread("thread " + std::to_string(i));
        for (Step step = 0; step < kSpans; ++step) tracer.add(span_of(step));
      });
    }
    for (int i = 0; i < 1000; ++i) tracer.drain(spans);
  }
  tracer.drain(spans);
  ASSERT_EQ(tracer.tracks().size(), size_t{kThreads});
  std::map<int, Step> last;
  for (const TrackedSpan& span : spans) {
    if (last.count(span.track)) {
      EXPECT_GT(span.step, last[span.track]);
    }
    last[span.track] = span.step;
  }
  EXPECT_EQ(std::ssize(spans) + tracer.dropped(), kThreads * kSpans);
}

TEST(Tracer, DropsAndCountsWhatFindsNoRoom) {
  Tracer tracer(4);
  for (Step step = 0; step < 7; ++step) tracer.add(span_of(step));
  EXPECT_EQ(tracer.dropped(), 3);
  std::vector<TrackedSpan> spans;
  tracer.drain(spans);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[3].step, 3);
  tracer.add(span_of(9));
  tracer.drain(spans);
  EXPECT_EQ(spans.back().step, 9);
}

TEST(Tracer, TwoInOneThreadAreTwo) {
  Tracer first, second;
  std::vector<TrackedSpan> spans;
  for (Step step = 0; step < 3; ++step) {
    first.add(span_of(step));
    second.add(span_of(10 + step));
  }
  first.drain(spans);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[2].step, 2);
  EXPECT_EQ(first.tracks().size(), 1u);
}

TEST(SpanTimer, MeasuresTheBlockAndItsCpuTime) {
  Tracer tracer;
  {
    const SpanTimer timer(&tracer, SpanKind::update, 3, 1, SpanTimer::Cpu::measure);
    std::thread([] { spin_for(std::chrono::milliseconds(20)); }).join();
  }
  { const SpanTimer nobody(nullptr, SpanKind::update, 4); }
  std::vector<TrackedSpan> spans;
  tracer.drain(spans);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].step, 3);
  EXPECT_EQ(spans[0].device, 1);
  EXPECT_GE(spans[0].end_ns - spans[0].begin_ns, 20'000'000);
  EXPECT_LT(spans[0].cpu_ns, 10'000'000);  // the thread waited
}

// Every batch leaves one copy span and one lease span with its number.
TEST(Tracer, StagerTellsOfCopiesAndLeases) {
  const auto device = make_host_device();
  Tracer tracer;
  PinnedRing ring(*device, BatchLayout({.rows = 4, .height = 8, .width = 8}), 2);
  constexpr Step kSteps = 6;
  std::thread filler([&] {
    for (Step step = 0; step < kSteps && ring.wait_free(step); ++step) {
      ring.begin(step);
      ring.commit(step);
    }
  });
  {
    const auto compute = device->make_stream();
    Stager stager(*device, ring, 2, 0, kSteps, 1, &tracer, 5);
    while (const DeviceBatch batch = stager.next(*compute)) batch.synchronize();
  }
  filler.join();
  std::vector<TrackedSpan> spans;
  tracer.drain(spans);
  std::map<SpanKind, std::vector<Step>> steps;
  for (const TrackedSpan& span : spans) {
    if (span.kind == SpanKind::copy || span.kind == SpanKind::lease) {
      EXPECT_EQ(span.device, 5);
      EXPECT_GT(span.begin_ns, 0);
      EXPECT_GE(span.end_ns, span.begin_ns);
      steps[span.kind].push_back(span.step);
    }
  }
  const std::vector<Step> all = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(steps[SpanKind::copy], all);
  EXPECT_EQ(steps[SpanKind::lease], all);
}

}  // namespace
}  // namespace stoker
