// Which bucket a picture belongs to, and the steps of an epoch over buckets.
#include "pipeline/step_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "pipeline/order/sampler.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Size> random_pictures(std::mt19937_64& random, int count) {
  std::vector<Size> pictures;
  for (int i = 0; i < count; ++i) {
    const auto side = [&random] { return 20 + static_cast<int>(random() % 300); };
    pictures.push_back({side(), side()});
  }
  return pictures;
}

SharedBuckets buckets_of(std::span<const Size> pictures, std::vector<Size> sizes,
                         bool enlarge = true) {
  return std::make_shared<const AspectBuckets>(
      pictures, BucketOptions{.sizes = std::move(sizes), .enlarge = enlarge});
}

TEST(AspectSizes, AreTheLargestMultiplesWithinTheArea) {
  const std::vector<Size> sizes = aspect_sizes(int64_t{1024} * 1024, 64, 2);
  ASSERT_FALSE(sizes.empty());
  for (const Size size : sizes) {
    EXPECT_EQ(size.width % 64, 0);
    EXPECT_EQ(size.height % 64, 0);
    EXPECT_LE(int64_t{size.width} * size.height, 1024 * 1024);
    EXPECT_GT(int64_t{size.width} * (size.height + 64), 1024 * 1024);
    EXPECT_LE(std::max(size.width, size.height), 2 * std::min(size.width, size.height));
  }
  EXPECT_NE(std::find(sizes.begin(), sizes.end(), Size{1024, 1024}), sizes.end());
  EXPECT_NE(std::find(sizes.begin(), sizes.end(), Size{832, 1216}), sizes.end());
  std::set<int> heights;
  for (const Size size : sizes) EXPECT_TRUE(heights.insert(size.height).second) << size.height;
  EXPECT_THAT(thrown_by<std::invalid_argument>([] { aspect_sizes(100, 64); }), HasSubstr("100"));
  EXPECT_THAT(thrown_by<std::invalid_argument>([] { aspect_sizes(10000, 64, 0.5); }),
              HasSubstr("0.5"));
}

TEST(AspectBuckets, APictureGoesWhereLeastIsCropped) {
  const std::vector<Size> sizes = {{64, 64}, {48, 80}, {80, 48}, {32, 96}};
  std::mt19937_64 random(5);
  const std::vector<Size> pictures = random_pictures(random, 2000);
  const SharedBuckets buckets = buckets_of(pictures, sizes);
  const auto seen = [](Size picture, Size bucket) {
    const double a = static_cast<double>(picture.width) / picture.height;
    const double b = static_cast<double>(bucket.width) / bucket.height;
    return std::min(a / b, b / a);
  };
  int64_t places = 0;
  for (size_t b = 0; b < sizes.size(); ++b) {
    const AspectBuckets::Bucket& bucket = buckets->buckets()[b];
    EXPECT_EQ(bucket.begin, places);
    double cropped = 0;
    for (int64_t i = 0; i < bucket.samples; ++i) {
      const SampleId id = buckets->at(bucket.begin + i);
      const Size picture = pictures[static_cast<size_t>(id)];
      for (const Size other : sizes) {
        EXPECT_GE(seen(picture, bucket.size) + 1e-12, seen(picture, other)) << id;
      }
      EXPECT_GT(id, i > 0 ? buckets->at(bucket.begin + i - 1) : -1);
      cropped += 1 - seen(picture, bucket.size);
    }
    EXPECT_NEAR(bucket.cropped, cropped / static_cast<double>(bucket.samples), 1e-9);
    places += bucket.samples;
  }
  EXPECT_EQ(places, 2000);
  EXPECT_EQ(buckets->left_out(), 0);
}

// Where several buckets have one shape: the largest that is covered without enlarging, else the
// smallest.
TEST(AspectBuckets, OfSeveralOfOneShapeTheSizeDecides) {
  const std::vector<Size> pictures = {{100, 100}, {64, 64}, {200, 200}, {31, 31}};
  const SharedBuckets buckets = buckets_of(pictures, {{32, 32}, {64, 64}, {128, 128}});
  const auto bucket = [&](Size size) { return buckets->bucket_of(size); };
  EXPECT_EQ(bucket({100, 100}), 1);
  EXPECT_EQ(bucket({64, 64}), 1);
  EXPECT_EQ(bucket({200, 200}), 2);
  EXPECT_EQ(bucket({31, 31}), 0);
}

TEST(AspectBuckets, NothingIsEnlargedOnRequest) {
  const std::vector<Size> pictures = {{100, 40}, {40, 40}, {90, 90}, {10, 10}};
  const SharedBuckets buckets = buckets_of(pictures, {{64, 64}, {64, 32}}, false);
  EXPECT_EQ(buckets->bucket_of({100, 40}), 1);
  EXPECT_EQ(buckets->bucket_of({40, 40}), -1);  // it would fit the square by its shape
  EXPECT_EQ(buckets->samples(), 2);
  EXPECT_EQ(buckets->left_out(), 2);
  EXPECT_EQ(buckets->first_left_out(), 1);
  const std::vector<Size> small = {{10, 10}};
  EXPECT_THAT(thrown_by<std::invalid_argument>([&] {
                buckets_of(small, {{64, 64}}, false);
              }),
              HasSubstr("10 x 10"));
}

TEST(AspectBuckets, RefusesWhatIsNoListOfSizes) {
  const std::vector<Size> pictures = {{100, 40}};
  const auto message = [&](BucketOptions options) {
    return thrown_by<std::invalid_argument>([&] { AspectBuckets(pictures, options); });
  };
  EXPECT_THAT(message({}), HasSubstr("no sizes"));
  EXPECT_THAT(message({.sizes = {{64, 64}, {64, 64}}}), HasSubstr("64 x 64 pixels is there twice"));
  EXPECT_THAT(message({.sizes = {{64, 0}}}), HasSubstr("64 x 0"));
  EXPECT_THAT(message({.sizes = {{64, 72}}, .multiple_of = 16}),
              HasSubstr("64 x 72 pixels, and both sides must be multiples of 16"));
}

TEST(AspectBuckets, PicturesOfUnknownSizeHaveARowInTheFirst) {
  const std::vector<Size> pictures = {{64, 64}, {}, {90, 30}};
  const SharedBuckets buckets = buckets_of(pictures, {{32, 32}, {96, 32}});
  EXPECT_EQ(buckets->buckets()[0].samples, 2);
  EXPECT_EQ(buckets->at(1), 1);
  EXPECT_EQ(buckets->unknown(), 1);
  EXPECT_EQ(buckets->left_out(), 0);
}

struct BucketFeed {
  SharedBuckets buckets;
  int global_batch;
  LastBatch last_batch;
  uint64_t seed;
  bool shuffle = true;
  EpochGrid grid{};

  Sampler sampler(int world) const {
    return Sampler({.samples = buckets->pictures(),
                    .rows = global_batch / world,
                    .replicas = world,
                    .seed = seed,
                    .shuffle = shuffle,
                    .last_batch = last_batch,
                    .grid = grid,
                    .buckets = buckets});
  }
};

// 100 random configurations: the ranks of worlds of 1, 3 and 8 have one shape in every step and the
// same samples in the same rows, every sample comes once, and in a bucket it belongs to.
TEST(BucketSteps, RanksHaveOneShapeAndEverySampleComesOnce) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const auto below = [&random](uint64_t bound) { return static_cast<int>(random() % bound); };
    const std::vector<Size> pictures = random_pictures(random, 1 + below(900));
    const std::vector<Size> all = {{64, 64}, {48, 80}, {80, 48}, {32, 96}, {96, 32}, {128, 128}};
    std::vector<Size> sizes(all.begin(), all.begin() + 1 + below(all.size()));
    BucketFeed feed{buckets_of(pictures, sizes), 24 * (1 + below(3)),
                    i % 2 == 0 ? LastBatch::pad : LastBatch::merge, random(), below(4) != 0};
    const Sampler alone = feed.sampler(1), three = feed.sampler(3), eight = feed.sampler(8);
    const int64_t epoch = below(5);
    const EpochKey key = alone.key(epoch);
    std::vector<int> counts(pictures.size());
    EXPECT_EQ(three.steps_per_epoch(), alone.steps_per_epoch());
    EXPECT_EQ(eight.steps_per_epoch(), alone.steps_per_epoch());
    for (int64_t step = 0; step < alone.steps_per_epoch(); ++step) {
      const int shape = alone.shape(key, step);
      EXPECT_EQ(three.shape(three.key(epoch), step), shape);
      EXPECT_EQ(eight.shape(eight.key(epoch), step), shape);
      int others = 0;
      for (int row = 0; row < feed.global_batch; ++row) {
        const SampledRow sampled = alone.row(key, step, 0, row);
        const auto same = [&](const Sampler& sampler) {
          const int rows = sampler.options().rows;
          const SampledRow other = sampler.row(sampler.key(epoch), step, row / rows, row % rows);
          EXPECT_EQ(other.id, sampled.id);
          EXPECT_EQ(other.weight, sampled.weight);
        };
        same(three);
        same(eight);
        if (sampled.weight > 0) ++counts[static_cast<size_t>(sampled.id)];
        others += feed.buckets->bucket_of(pictures[static_cast<size_t>(sampled.id)]) != shape;
      }
      // Only merged steps, which are the last ones, have samples of neighbours.
      const auto most = static_cast<int64_t>(sizes.size());
      if (feed.last_batch == LastBatch::pad || step < alone.steps_per_epoch() - most) {
        EXPECT_EQ(others, 0) << step;
      }
    }
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), std::ssize(counts));
    if (feed.last_batch == LastBatch::merge) {
      EXPECT_EQ(alone.steps_per_epoch(),
                (std::ssize(pictures) + feed.global_batch - 1) / feed.global_batch);
    }
  }
}

TEST(BucketSteps, DropLeavesOutAndWrapFillsUp) {
  const std::vector<Size> pictures = [] {
    std::vector<Size> sizes(23, Size{64, 64});
    sizes.resize(23 + 9, Size{64, 128});
    return sizes;
  }();
  const SharedBuckets buckets = buckets_of(pictures, {{32, 32}, {32, 64}});
  const auto rows_of = [&](LastBatch policy) {
    const Sampler sampler = BucketFeed{buckets, 8, policy, 3}.sampler(1);
    std::map<SampleId, int> counts;
    for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      for (int row = 0; row < 8; ++row) {
        const SampledRow sampled = sampler.row(1, step, 0, row);
        EXPECT_EQ(sampled.weight, 1) << "of a whole step";
        EXPECT_EQ(sampled.id < 23, sampler.shape(sampler.key(1), step) == 0);
        ++counts[sampled.id];
      }
    }
    return std::pair(sampler.steps_per_epoch(), counts);
  };
  const auto [dropped_steps, dropped] = rows_of(LastBatch::drop);
  EXPECT_EQ(dropped_steps, 3);
  EXPECT_EQ(dropped.size(), 24u);
  const auto [wrapped_steps, wrapped] = rows_of(LastBatch::wrap);
  EXPECT_EQ(wrapped_steps, 5);
  EXPECT_EQ(wrapped.size(), 32u);
  EXPECT_THAT(thrown_by<std::invalid_argument>([&] {
                BucketFeed{buckets, 24, LastBatch::drop, 3}.sampler(1);
              }),
              HasSubstr("23 samples of the largest bucket"));
}

// Rows that fill up a last step: with `pad` the step's own ones, in turn, and with `wrap` the
// bucket's first ones, also where the epoch goes on with another batch.
TEST(BucketSteps, LastStepsAreFilledUpFromTheirBucket) {
  const std::vector<Size> pictures(23, Size{64, 64});
  const SharedBuckets buckets = buckets_of(pictures, {{32, 32}});
  const auto ids_of = [](const Sampler& sampler, int64_t step) {
    std::vector<SampleId> ids;
    for (int row = 0; row < 8; ++row) ids.push_back(sampler.row(1, step, 0, row).id);
    return ids;
  };
  const Sampler padded = BucketFeed{buckets, 8, LastBatch::pad, 3}.sampler(1);
  const std::vector<SampleId> last = ids_of(padded, 2);
  EXPECT_EQ(last[7], last[0]);
  EXPECT_EQ(std::set<SampleId>(last.begin(), last.end()).size(), 7u);
  BucketFeed feed{buckets, 8, LastBatch::wrap, 3};
  const std::vector<SampleId> first = ids_of(feed.sampler(1), 0);
  EXPECT_EQ(ids_of(feed.sampler(1), 2)[7], first[0]);
  EXPECT_EQ(ids_of(feed.sampler(1), 2)[6], last[6]);
  // Rows that fill up are mixed with none, nor is the one before them.
  for (const LastBatch policy : {LastBatch::pad, LastBatch::wrap}) {
    const Sampler sampler = BucketFeed{buckets, 8, policy, 3}.sampler(1);
    const EpochKey key = sampler.key(1);
    for (int row = 0; row < 8; ++row) {
      EXPECT_TRUE(sampler.paired(key, 1, 0, row));
      EXPECT_EQ(sampler.paired(key, 2, 0, row), row < 6) << to_string(policy) << row;
    }
  }
  feed.grid = continue_at(feed.sampler(1), 1, {5}).grid;  // 18 are left: steps of 8, 8 and 2
  const std::vector<SampleId> wrapped = ids_of(feed.sampler(1), 2);
  EXPECT_EQ(std::vector(wrapped.begin() + 2, wrapped.end()),
            std::vector(first.begin(), first.begin() + 6));
}

// Chi-square of where samples come within their bucket: 400 epochs of 8 samples.
TEST(BucketSteps, TheOrderWithinABucketIsUniform) {
  const std::vector<Size> pictures(8, Size{64, 64});
  const Sampler sampler =
      BucketFeed{buckets_of(pictures, {{32, 32}}), 4, LastBatch::pad, 11}.sampler(1);
  std::vector<std::vector<int>> counts(8, std::vector<int>(8));
  for (int64_t epoch = 0; epoch < 400; ++epoch) {
    for (int place = 0; place < 8; ++place) {
      ++counts[static_cast<size_t>(place)]
              [static_cast<size_t>(sampler.row(epoch, place / 4, 0, place % 4).id)];
    }
  }
  double chi_square = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi_square += (count - 50) * (count - 50) / 50.0;
  }
  EXPECT_LT(chi_square, 49 + 5 * std::sqrt(2 * 49));  // 49 degrees of freedom
}

// The turns of two equal buckets: as often in each half of the epoch.
TEST(BucketSteps, TheTurnsOfBucketsAreMixed) {
  std::vector<Size> pictures(4000, Size{64, 64});
  std::fill_n(pictures.begin(), 2000, Size{64, 128});
  const Sampler sampler =
      BucketFeed{buckets_of(pictures, {{32, 32}, {32, 64}}), 4, LastBatch::pad, 1}.sampler(1);
  const EpochKey key = sampler.key(0), other = sampler.key(1);
  int first_half = 0, same = 0;
  for (int64_t step = 0; step < 1000; ++step) {
    if (step < 500) first_half += sampler.shape(key, step);
    same += sampler.shape(key, step) == sampler.shape(other, step);
  }
  EXPECT_NEAR(first_half, 250, 5 * std::sqrt(62.5));
  EXPECT_NEAR(same, 500, 5 * std::sqrt(250.0));
}

// An epoch goes on after any step with batches of another size: nothing is lost, nothing comes
// twice, and it ends with its usual last step; also if that happens twice.
TEST(BucketSteps, AnEpochGoesOnWithBatchesOfAnotherSize) {
  std::mt19937_64 random(9);
  const std::vector<Size> pictures = random_pictures(random, 150);
  const SharedBuckets buckets = buckets_of(pictures, {{64, 64}, {48, 80}, {80, 48}});
  for (const LastBatch policy : {LastBatch::pad, LastBatch::merge}) {
    for (int i = 0; i < 60; ++i) {
      SCOPED_TRACE(i);
      std::vector<int> counts(pictures.size());
      EpochGrid grid;
      int64_t step = 0;
      for (int change = 0; change < 3; ++change) {
        const BucketFeed feed{buckets, 1 + static_cast<int>(random() % 40), policy, 5, true, {}};
        const Continuation next =
            continue_at(feed.sampler(1), 2, change == 0 ? std::vector<int64_t>(3) : grid.taken);
        BucketFeed going_on = feed;
        going_on.grid = next.grid;
        const Sampler sampler = going_on.sampler(1);
        const int64_t steps = sampler.steps_per_epoch();
        step = next.step - 2 * steps;
        const bool is_last = change == 2;
        const int64_t end = is_last ? steps : step + (steps - step) / 2;
        for (; step < end; ++step) {
          for (int row = 0; row < feed.global_batch; ++row) {
            const SampledRow sampled = sampler.row(2, step, 0, row);
            if (sampled.weight > 0) ++counts[static_cast<size_t>(sampled.id)];
          }
        }
        if (!is_last) grid.taken = sampler.taken(2, step);
      }
      EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), std::ssize(counts));
    }
  }
}

TEST(BucketSteps, RefusesWhatDoesNotFit) {
  const std::vector<Size> pictures(8, Size{64, 64});
  const SharedBuckets buckets = buckets_of(pictures, {{32, 32}});
  const auto message = [](SamplerOptions options) {
    return thrown_by<std::invalid_argument>([&] { Sampler{options}; });
  };
  EXPECT_THAT(message({.samples = 9, .rows = 2, .buckets = buckets}),
              HasSubstr("of 8 pictures, and the source has 9 samples"));
  EXPECT_THAT(message({.samples = 8, .rows = 2, .order = shuffled_order(8), .buckets = buckets}),
              HasSubstr("order"));
  EXPECT_THAT(message({.samples = 8, .rows = 2, .last_batch = LastBatch::merge}),
              HasSubstr("merge"));
  const auto shapes =
      std::make_shared<const ShapeSchedule>(std::vector<ShapePiece>{{0, {{32, 32}}}});
  EXPECT_THAT(message({.samples = 8, .rows = 2, .buckets = buckets, .shapes = shapes}),
              HasSubstr("schedule"));
  EXPECT_THAT(message({.samples = 8, .rows = 2, .grid = {0, 1, 2, {3}}, .buckets = buckets}),
              HasSubstr("cannot begin"));
}

TEST(ShapeSchedule, DrawsASizeForEachStepAndFollowsTheEpoch) {
  const ShapeSchedule schedule({{0, {{128, 128}}}, {2, {{160, 160}, {192, 192}, {128, 128}}}}, 10);
  EXPECT_THAT(schedule.sizes(), ElementsAre(Size{128, 128}, Size{160, 160}, Size{192, 192}));
  std::map<int, int> counts;
  for (int64_t epoch = 0; epoch < 52; ++epoch) {
    const EpochKey key(4, epoch);
    for (int64_t step = 0; step < 30; ++step) {
      const int shape = schedule.shape(key, step);
      EXPECT_EQ(shape, schedule.shape(EpochKey(4, epoch), step / 10 * 10));
      if (epoch < 2) {
        EXPECT_EQ(shape, 0);
      } else {
        ++counts[shape];
      }
    }
  }
  for (const int shape : {0, 1, 2}) EXPECT_NEAR(counts[shape], 500, 5 * std::sqrt(10 * 333.0));
  const auto message = [](std::vector<ShapePiece> pieces, int64_t hold = 1) {
    return thrown_by<std::invalid_argument>([&] { ShapeSchedule(pieces, hold); });
  };
  EXPECT_THAT(message({}), HasSubstr("no sizes"));
  EXPECT_THAT(message({{1, {{8, 8}}}}), HasSubstr("from epoch 1 on"));
  EXPECT_THAT(message({{0, {{8, 8}}}, {0, {{8, 8}}}}), HasSubstr("from epoch 0 on"));
  EXPECT_THAT(message({{0, {}}}), HasSubstr("are 0"));
  EXPECT_THAT(message({{0, {{8, 8}}}}, 0), HasSubstr("hold is 0"));
}

}  // namespace
}  // namespace stoker::testing
