// The guarantees of the feeder, checked through the Loader.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "pipeline/source/synthetic_source.h"
#include "staging/stager.h"
#include "tests/pipeline/loader_support.h"

namespace stoker::testing {
namespace {

LoaderOptions contract_options(int workers, int batch = 8) {
  return {
      .batch_size = batch, .seed = 42, .epochs = 2, .feed = {.workers = workers}, .digests = true};
}

struct ContractKind {
  const char* name;
  std::unique_ptr<Source> source;
  AugmentSpec augment;
};

std::vector<ContractKind> kinds() {
  std::vector<ContractKind> all;
  all.push_back({"files", jpeg_source(37), crop_spec()});
  const char* const policies =
      "random_resized_crop(20) | random_augment | flip | random_choice(pillow_blur, rotate(30)) | "
      "aug_mix | random_erasing(noise=True)";
  all.push_back({"policies", jpeg_source(37), AugmentSpec(policies)});
  all.push_back({"raw", make_synthetic_source(101, {16, 16}, 10, 3), pad_spec()});
  return all;
}

// (1) Batches are byte-identical for any workers, rings, slots and I/O threads.
TEST(Contract, BatchesDoNotDependOnThreadsOrDepths) {
  for (const ContractKind& kind : kinds()) {
    LoaderOptions options = contract_options(0);
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
  for (const ContractKind& kind : kinds()) {
    const std::vector<Delivered> expected =
        Feed(*kind.source, kind.augment, contract_options(2, 8), 1).all();
    for (const int devices : {2, 4}) {
      for (const int workers : {0, 2}) {
        EXPECT_EQ(
            Feed(*kind.source, kind.augment, contract_options(workers, 8 / devices), devices).all(),
            expected)
            << kind.name << ", " << devices << " devices, workers " << workers;
      }
    }
  }
}

// A row's pixels depend only on (seed, epoch, sample): not on batch size, ranks or order.
TEST(Contract, PixelsAreAFunctionOfSeedEpochAndSample) {
  using ContractPixels = std::map<std::pair<int64_t, SampleId>, uint64_t>;
  const auto collect = [](Feed& feed, ContractPixels& pixels) {
    for (const Delivered& batch : feed.all()) {
      for (const DeliveredRow& row : batch.rows) {
        const auto [at, added] = pixels.insert({{batch.epoch, row.id}, row.pixels});
        EXPECT_EQ(at->second, row.pixels) << "epoch " << batch.epoch << ", sample " << row.id;
      }
    }
  };
  for (const ContractKind& kind : kinds()) {
    ContractPixels pixels;
    Feed first(*kind.source, kind.augment, contract_options(2));
    collect(first, pixels);
    EXPECT_EQ(static_cast<int64_t>(pixels.size()), 2 * kind.source->size());
    for (const int batch : {1, 5, 64}) {
      Feed other(*kind.source, kind.augment, contract_options(2, batch));
      collect(other, pixels);
    }
    for (int rank = 0; rank < 3; ++rank) {
      LoaderOptions options = contract_options(1);
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

// The parts of a step, one after the other, are its rows; steps are counted whole.
TEST(Contract, AStepInPartsHasTheSameRows) {
  for (const ContractKind& kind : kinds()) {
    LoaderOptions options = contract_options(2, 16);
    options.epochs = 1.5;
    Feed one(*kind.source, kind.augment, options);
    const std::vector<Delivered> whole = one.all();
    for (const int devices : {1, 2}) {
      for (const int workers : {0, 2}) {
        options.parts = 16 / 4 / devices;
        options.batch_size = 4;
        options.feed.workers = workers;
        for (const Step first : {Step{0}, Step{2}}) {
          options.first_step = first;
          Feed parts(*kind.source, kind.augment, options, devices);
          EXPECT_EQ(parts.loader().steps_per_epoch(), one.loader().steps_per_epoch());
          EXPECT_EQ(parts.loader().end_step(), one.loader().end_step());
          EXPECT_EQ(parts.loader().fingerprint(), one.loader().fingerprint());
          std::vector<Delivered> steps;
          for (const Delivered& part : parts.all()) {
            if (steps.empty() || steps.back().step != part.step) {
              steps.push_back(part);
              continue;
            }
            Delivered& step = steps.back();
            step.rows.insert(step.rows.end(), part.rows.begin(), part.rows.end());
            step.valid += part.valid;
          }
          EXPECT_EQ(steps, std::vector<Delivered>(whole.begin() + first, whole.end()));
          EXPECT_EQ(parts.loader().state().fingerprint, one.loader().state().fingerprint);
          EXPECT_EQ(parts.loader().state().next_step, one.loader().state().next_step);
        }
        options.first_step = 0;
      }
    }
  }
}

// (3) A device that copies late and poisons memory that may be reused changes nothing.
TEST(Contract, NastyDevicesSeeTheSameBatches) {
  for (const ContractKind& kind : kinds()) {
    const std::vector<Delivered> expected =
        Feed(*kind.source, kind.augment, contract_options(0, 4), 2).all();
    for (const int workers : {0, 2}) {
      for (int slots = -1; slots <= Stager::kMaxSlots; ++slots) {
        LoaderOptions options = contract_options(workers, 4);
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
          LoaderOptions options = contract_options(rank % 2, 4);
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
  LoaderOptions options = contract_options(1, 4);
  options.last_batch = LastBatch::drop;
  const std::vector<Delivered> dropped = Feed(*source, pad_spec(8), options, 2).all();
  EXPECT_EQ(dropped.size(), 4u);
  options.last_batch = LastBatch::wrap;
  const std::vector<Delivered> wrapped = Feed(*source, pad_spec(8), options, 2).all();
  EXPECT_EQ(wrapped.size(), 6u);
  for (const Delivered& batch : dropped) EXPECT_EQ(batch.valid, 8);
  for (const Delivered& batch : wrapped) EXPECT_EQ(batch.valid, 8);
}

// The guarantees hold for every order of samples, not only for the shuffle.
struct Ordered {
  const char* name;
  SharedOrder order;
};

std::vector<Ordered> orders_for(int64_t samples) {
  std::vector<double> weights;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < samples; ++i) {
    weights.push_back(static_cast<double>(i % 7));
    labels.push_back(i % 5 == 0 ? 1 : 0);
  }
  const int64_t half = samples / 2;
  return {{"by default", nullptr},
          {"shuffled", shuffled_order(samples)},
          {"weighted", weighted_order(weights, {.length = 45})},
          {"weighted once", weighted_order(weights, {.length = 21, .replacement = false})},
          {"class balanced", class_balanced_order(labels, 45)},
          {"repeated", repeated_order({.samples = samples, .repeats = 3, .length = 45})},
          {"blend", blend_order({.sizes = {half, samples - half},
                                 .schedule = {{0, {3, 1}}, {60, {1, 3}}},
                                 .length = 45})}};
}

// (2) Stopping after any step and resuming is the same as never stopping.
TEST(Contract, AnyOrderResumesAnywhereAndIgnoresThreads) {
  for (const ContractKind& kind : kinds()) {
    for (const auto& [name, order] : orders_for(kind.source->size())) {
      LoaderOptions options = contract_options(0, 16);
      options.order = order;
      options.epochs = 2.5;
      const std::vector<Delivered> whole = Feed(*kind.source, kind.augment, options).all();
      ASSERT_GT(whole.size(), 3U);
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
        // Made anew, as in another process.
        for (const auto& [other, fresh] : orders_for(kind.source->size())) {
          if (std::string(other) == name) options.order = fresh;
        }
        Feed after(*kind.source, kind.augment, options);
        for (const Delivered& batch : after.all()) batches.push_back(batch);
        ASSERT_EQ(batches, whole) << kind.name << ", " << name << ", stopped after " << stop;
      }
    }
  }
}

TEST(Contract, AnyOrderIsTheSameForAnyRanksAndDevices) {
  const auto source = make_synthetic_source(50, {8, 8}, 3, 1);
  for (const auto& [name, order] : orders_for(50)) {
    LoaderOptions options = contract_options(1, 24);
    options.order = order;
    const std::vector<Delivered> expected = Feed(*source, pad_spec(8), options).all();
    for (const int world : {2, 3, 8}) {
      for (const int devices : {1, 3}) {
        if (24 % (world * devices) != 0) continue;
        options.world = world;
        options.batch_size = 24 / (world * devices);
        std::vector<std::vector<DeliveredRow>> rows(expected.size());
        for (options.rank = 0; options.rank < world; ++options.rank) {
          const std::vector<Delivered> part = Feed(*source, pad_spec(8), options, devices).all();
          ASSERT_EQ(part.size(), expected.size());
          for (size_t step = 0; step < part.size(); ++step) {
            rows[step].insert(rows[step].end(), part[step].rows.begin(), part[step].rows.end());
          }
        }
        for (size_t step = 0; step < expected.size(); ++step) {
          ASSERT_EQ(rows[step], expected[step].rows)
              << name << ", " << world << " ranks of " << devices << ", step " << step;
        }
      }
    }
  }
}

// A row's pixels depend only on (seed, epoch, sample, repeat_index), with repeat index 0 as in a
// feed that shows every sample once; another repeat index has other crops.
TEST(Contract, PixelsAreAFunctionOfTheAppearance) {
  for (const ContractKind& kind : kinds()) {
    std::map<std::pair<int64_t, SampleId>, uint64_t> plain;
    for (const Delivered& batch : Feed(*kind.source, kind.augment, contract_options(2)).all()) {
      for (const DeliveredRow& row : batch.rows) plain[{batch.epoch, row.id}] = row.pixels;
    }
    std::map<std::tuple<int64_t, SampleId, uint64_t>, uint64_t> pixels;
    int repeated = 0, same = 0;
    for (const auto& [name, order] : orders_for(kind.source->size())) {
      for (const int batch_size : {5, 16}) {
        LoaderOptions options = contract_options(2, batch_size);
        options.order = order;
        for (const Delivered& batch : Feed(*kind.source, kind.augment, options).all()) {
          for (const DeliveredRow& row : batch.rows) {
            const uint64_t first = plain.at({batch.epoch, row.id});
            if (row.repeat_index == 0) {
              EXPECT_EQ(row.pixels, first) << name << ", sample " << row.id;
            }
            repeated += row.repeat_index != 0;
            same += row.repeat_index != 0 && row.pixels == first;
            const auto [at, added] =
                pixels.insert({{batch.epoch, row.id, row.repeat_index}, row.pixels});
            EXPECT_EQ(at->second, row.pixels) << name << ", sample " << row.id;
          }
        }
      }
    }
    EXPECT_GT(repeated, 200);
    EXPECT_LT(same, repeated / 20) << kind.name;  // a few draws are equal by chance
  }
}

// Every repeat index of a bad sample gets the pixels of one other sample, in its own crop, and the
// sample counts once.
TEST(Contract, SubstitutesAppearAsTheirSamplesWould) {
  const auto source = jpeg_source(20);
  source->replace(7, {1, 2, 3});
  LoaderOptions options = contract_options(2);
  options.epochs = 1;
  options.feed.max_bad = 2;
  options.order = repeated_order({.samples = 20, .length = 60});
  Feed feed(*source, crop_spec(), options);
  std::map<uint64_t, DeliveredRow> rows;
  for (const Delivered& batch : feed.all()) {
    for (const DeliveredRow& row : batch.rows) {
      if (row.id == 7) rows[row.repeat_index] = row;
    }
  }
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& [repeat_index, row] : rows) {
    EXPECT_TRUE(row.bad);
    EXPECT_EQ(row.weight, 0);
    EXPECT_EQ(row.pixels_of, rows[0].pixels_of);
  }
  EXPECT_NE(rows[0].pixels, rows[1].pixels);
  EXPECT_NE(rows[1].pixels, rows[2].pixels);
  EXPECT_EQ(feed.loader().stats().bad_samples, 1);
}

}  // namespace
}  // namespace stoker::testing
