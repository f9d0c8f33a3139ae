// The flow graph's threads: their number, their end, and the effect of slow samples and consumers.
#include "pipeline/feed/feed_graph.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

using std::chrono::milliseconds;

LoaderOptions graph_options(int workers, int batch = 4) {
  return {.batch_size = batch, .seed = 9, .feed = {.workers = workers}};
}

int threads_of_this_process() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                        std::filesystem::directory_iterator()));
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// (6) Stopping after every step is clean, by the destructor and by stop(), with and without reads.
TEST(FeedGraph, StoppingAtEveryStepIsClean) {
  const auto files = jpeg_source(19);
  for (SampleId id = 0; id < 19; id += 3) files->cache(id);
  const auto raw = make_synthetic_source(19, {16, 16}, 3, 1);
  for (const bool is_file : {true, false}) {
    const Source& source = is_file ? *static_cast<Source*>(files.get()) : *raw;
    const AugmentSpec augment = is_file ? crop_spec() : pad_spec();
    for (const int workers : {0, 1, 2, 8}) {
      for (int steps = 0; steps <= 10; ++steps) {
        LoaderOptions options = graph_options(workers);
        options.epochs = 2;
        options.slots = steps % 4;
        options.ring_depth = 1 + steps % 3;
        options.feed.io_threads = (steps + 1) % 3;
        Feed feed(source, augment, options, 1 + steps % 2,
                  workers == 2 ? DeviceKind::nasty : DeviceKind::host);
        feed.take(steps);
        if (steps % 3 == 0) feed.loader().stop();
        if (steps % 3 == 1) be_late(std::chrono::microseconds(300));
      }
    }
  }
}

TEST(FeedGraph, StoppingAmidSlowReadsWaitsForThemOnly) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers have threads and a pace of their own";
  const auto source = jpeg_source(64);
  source->delay_all(milliseconds(20));
  int64_t before = 0;
  {
    Feed feed(*source, crop_spec(), graph_options(2, 64));
    EXPECT_TRUE(wait_until([&] { return source->reads() > 2; }));
    before = source->reads();
  }
  // Not the 4 * 64 planned rows, nor the 16 of a ticket.
  EXPECT_LT(source->reads() - before, 12);
}

TEST(FeedGraph, HasExactlyTheThreadsThatWereAskedFor) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers have threads and a pace of their own";
  const auto source = jpeg_source(64);
  const int before = threads_of_this_process();
  LoaderOptions options = graph_options(5);
  options.epochs = -1;
  options.feed.io_threads = 3;
  options.slots = 0;
  Feed feed(*source, crop_spec(), options);
  const int device_threads = 1;  // for the compute stream
  feed.take(100);
  EXPECT_EQ(threads_of_this_process(), before + 5 + 3 + 1 + device_threads);
}

// The workers decode at the same time: with 0 I/O threads, reads show how many are under way.
TEST(FeedGraph, AllWorkersWorkTogether) {
  const auto source = jpeg_source(40);
  source->delay_all(milliseconds(2));
  LoaderOptions options = graph_options(6);
  options.feed.io_threads = 0;
  options.epochs = 2;
  Feed(*source, crop_spec(), options).all();
  EXPECT_EQ(source->most_at_once(), 6);
}

// Also if they slept before, because the workers could not keep up.
TEST(FeedGraph, AllIoThreadsReadTogetherWhenReadingIsSlow) {
  const auto source = jpeg_source(200);
  for (SampleId id = 100; id < 200; ++id) source->delay(id, milliseconds(3));
  LoaderOptions options = graph_options(1, 8);
  options.shuffle = false;
  options.feed.io_threads = 4;
  options.epochs = 1;
  // On a busy machine one of them may start late for as long as reading is slow.
  for (int attempt = 0; attempt < 10 && source->most_at_once() < 4; ++attempt) {
    Feed(*source, crop_spec(), options).all();
  }
  EXPECT_EQ(source->most_at_once(), 4);
}

// Workers read the files that are in memory; the rest goes through the I/O threads. Nothing else
// depends on it.
TEST(FeedGraph, WorkersReadWhatLiesInMemory) {
  constexpr int kSamples = 41;
  LoaderOptions options = graph_options(2);
  options.epochs = 3;
  options.feed.on_bad_sample = OnBadSample::substitute;
  options.feed.max_bad = 0.5;
  const auto spoil = [](FakeSource& source) {
    source.fail(7);
    source.fail(8);
    source.replace(9, text_bytes("no picture"));
  };
  const auto plain = jpeg_source(kSamples);
  spoil(*plain);
  const std::vector<Delivered> expected = Feed(*plain, crop_spec(), options).all();
  ASSERT_EQ(plain->cached_reads(), 0);
  for (const int every : {1, 2, 5}) {
    for (const int workers : {1, 3}) {
      const auto source = jpeg_source(kSamples);
      spoil(*source);
      for (SampleId id = 0; id < kSamples; id += every) source->cache(id);
      options.feed.workers = workers;
      Feed feed(*source, crop_spec(), options);
      EXPECT_EQ(feed.all(), expected) << every << ", " << workers;
      const LoaderStats stats = feed.loader().stats();
      EXPECT_EQ(stats.read.items + stats.cached_read.items, stats.decode.items);
      EXPECT_GT(stats.cached_read.items, 0);
      EXPECT_GT(stats.cached_read.service_ns, 0);
    }
  }
  const auto source = jpeg_source(kSamples);
  for (SampleId id = 0; id < kSamples; ++id) source->cache(id);
  Feed(*source, crop_spec(), options).all();
  EXPECT_EQ(source->reads(), 0) << "all of it lies in memory";
}

// Looking costs time: workers stop while nothing is in memory, and notice when something is.
TEST(FeedGraph, WorkersStopLookingForWhatDoesNotLieInMemory) {
  constexpr int kSamples = 4000, kBatch = 4, kFirstCached = 3000;
  const auto source = jpeg_source(kSamples);
  for (SampleId id = kFirstCached; id < kSamples; ++id) source->cache(id);
  LoaderOptions options = graph_options(2, kBatch);
  options.shuffle = false;
  options.epochs = static_cast<double>(kFirstCached) / kSamples;
  {
    Feed feed(*source, crop_spec(), options);
    feed.all();
  }
  // 16 tries without success, some more that were under way, then one of 32; a ticket has 4 rows.
  EXPECT_LT(source->tries(), 16 + 64 + kFirstCached / 4 / 32);
  EXPECT_EQ(source->cached_reads(), 0);
  options.epochs = 1;
  Feed feed(*source, crop_spec(), options);
  feed.all();
  EXPECT_GT(source->cached_reads(), (kSamples - kFirstCached) / 2);
}

TEST(FeedGraph, OneSlowSampleReordersNothing) {
  const auto source = jpeg_source(40);
  LoaderOptions options = graph_options(2);
  options.epochs = 2;
  const std::vector<Delivered> expected = Feed(*source, crop_spec(), options).all();
  source->delay(17, milliseconds(50));
  for (const int io_threads : {0, 1, 2}) {
    options.feed.io_threads = io_threads;
    EXPECT_EQ(Feed(*source, crop_spec(), options).all(), expected);
  }
}

// The batches of a consumer that takes 20 ms for each, and the CPU time of the process meanwhile.
struct SlowRun {
  std::vector<Delivered> batches;
  double cpu_s = 0;
};

SlowRun consume_slowly(Source& source, const LoaderOptions& options) {
  Feed feed(source, pad_spec(), options);
  SlowRun run;
  const double before = cpu_seconds();
  for (Delivered batch; feed.next(batch);) {
    run.batches.push_back(batch);
    std::this_thread::sleep_for(milliseconds(2));  // longer than an idle TBB thread spins
  }
  run.cpu_s = cpu_seconds() - before;
  return run;
}

TEST(FeedGraph, ASlowConsumerChangesNothing) {
  const auto source = make_synthetic_source(200, {16, 16}, 3, 1);
  const LoaderOptions options = graph_options(4, 16);
  EXPECT_EQ(consume_slowly(*source, options).batches, Feed(*source, pad_spec(), options).all());
}

TEST(FeedGraph, ASlowConsumerCostsNoCpu) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers have threads and a pace of their own";
  const auto source = make_synthetic_source(200, {16, 16}, 3, 1);
  double cheapest_s = 1;
  for (int attempt = 0; attempt < 10 && cheapest_s >= 0.02; ++attempt) {  // a busy machine
    cheapest_s = std::min(cheapest_s, consume_slowly(*source, graph_options(4, 16)).cpu_s);
  }
  // 13 steps: idle TBB threads would spin for some 0.7 ms each per step, 40 ms in all.
  EXPECT_LT(cheapest_s, 0.02);
}

TEST(FeedGraph, TwoLoadersAtOnceDoNotMeet) {
  const auto files = jpeg_source(40);
  const auto raw = make_synthetic_source(301, {16, 16}, 3, 1);
  LoaderOptions options = graph_options(2);
  options.epochs = 3;
  const std::vector<Delivered> expected_files = Feed(*files, crop_spec(), options).all();
  const std::vector<Delivered> expected_raw = Feed(*raw, pad_spec(), options).all();
  for (int round = 0; round < 3; ++round) {
    std::vector<Delivered> from_files, from_raw;
    std::thread other([&] { from_files = Feed(*files, crop_spec(), options).all(); });
    from_raw = Feed(*raw, pad_spec(), options).all();
    other.join();
    EXPECT_EQ(from_files, expected_files);
    EXPECT_EQ(from_raw, expected_raw);
  }
}

// An exception of the environment in a worker or an I/O thread reaches next().
class ThrowingSource final : public ForwardingSource {
 public:
  explicit ThrowingSource(std::unique_ptr<Source> source)
      : ForwardingSource(*source), kept_(std::move(source)) {}
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    if (id == 13) throw std::bad_alloc();
    return source_.read(id, buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    if (cached_) read(id, buffer, bytes);
    return cached_;
  }
  void set_cached() { cached_ = true; }

 private:
  bool cached_ = false;
  const std::unique_ptr<Source> kept_;
};

TEST(FeedGraph, ErrorsOfTheEnvironmentReachTheConsumer) {
  ThrowingSource files(jpeg_source(20));
  const ThrowingSource raw(make_synthetic_source(20, {16, 16}, 3, 1));
  for (const int workers : {0, 2}) {
    for (const int io_threads : {0, 2}) {
      LoaderOptions options = graph_options(workers);
      options.feed.io_threads = io_threads;
      Feed feed(files, crop_spec(), options, 2);
      EXPECT_THROW(feed.all(), std::bad_alloc);
      EXPECT_THROW(feed.all(), std::bad_alloc);
      Feed other(raw, pad_spec(), options);
      EXPECT_THROW(other.all(), std::bad_alloc);
    }
  }
  files.set_cached();
  Feed feed(files, crop_spec(), graph_options(2), 2);
  EXPECT_THROW(feed.all(), std::bad_alloc);
}

}  // namespace
}  // namespace stoker::testing
