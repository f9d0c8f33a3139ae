// The Loader as its users see it: what it refuses, its state, how it ends, where its batches are.
#include "pipeline/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "pipeline/receipt/receipt.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_device.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

LoaderOptions loader_options(int workers = 2) {
  return {.batch_size = 4, .feed = {.workers = workers}};
}

class LoaderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> source_ = make_synthetic_source(30, {8, 8}, 3, 1);
  const AugmentSpec augment_ = pad_spec(8);
};

TEST_F(LoaderTest, RefusesBadOptionsWithTheNumbers) {
  const auto message = [&](auto change, int devices = 1) {
    LoaderOptions options = loader_options();
    change(options);
    return thrown_by<std::invalid_argument>(
        [&] { Feed feed(*source_, augment_, options, devices); });
  };
  using O = LoaderOptions&;
  EXPECT_THAT(message([](O) {}, 0), HasSubstr("no devices"));
  EXPECT_THAT(message([](O o) { o.batch_size = 0; }), HasSubstr("batch_size is 0"));
  EXPECT_THAT(message([](O o) { o.ring_depth = 0; }), HasSubstr("ring_depth is 0"));
  EXPECT_THAT(message([](O o) { o.slots = 4; }), HasSubstr("slots is 4, must be -1 to 3"));
  EXPECT_THAT(message([](O o) { o.feed.workers = -2; }), HasSubstr("workers is -2"));
  EXPECT_THAT(message([](O o) { o.feed.io_threads = -1; }), HasSubstr("io_threads is -1"));
  EXPECT_THAT(message([](O o) { o.world = 0; }), HasSubstr("world is 0"));
  EXPECT_THAT(message([](O o) { o.rank = 1; }), HasSubstr("rank is 1 of a world of 1"));
  EXPECT_THAT(message([](O o) { o.rank = -1; }), HasSubstr("rank is -1"));
  EXPECT_THAT(message([](O o) { o.epochs = std::nan(""); }), HasSubstr("epochs"));
  EXPECT_THAT(message([](O o) { o.feed.max_bad = -0.1; }), HasSubstr("max_bad is -0.1"));
  EXPECT_THAT(message([](O o) { o.feed.max_bad = std::nan(""); }), HasSubstr("max_bad"));
  EXPECT_THAT(message([](O o) { o.first_step = -1; }), HasSubstr("first_step is -1"));
  EXPECT_THAT(message([](O o) { o.grid = {0, 1, 77}; }), HasSubstr("cannot begin at position 77"));
  EXPECT_THAT(message([](O o) { o.grid = {0, 2, 6}; }), HasSubstr("the grid begins at step 2"));
  EXPECT_THAT(message([](O o) { o.parts = 0; }), HasSubstr("parts is 0, must be 1 to"));
  EXPECT_THAT(message([](O o) { o.first_step = 9; }), HasSubstr("first_step is 9, must be 0 to 8"));
  EXPECT_THAT(message([](O o) { o.first_epoch_offset = -3; }), HasSubstr("-3"));
  EXPECT_THAT(message([](O o) { o.feed.decode.max_pixels = 0; }), HasSubstr("max_pixels is 0"));
  EXPECT_THAT(message([](O o) { o.batch_size = 1 << 24, o.world = 1 << 10; }),
              HasSubstr("global batch of 1024 ranks x 1 devices x 16777216 samples"));
  EXPECT_EQ(message([](O o) { o.order = shuffled_order(29); }),
            "Sampler: order (shuffled) is for a source of 29 samples, this one has 30");
  EXPECT_EQ(message([](O o) { o.order = sequential_order(30), o.shuffle = false; }),
            "Sampler: shuffle is off, but `order` says already in which order samples come: leave "
            "`shuffle` as it is by default");
  EXPECT_EQ(message([](O o) {
              o.order = repeated_order({.samples = 30, .length = 9});
              o.batch_size = 10;
              o.last_batch = LastBatch::drop;
            }),
            "Sampler: batch_size: a global batch of 10 samples is more than the 9 samples of an "
            "epoch, and `last_batch` drop leaves out what does not fill one: take at most 9 "
            "samples, or `last_batch` pad");
  EXPECT_EQ(message([](O o) { o.order = repeated_order({.samples = 30}); }), "nothing was thrown");
  EXPECT_EQ(message([](O) {}), "nothing was thrown");
}

// The steps of an epoch are those of the order, and it is part of what a run is.
TEST_F(LoaderTest, AnOrderHasItsOwnLengthAndFingerprint) {
  const auto feed_of = [&](SharedOrder order) {
    LoaderOptions options = loader_options();
    options.order = std::move(order);
    return std::make_unique<Feed>(*source_, augment_, options);
  };
  const std::vector<double> weights(30, 1);
  std::vector<double> others = weights;
  others[7] = 2;
  const auto plain = feed_of(nullptr), weighted = feed_of(weighted_order(weights, {.length = 45})),
             same = feed_of(weighted_order(weights, {.length = 45})),
             other = feed_of(weighted_order(others, {.length = 45}));
  EXPECT_EQ(plain->loader().steps_per_epoch(), 8);
  EXPECT_EQ(weighted->loader().steps_per_epoch(), 12);
  EXPECT_EQ(weighted->loader().end_step(), 12);
  EXPECT_EQ(weighted->all().back().valid, 1);
  EXPECT_NE(plain->loader().fingerprint(), weighted->loader().fingerprint());
  EXPECT_EQ(same->loader().fingerprint(), weighted->loader().fingerprint());
  EXPECT_NE(other->loader().fingerprint(), weighted->loader().fingerprint());
  EXPECT_THROW(Loader::resume_step(weighted->loader().state(), other->loader()),
               std::invalid_argument);
  LoaderOptions options = loader_options();
  const auto policies_of = [&](Feed& feed) {
    return receipt_info(feed.loader(), *source_, augment_, options, 1).policies;
  };
  EXPECT_THAT(policies_of(*plain), ::testing::Contains(::testing::Pair("shuffle", "on")));
  options.order = weighted_order(weights, {.length = 45});
  EXPECT_THAT(policies_of(*weighted),
              ::testing::Contains(::testing::Pair("order", options.order->describe())));
}

// The worker that fills a row converts it, also substitutes and padding: the bits are those of
// normalise_on_host() for the u8 row.
TEST_F(LoaderTest, RowsAreConvertedAsTheFormatSays) {
  const auto files = jpeg_source(10);
  files->replace(3, text_bytes("no picture"));
  const auto host = make_host_device();
  for (const int workers : {0, 2}) {
    for (const PixelType type : {PixelType::fp32, PixelType::fp16, PixelType::bf16}) {
      for (const PixelOrder order : {PixelOrder::nhwc, PixelOrder::nchw}) {
        LoaderOptions options = loader_options(workers);
        options.feed.max_bad = 5;
        options.digests = true;
        const AugmentSpec augment = crop_spec(9);
        const auto compute = host->make_stream();
        Loader plain(*files, augment, {host.get()}, options);
        options.format = RowFormat{type, order, {0.5F, 0.25F, 0}, {0.5F, 1, 2}};
        Loader loader(*files, augment, {host.get()}, options);
        NormaliseArgs args = normalise_args({.height = 9,
                                             .width = 9,
                                             .type = type,
                                             .order = order,
                                             .mean = options.format->mean,
                                             .stddev = options.format->stddev});
        for (int step = 0; step < 3; ++step) {
          const DeviceBatch wanted = plain.next(0, *compute), found = loader.next(0, *compute);
          ASSERT_TRUE(wanted && found);
          std::vector<uint8_t> converted(4 * 9 * 9 * 3 * value_bytes(type));
          args.images = wanted.images();
          args.out = converted.data();
          args.rows = 4;
          normalise_on_host(args);
          EXPECT_EQ(std::vector(found.images(), found.images() + converted.size()), converted);
          for (int row = 0; row < 4; ++row) {
            EXPECT_EQ(found.labels()[row], wanted.labels()[row]);
            EXPECT_EQ(row_notes(found)[row].digest, row_notes(wanted)[row].digest);
          }
        }
        EXPECT_GT(loader.memory_plan().ring_bytes, plain.memory_plan().ring_bytes);
        EXPECT_EQ(loader.fingerprint(), plain.fingerprint());
      }
    }
  }
  FakeDevice far({.host_accessible = false});
  LoaderOptions options = loader_options();
  options.format = RowFormat{};
  EXPECT_THROW(Loader(*source_, augment_, {&far}, options), std::invalid_argument);
}

TEST_F(LoaderTest, FailsIfTheQuarantineFileCannotBeOpened) {
  LoaderOptions options = loader_options();
  options.quarantine_file = "/nowhere/at/all/bad.jsonl";
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { Feed feed(*source_, augment_, options); }),
              HasSubstr("/nowhere/at/all/bad.jsonl: No such file"));
}

// Opening a pipe that nobody reads would block, and a device like /dev/full cannot hold a list.
TEST_F(LoaderTest, FailsIfTheQuarantineFileIsNotARegularFile) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", folder.path() + "/link");
  // Somebody else may have laid a link there, and nothing is written to where it leads.
  std::filesystem::create_symlink(folder.path() + "/bad.jsonl", folder.path() + "/to_be_made");
  LoaderOptions options = loader_options();
  for (const std::string name : {"/pipe", "/link", "/to_be_made", ""}) {
    options.quarantine_file = folder.path() + name;
    EXPECT_EQ(thrown_by<std::runtime_error>([&] { Feed feed(*source_, augment_, options); }),
              "cannot use the quarantine file " + folder.path() + name + ": not a regular file");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/bad.jsonl"));
}

TEST_F(LoaderTest, EpochsMayBeFractionsAndEndless) {
  LoaderOptions options = loader_options();  // 8 steps per epoch
  const auto end = [&](double epochs) {
    options.epochs = epochs;
    return Feed(*source_, augment_, options).loader().end_step();
  };
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(end(1), 8);
  EXPECT_EQ(end(1.125), 9);
  EXPECT_EQ(end(1.126), 10);
  EXPECT_EQ(end(0.1 * 30), 24);  // 3.0000000000000004
  EXPECT_GT(end(-1), int64_t{1} << 60);
  options.epochs = -1;
  Feed endless(*source_, augment_, options);
  const std::vector<Delivered> batches = endless.take(50);
  EXPECT_EQ(batches.size(), 50u);
  EXPECT_EQ(batches.back().epoch, 6);
}

TEST_F(LoaderTest, AfterTheEndAndAfterStopBatchesAreEmpty) {
  for (const int workers : {0, 2}) {
    Feed feed(*source_, augment_, loader_options(workers));
    EXPECT_EQ(feed.all().size(), 8u);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(feed.loader().next(0, feed.stream(0)));
    Feed stopped(*source_, augment_, loader_options(workers));
    EXPECT_EQ(stopped.take(2).size(), 2u);
    stopped.loader().stop();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(stopped.loader().next(0, stopped.stream(0)));
    EXPECT_EQ(stopped.loader().state().next_step, 2);
  }
}

TEST_F(LoaderTest, StopWakesABlockedConsumer) {
  const auto slow = jpeg_source(8);
  slow->delay_all(std::chrono::milliseconds(30));
  Feed feed(*slow, crop_spec(), loader_options());
  std::thread stopper([&] {
    EXPECT_TRUE(wait_until([&] { return slow->reads() > 0; }));
    feed.loader().stop();
  });
  EXPECT_FALSE(feed.loader().next(0, feed.stream(0)));
  stopper.join();
}

TEST_F(LoaderTest, DevicesAreNumbered) {
  Feed feed(*source_, augment_, loader_options());
  EXPECT_THROW(feed.loader().next(1, feed.stream(0)), std::invalid_argument);
  EXPECT_THROW(feed.loader().next(-1, feed.stream(0)), std::invalid_argument);
}

TEST_F(LoaderTest, TheEpochOffsetMakesThatEpochAlone) {
  LoaderOptions options = loader_options();
  options.epochs = 3;
  const std::vector<Delivered> three = Feed(*source_, augment_, options).all();
  options.epochs = 1;
  options.first_epoch_offset = 2;
  std::vector<Delivered> alone = Feed(*source_, augment_, options).all();
  ASSERT_EQ(alone.size(), 8u);
  for (size_t i = 0; i < alone.size(); ++i) {
    alone[i].step += 16;
    EXPECT_EQ(alone[i], three[16 + i]);
  }
}

TEST_F(LoaderTest, FingerprintIsOfPixelsAndTheirOrderOnly) {
  const auto of = [&](auto change, int devices = 1) {
    LoaderOptions options = loader_options();
    AugmentSpec augment = augment_;
    change(options, augment);
    return Feed(*source_, augment, options, devices).loader().fingerprint();
  };
  using O = LoaderOptions&;
  using A = AugmentSpec&;
  const uint64_t plain = of([](O, A) {});
  EXPECT_EQ(of([](O o, A) { o.batch_size = 7; }), plain);
  EXPECT_EQ(of([](O o, A) { o.feed.workers = 0, o.ring_depth = 9, o.slots = 0; }), plain);
  EXPECT_EQ(of([](O o, A) { o.world = 3, o.rank = 2; }, 2), plain);
  EXPECT_NE(of([](O o, A) { o.seed = 1; }), plain);
  EXPECT_NE(of([](O o, A) { o.shuffle = false; }), plain);
  EXPECT_NE(of([](O o, A) { o.last_batch = LastBatch::wrap; }), plain);
  EXPECT_NE(of([](O o, A) { o.feed.decode.exif = ExifPolicy::apply; }), plain);
  EXPECT_NE(of([](O o, A) { o.feed.decode.pixels = PixelPolicy::fast; }), plain);
  EXPECT_NE(of([](O o, A) { o.feed.decode.pixels = PixelPolicy::exact_pillow12; }), plain);
  EXPECT_NE(of([](O o, A) { o.feed.decode.max_pixels = 1000; }), plain);
  EXPECT_NE(of([](O, A a) { a.stages = StageList("resize | flip"); }), plain);
}

TEST_F(LoaderTest, ResumeRefusesAnotherConfiguration) {
  Feed feed(*source_, augment_, loader_options());
  feed.take(3);
  const LoaderState state = feed.loader().state();
  const auto resume = [&](auto change, int devices = 1) {
    LoaderOptions options = loader_options();
    change(options);
    Feed other(*source_, augment_, options, devices);
    return Loader::resume_step(state, other.loader());
  };
  using O = LoaderOptions&;
  EXPECT_EQ(resume([](O o) { o.feed.workers = 0, o.ring_depth = 2; }), 3);
  EXPECT_EQ(resume([](O o) { o.batch_size = 2; }, 2), 3);  // the same global batch
  EXPECT_EQ(resume([](O o) { o.batch_size = 2, o.world = 2; }), 3);
  EXPECT_THROW(resume([](O o) { o.batch_size = 8; }), std::invalid_argument);
  EXPECT_THROW(resume([](O o) { o.seed = 8; }), std::invalid_argument);
}

TEST_F(LoaderTest, StateIsThatOfTheSlowestDevice) {
  Feed feed(*source_, augment_, loader_options(), 2);
  for (int i = 0; i < 2; ++i) feed.loader().next(0, feed.stream(0));
  EXPECT_EQ(feed.loader().state().next_step, 0);
  feed.loader().next(1, feed.stream(1));
  EXPECT_EQ(feed.loader().state().next_step, 1);
}

TEST_F(LoaderTest, AFailedDeviceEndsTheFeedWithItsError) {
  for (const int workers : {0, 2}) {
    for (const int slots : {0, 2}) {
      FakeDeviceOptions nasty;
      nasty.operations_left = 25;
      FakeDevice device(nasty);
      const auto good = make_host_device();
      LoaderOptions options = loader_options(workers);
      options.slots = slots;
      options.epochs = -1;
      Loader loader(*source_, augment_, {&device}, options);
      const auto compute = slots == 0 ? device.make_stream() : good->make_stream();
      const auto take_all = [&] {
        while (loader.next(0, *compute)) {
        }
      };
      EXPECT_THROW(take_all(), std::runtime_error);
      EXPECT_THROW(take_all(), std::runtime_error);
    }
  }
}

// One consumer thread per device, all at the same time, with bad samples among the rows.
TEST_F(LoaderTest, EachDeviceMayHaveItsOwnThread) {
  const auto files = jpeg_source(50);
  for (const SampleId bad : {3, 20, 41}) files->replace(bad, {});
  for (const int workers : {0, 2}) {
    LoaderOptions options = loader_options(workers);
    options.epochs = 3;
    options.feed.max_bad = 3;
    const std::vector<Delivered> expected = Feed(*files, crop_spec(), options, 3).all();
    TempFolder folder;
    options.quarantine_file = folder.path() + "/bad.jsonl";
    options.digests = true;
    Feed feed(*files, crop_spec(), options, 3);
    Receipt receipt(folder.path(), receipt_info(feed.loader(), *files, crop_spec(), options, 3), 0);
    std::vector<std::thread> threads;
    std::vector<std::vector<Delivered>> parts(3);
    for (int device = 0; device < 3; ++device) {
      threads.emplace_back([&, device] {
        const auto add = [&](const DeviceBatch& batch) { receipt.add(device, batch); };
        for (Delivered part; feed.next(device, part, add);) parts[device].push_back(part);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t step = 0; step < expected.size(); ++step) {
      for (int row = 0; row < 12; ++row) {
        EXPECT_EQ(parts[row / 4].at(step).rows[row % 4].pixels, expected[step].rows[row].pixels);
      }
    }
    EXPECT_EQ(feed.loader().stats().bad_samples, 9);
    ASSERT_EQ(receipt.epochs().size(), 3u);
    for (const EpochDigest& epoch : receipt.epochs()) EXPECT_EQ(epoch.rows, 47);
  }
}

TEST_F(LoaderTest, StatsCountWhatPassed) {
  const auto files = jpeg_source(10);
  for (const int workers : {0, 2}) {
    Feed feed(*files, crop_spec(), loader_options(workers));
    feed.all();  // 3 steps of 4 rows
    const LoaderStats stats = feed.loader().stats();
    EXPECT_EQ(stats.decode.items, 12);
    EXPECT_EQ(stats.read.items, 12);
    EXPECT_GT(stats.decode.service_ns, 0);
    EXPECT_GT(stats.read.service_ns, 0);
    ASSERT_EQ(stats.rings.size(), 1u);
    EXPECT_EQ(stats.rings[0].items, 3);
    EXPECT_EQ(stats.staging[0].items, 3);
    EXPECT_EQ(stats.bad_samples, 0);
  }
}

// ---- Where the batches are: in slots on the device, or in the ring itself

const BatchLayout kLoaderLayout{
    {.rows = 4, .height = 8, .width = 8, .note_bytes_per_row = static_cast<int>(sizeof(RowNote))}};
using LoaderDeathTest = LoaderTest;

TEST_F(LoaderTest, TheMemoryPlanIsTheFormula) {
  LoaderOptions options = loader_options(2);
  options.ring_depth = 5;
  options.slots = 3;
  Feed feed(*source_, augment_, options, 2);
  const MemoryPlan plan = feed.loader().memory_plan();
  EXPECT_EQ(plan.ring_bytes, 2 * 5 * static_cast<int64_t>(kLoaderLayout.slab_bytes()));
  EXPECT_EQ(plan.slot_bytes, 2 * 3 * static_cast<int64_t>(kLoaderLayout.device_bytes()));
  EXPECT_GT(plan.scratch_bytes, 0);
}

// A host device's batch is the slab: no slots, no copies. A device whose memory the host cannot
// read gets two slots.
TEST_F(LoaderTest, SlotsAreChosenByTheDevice) {
  for (const bool host_accessible : {true, false}) {
    FakeDevice device({.host_accessible = host_accessible});
    const auto compute = device.make_stream();
    Loader loader(*source_, augment_, {&device}, loader_options(2));
    EXPECT_EQ(loader.memory_plan().slot_bytes,
              host_accessible ? 0 : 2 * static_cast<int64_t>(kLoaderLayout.device_bytes()));
    while (loader.next(0, *compute)) {
    }
    compute->synchronize();
    EXPECT_EQ(device.copies(), host_accessible ? 0 : 8);
  }
}

// A borrowed stream that its owner has destroyed.
class GoneStream final : public Stream {
 public:
  void copy(void*, const void*, size_t, CopyKind) override { fail(); }
  void record(Event&) override { fail(); }
  void wait(const Event&) override { fail(); }
  void call(std::function<void()>) override { fail(); }
  void synchronize() override { fail(); }

 private:
  [[noreturn]] static void fail() { throw BorrowedStreamError("gone"); }
};

TEST_F(LoaderTest, AStepThatAStreamWouldNotHaveIsThereForAnother) {
  FakeDevice device({.host_accessible = false});
  const auto compute = device.make_stream();
  GoneStream gone;
  for (const int workers : {0, 2}) {
    for (const int slots : {0, 1, 2}) {
      LoaderOptions options = loader_options(workers);
      options.slots = slots;
      Loader loader(*source_, augment_, {&device}, options);
      Step step = 0;
      for (;; ++step) {
        if (step < loader.end_step()) {
          EXPECT_THROW(loader.next(0, gone), BorrowedStreamError);
        }
        const DeviceBatch batch = loader.next(0, *compute);
        if (!batch) break;
        EXPECT_EQ(batch.header().step, step);
      }
      EXPECT_EQ(step, loader.end_step()) << workers << " workers, " << slots << " slots";
    }
  }
}

// It must not wait for ever for the slab that the consumer itself holds.
TEST_F(LoaderDeathTest, InlineAskingForASecondBatchAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LoaderOptions options = loader_options(0);
  options.ring_depth = 1;
  const auto hold_and_ask = [&] {
    Feed feed(*source_, augment_, options);
    const DeviceBatch held = feed.loader().next(0, feed.stream(0));
    feed.loader().next(0, feed.stream(0));
  };
  EXPECT_DEATH(hold_and_ask(), "next\\(step 1\\): 1 of 1 slots are leased");
}

}  // namespace
}  // namespace stoker::testing
