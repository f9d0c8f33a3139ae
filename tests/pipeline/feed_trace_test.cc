// The spans that a Tracer gets from a feed. Neither the Tracer nor a changing number of workers
// changes a pixel.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "pipeline/measure_hooks.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/one_core.h"

namespace stoker::testing {
namespace {

LoaderOptions traced_options(int workers, Tracer* tracer = nullptr) {
  return {.batch_size = 4,
          .seed = 9,
          .epochs = 3,
          .feed = {.workers = workers},
          .digests = true,
          .tracer = tracer};
}

TEST(FeedTrace, OneCoreGivesOneWorker) {
  int workers = 0;
  on_one_core([&] {
    const auto source = jpeg_source(12);
    Tracer tracer;
    {
      Feed feed(*source, crop_spec(), traced_options(-1, &tracer));
      feed.all();
    }
    for (const TraceTrack& track : tracer.tracks()) workers += track.name.starts_with("worker ");
  });
  EXPECT_EQ(workers, 1);
}

TEST(FeedTrace, EveryRowOfEveryBatchIsToldOfByItsStepAndSample) {
  const auto source = jpeg_source(12);
  for (SampleId id = 0; id < 12; id += 2) source->cache(id);
  for (const int io_threads : {0, 2}) {
    Tracer tracer;
    LoaderOptions options = traced_options(2, &tracer);
    options.feed.io_threads = io_threads;
    std::vector<Delivered> batches;
    {
      Feed feed(*source, crop_spec(), options);
      batches = feed.all();
    }
    std::vector<TrackedSpan> spans;
    tracer.drain(spans);
    ASSERT_EQ(tracer.dropped(), 0);
    std::map<SpanKind, std::multiset<std::pair<Step, SampleId>>> told;
    std::map<std::pair<Step, SampleId>, int64_t> decoded;  // end of the decode span
    for (const TrackedSpan& span : spans) {
      if (span.kind == SpanKind::decode) decoded[{span.step, span.sample}] = span.end_ns;
    }
    for (const TrackedSpan& span : spans) {
      EXPECT_GE(span.end_ns, span.begin_ns);
      if (span.sample >= 0) told[span.kind].insert({span.step, span.sample});
      if (span.kind == SpanKind::decode) {
        EXPECT_GE(span.cpu_ns, 0);
      }
      if (span.kind == SpanKind::pixels) {
        EXPECT_EQ(span.begin_ns, (decoded[{span.step, span.sample}]));
      }
    }
    std::multiset<std::pair<Step, SampleId>> rows;
    for (const Delivered& batch : batches) {
      for (const DeliveredRow& row : batch.rows) rows.insert({batch.step, row.id});
    }
    ASSERT_EQ(rows.size(), 36u);
    EXPECT_EQ(told[SpanKind::cached_read].empty(), io_threads == 0);
    told[SpanKind::read].merge(told[SpanKind::cached_read]);
    for (const SpanKind kind : {SpanKind::read, SpanKind::decode, SpanKind::pixels}) {
      EXPECT_EQ(told[kind], rows) << to_string(kind) << ", " << io_threads << " I/O threads";
    }
  }
}

TEST(FeedTrace, AChangingNumberOfWorkersChangesNoPixel) {
  const auto source = jpeg_source(19);
  std::vector<Delivered> plain;
  {
    Feed feed(*source, crop_spec(), traced_options(2));
    plain = feed.all();
  }
  Tracer tracer;
  LoaderOptions options = traced_options(2, &tracer);
  MeasureHooks measure{.spare_workers = 2};
  options.measure = &measure;
  Feed feed(*source, crop_spec(), options);
  std::vector<Delivered> changed;
  for (int turn = 0;; ++turn) {
    measure.limit_workers(turn % 6);  // 0 and 5 are out of range
    const std::vector<Delivered> next = feed.take(1);
    if (next.empty()) break;
    changed.insert(changed.end(), next.begin(), next.end());
  }
  EXPECT_EQ(changed, plain);
}

}  // namespace
}  // namespace stoker::testing
