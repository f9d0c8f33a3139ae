// The guarantees of the feeder, checked through the Loader.
#include <gtest/gtest.h>

#include <map>

#include "pipeline/source/synthetic_source.h"
#include "staging/stager.h"
#include "tests/pipeline/loader_support.h"

namespace stoker::testing {
namespace {

LoaderOptions options_of(int workers, int batch = 8) {
  LoaderOptions options;
  options.batch_size = batch;
  options.seed = 42;
  options.feed.workers = workers;
  options.digests = true;
  options.epochs = 2;
  return options;
}

struct Kind {
  const char* name;
  std::unique_ptr<Source> source;
  AugmentSpec augment;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back({"files", jpeg_source(37), crop_spec()});
  all.push_back({"raw", make_synthetic_source(101, {16, 16}, 10, 3), pad_spec()});
  return all;
}

// (1) Batches are byte-identical for any workers, rings, slots and I/O threads.
TEST(Contract, BatchesDoNotDependOnThreadsOrDepths) {
  for (const Kind& kind : kinds()) {
    LoaderOptions options = options_of(0);
    options.slots = 0;
    options.ring_depth = 1;
    Feed reference(*kind.source, kind.augment, options);
    const std::vector<Delivered> expected = reference.all();
    ASSERT_EQ(expected.size(), 2 * reference.loader().steps_per_epoch());
    for (const Delivered& batch : expected) {
      for (const DeliveredRow& row : batch.rows) ASSERT_EQ(row.pixels, row.noted);
    }
    const struct {
      int workers, io_threads, ring_depth, slots;
    } variants[] = {{0, 2, 4, 2}, {1, 0, 1, 0}, {1, 1, 4, 2}, {2, 2, 3, 1},
                    {2, 0, 4, 3}, {8, 2, 4, 2}, {8, 3, 1, 0}, {8, 0, 7, 2}};
    for (const auto& v : variants) {
      options.feed.workers = v.workers;
      options.feed.io_threads = v.io_threads;
      options.ring_depth = v.ring_depth;
      options.slots = v.slots;
      EXPECT_EQ(Feed(*kind.source, kind.augment, options).all(), expected)
          << kind.name << ", workers " << v.workers << ", io " << v.io_threads << ", ring "
          << v.ring_depth << ", slots " << v.slots;
    }
  }
}

// The same global batch has the same rows for any number of devices.
TEST(Contract, BatchesDoNotDependOnTheNumberOfDevices) {
  for (const Kind& kind : kinds()) {
    const std::vector<Delivered> expected =
        Feed(*kind.source, kind.augment, options_of(2, 8), 1).all();
    for (const int devices : {2, 4}) {
      for (const int workers : {0, 2}) {
        EXPECT_EQ(Feed(*kind.source, kind.augment, options_of(workers, 8 / devices), devices).all(),
                  expected)
            << kind.name << ", " << devices << " devices, workers " << workers;
      }
    }
  }
}

// A row's pixels depend only on (seed, epoch, sample): not on batch size, ranks or order.
TEST(Contract, PixelsAreAFunctionOfSeedEpochAndSample) {
  using Pixels = std::map<std::pair<int64_t, SampleId>, uint64_t>;
  const auto collect = [](Feed& feed, Pixels& pixels) {
    for (const Delivered& batch : feed.all()) {
      for (const DeliveredRow& row : batch.rows) {
        const auto [at, added] = pixels.insert({{batch.epoch, row.id}, row.pixels});
        EXPECT_EQ(at->second, row.pixels) << "epoch " << batch.epoch << ", sample " << row.id;
      }
    }
  };
  for (const Kind& kind : kinds()) {
    Pixels pixels;
    Feed first(*kind.source, kind.augment, options_of(2));
    collect(first, pixels);
    EXPECT_EQ(static_cast<int64_t>(pixels.size()), 2 * kind.source->size());
    for (const int batch : {1, 5, 64}) {
      Feed other(*kind.source, kind.augment, options_of(2, batch));
      collect(other, pixels);
    }
    for (int rank = 0; rank < 3; ++rank) {
      LoaderOptions options = options_of(1);
      options.world = 3;
      options.rank = rank;
      Feed other(*kind.source, kind.augment, options, 2);
      collect(other, pixels);
    }
    EXPECT_EQ(static_cast<int64_t>(pixels.size()), 2 * kind.source->size());
    for (SampleId id = 0; id < kind.source->size(); ++id) {
      EXPECT_NE(pixels.at({0, id}), pixels.at({1, id})) << "sample " << id << " of " << kind.name;
    }
  }
}

// (2) Stopping after any step and resuming is the same as never stopping.
TEST(Contract, ResumingAnywhereIsTheSameAsNeverStopping) {
  for (const Kind& kind : kinds()) {
    LoaderOptions options = options_of(2, 16);
    options.epochs = 2.5;
    const std::vector<Delivered> whole = Feed(*kind.source, kind.augment, options).all();
    for (size_t stop = 0; stop <= whole.size(); ++stop) {
      options.first_step = 0;
      options.feed.workers = stop % 3;
      Feed before(*kind.source, kind.augment, options);
      std::vector<Delivered> batches = before.take(static_cast<int64_t>(stop));
      const LoaderState state = before.loader().state();
      EXPECT_EQ(state.next_step, static_cast<Step>(stop));
      EXPECT_EQ(state.epoch, state.next_step / before.loader().steps_per_epoch());
      EXPECT_EQ(state.step_in_epoch, state.next_step % before.loader().steps_per_epoch());
      options.first_step = Loader::resume_step(state, before.loader());
      options.feed.workers = 2;
      Feed after(*kind.source, kind.augment, options);
      for (const Delivered& batch : after.all()) batches.push_back(batch);
      ASSERT_EQ(batches, whole) << kind.name << ", stopped after " << stop;
    }
  }
}

// (3) A device that copies late and poisons memory that may be reused changes nothing.
TEST(Contract, NastyDevicesSeeTheSameBatches) {
  for (const Kind& kind : kinds()) {
    const std::vector<Delivered> expected =
        Feed(*kind.source, kind.augment, options_of(0, 4), 2).all();
    for (const int workers : {0, 2}) {
      for (int slots = -1; slots <= Stager::kMaxSlots; ++slots) {
        LoaderOptions options = options_of(workers, 4);
        options.slots = slots;
        options.ring_depth = slots % 2 == 0 ? 1 : 2;
        EXPECT_EQ(Feed(*kind.source, kind.augment, options, 2, DeviceKind::nasty).all(), expected)
            << kind.name << ", workers " << workers << ", slots " << slots;
      }
    }
  }
}

// (4) Every sample comes once per epoch, over all ranks together; every rank makes the same steps.
TEST(Contract, EverySampleOncePerEpochOverAllRanks) {
  for (const int64_t samples : {1, 2, 3, 7, 8, 9, 31, 32, 33}) {
    const auto source = make_synthetic_source(samples, {8, 8}, 3, 1);
    for (const int world : {1, 2, 3}) {
      for (const int devices : {1, 2}) {
        std::map<std::pair<int64_t, SampleId>, int> times;
        size_t steps = 0;
        for (int rank = 0; rank < world; ++rank) {
          LoaderOptions options = options_of(rank % 2, 4);
          options.world = world;
          options.rank = rank;
          Feed feed(*source, pad_spec(8), options, devices);
          const std::vector<Delivered> batches = feed.all();
          if (rank == 0) steps = batches.size();
          EXPECT_EQ(batches.size(), steps);
          for (const Delivered& batch : batches) {
            ASSERT_EQ(batch.rows.size(), static_cast<size_t>(4 * devices));
            int valid = 0;
            for (const DeliveredRow& row : batch.rows) {
              EXPECT_EQ(row.label, source->label(row.id));
              if (row.weight == 0) continue;
              ++valid;
              ++times[{batch.epoch, row.id}];
            }
            EXPECT_EQ(batch.valid, valid);
          }
        }
        EXPECT_EQ(static_cast<int64_t>(times.size()), 2 * samples);
        for (const auto& [sample, count] : times) {
          EXPECT_EQ(count, 1) << "epoch " << sample.first << ", sample " << sample.second;
        }
      }
    }
  }
}

TEST(Contract, OtherLastBatchPolicies) {
  const auto source = make_synthetic_source(21, {8, 8}, 3, 1);
  LoaderOptions options = options_of(1, 4);
  options.last_batch = LastBatch::drop;
  const std::vector<Delivered> dropped = Feed(*source, pad_spec(8), options, 2).all();
  EXPECT_EQ(dropped.size(), 4u);
  options.last_batch = LastBatch::wrap;
  const std::vector<Delivered> wrapped = Feed(*source, pad_spec(8), options, 2).all();
  EXPECT_EQ(wrapped.size(), 6u);
  for (const Delivered& batch : dropped) EXPECT_EQ(batch.valid, 8);
  for (const Delivered& batch : wrapped) EXPECT_EQ(batch.valid, 8);
}

}  // namespace
}  // namespace stoker::testing
