// Feeds of one process that share rows, as those of several do: each gives the bytes that it gives
// alone. (shared_process_test.cc has real processes.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "pipeline/files/invalid_field.h"
#include "pipeline/source/synthetic_source.h"
#include "pipeline/source/target_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

std::string new_name() {
  static int number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
}

LoaderOptions shared_options(LoaderOptions options, const std::string& name, int steps = 64,
                             double wait_s = 0) {
  options.share = {name, steps, wait_s};
  return options;
}

// Each feed in a thread of its own.
std::vector<std::vector<Delivered>> run_together(std::vector<std::unique_ptr<Feed>>& feeds) {
  std::vector<std::vector<Delivered>> batches(feeds.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < feeds.size(); ++i) {
    threads.emplace_back([&, i] { batches[i] = feeds[i]->all(); });
  }
  for (std::thread& thread : threads) thread.join();
  return batches;
}

TEST(SharedFeeds, GiveTheBytesOfOneAloneAndDecodeEachRowOnce) {
  const auto files = half_cached_source();
  const auto raw = make_synthetic_source(53, {16, 16}, 5, 2);
  for (const bool is_file : {true, false}) {
    const Source& source = is_file ? *static_cast<const Source*>(files.get()) : *raw;
    const AugmentSpec augment = is_file ? crop_spec() : pad_spec();
    for (const int devices : {1, 2}) {
      for (const int io_threads : {0, 2}) {
        LoaderOptions alone = exchange_options(1);
        alone.feed.io_threads = io_threads;
        const auto expected = Feed(source, augment, alone, devices).all();
        for (const std::vector<int>& workers :
             {std::vector{1, 1}, std::vector{0, 2}, std::vector{0, 0}, std::vector{3, 1, 2}}) {
          const std::string name = new_name();
          std::vector<std::unique_ptr<Feed>> feeds;
          for (const int count : workers) {
            LoaderOptions options = shared_options(alone, name);
            options.feed.workers = count;
            feeds.push_back(std::make_unique<Feed>(source, augment, options, devices));
          }
          for (const auto& batches : run_together(feeds)) EXPECT_EQ(batches, expected);
          int64_t given = 0, alone_rows = 0, taken_over = 0;
          for (const auto& feed : feeds) {
            const LoaderStats stats = feed->loader().stats();
            EXPECT_EQ(stats.share.taken + stats.share.given + stats.share.alone, rows_in(expected));
            EXPECT_EQ(stats.decode.items, stats.share.given + stats.share.alone);
            EXPECT_EQ(stats.share.corrupt, 0);
            given += stats.share.given;
            alone_rows += stats.share.alone;
            taken_over += stats.share.taken_over;
          }
          EXPECT_EQ(given, rows_in(expected));
          // Only what was taken over, on a machine that is busy, is decoded twice.
          if (taken_over == 0) {
            EXPECT_EQ(alone_rows, 0);
          }
        }
      }
    }
  }
}

// In a ring that is shorter than the feeds, members stay in step as long as they may wait. (It is
// as long as what the first one reads ahead before the second one is there.)
TEST(SharedFeeds, StayInStep) {
  const auto source = half_cached_source();
  const auto expected = Feed(*source, crop_spec(), exchange_options(1)).all();
  for (const int steps : {4, 5}) {
    for (const std::vector<int>& workers : {std::vector{1, 2}, std::vector{0, 2, 0}}) {
      const std::string name = new_name();
      std::vector<std::unique_ptr<Feed>> feeds;
      for (const int count : workers) {
        feeds.push_back(std::make_unique<Feed>(
            *source, crop_spec(), shared_options(exchange_options(count), name, steps, 1e6)));
      }
      for (const auto& batches : run_together(feeds)) EXPECT_EQ(batches, expected);
      int64_t given = 0, alone = 0, taken_over = 0;
      for (const auto& feed : feeds) {
        const ShareStats stats = feed->loader().stats().share;
        given += stats.given;
        alone += stats.alone;
        taken_over += stats.taken_over;
      }
      EXPECT_EQ(given, rows_in(expected));
      if (taken_over == 0) {
        EXPECT_EQ(alone, 0) << steps;
      }
    }
  }
}

TEST(SharedFeeds, BadSamplesAreEachFeedsOwn) {
  const auto source = faulty_source();
  const auto expected = Feed(*source, crop_spec(), exchange_options(1)).all();
  const std::string name = new_name();
  std::vector<std::unique_ptr<Feed>> feeds;
  TempFolder folder;
  for (int i = 0; i < 2; ++i) {
    LoaderOptions options = shared_options(exchange_options(2), name);
    options.quarantine_file = folder.path() + "/" + std::to_string(i);
    feeds.push_back(std::make_unique<Feed>(*source, crop_spec(), options));
  }
  for (const auto& batches : run_together(feeds)) EXPECT_EQ(batches, expected);
  for (const auto& feed : feeds) {
    const LoaderStats stats = feed->loader().stats();
    EXPECT_EQ(stats.bad_samples, 9);  // three in each epoch
    EXPECT_GE(stats.share.alone, 9);
  }
}

// Members may convert rows, each in its own way.
TEST(SharedFeeds, ConvertedAndMixedRowsViewsAndTargetsAreShared) {
  const auto pictures = half_cached_source();
  std::vector<float> ages(41);
  for (size_t i = 0; i < ages.size(); ++i) ages[i] = 0.5f * static_cast<float>(i);
  const TargetSource source(
      *pictures, {{{"age", TargetType::float32, {}}, std::as_bytes(std::span(ages)), nullptr}});
  const RowFormat planar{PixelType::fp32, PixelOrder::nchw, {0.5f, 0.4f, 0.3f}, {0.2f, 0.3f, 0.4f}};
  for (const char* list :
       {"random_resized_crop | flip", "random_resized_crop | flip | mix(mixup=0.4, cutmix=1.0)",
        "views(random_resized_crop, resize_center_crop)"}) {
    SCOPED_TRACE(list);
    const AugmentSpec augment(list, {24, 24});
    for (const int workers : {0, 2}) {
      const std::string name = new_name();
      LoaderOptions as_bytes = exchange_options(workers), converted = as_bytes;
      converted.format = planar;
      Feed bytes_alone(source, augment, as_bytes), converted_alone(source, augment, converted);
      Feed a(source, augment, shared_options(as_bytes, name));
      Feed b(source, augment, shared_options(converted, name));
      std::vector<std::byte> of_a, of_b;
      std::thread other([&] { of_a = all_bytes(a); });
      of_b = all_bytes(b);
      other.join();
      EXPECT_TRUE(of_a == all_bytes(bytes_alone));
      EXPECT_TRUE(of_b == all_bytes(converted_alone));
      EXPECT_EQ(a.loader().stats().share.given + b.loader().stats().share.given, 9 * 20);
    }
  }
}

TEST(SharedFeeds, ALaggardDecodesByItselfAndStopsNobody) {
  const auto source = half_cached_source();
  const auto expected = Feed(*source, crop_spec(), exchange_options(1)).all();
  for (const int workers : {0, 2}) {
    const std::string name = new_name();
    Feed slow(*source, crop_spec(), shared_options(exchange_options(workers), name, 2));
    Feed fast(*source, crop_spec(), shared_options(exchange_options(workers), name, 2));
    std::vector<Delivered> first = slow.take(1);
    EXPECT_EQ(fast.all(), expected);
    EXPECT_GT(fast.loader().stats().share.alone, 0);  // when it was out of reach
    for (Delivered& batch : slow.all()) first.push_back(std::move(batch));
    EXPECT_EQ(first, expected);
    EXPECT_GT(slow.loader().stats().share.alone, 0);
  }
}

TEST(SharedFeeds, PartsRanksAndResumedFeedsAreTheSame) {
  const auto source = half_cached_source();
  LoaderOptions alone = exchange_options(2, 6);
  alone.parts = 2;
  alone.rank = 1;
  alone.world = 2;
  alone.first_step = 1;
  const auto expected = Feed(*source, crop_spec(), alone).all();
  const std::string name = new_name();
  std::vector<std::unique_ptr<Feed>> feeds;
  for (int i = 0; i < 2; ++i) {
    feeds.push_back(std::make_unique<Feed>(*source, crop_spec(), shared_options(alone, name)));
  }
  for (const auto& batches : run_together(feeds)) EXPECT_EQ(batches, expected);
}

// Feeds that end at any moment leave no block behind that others wait for.
TEST(SharedFeeds, FeedsComeAndGo) {
  const auto source = half_cached_source();
  LoaderOptions alone = exchange_options(2);
  const auto expected = Feed(*source, crop_spec(), alone).all();
  const std::string name = new_name();
  for (int i = 0; i < 30; ++i) {
    Feed stays(*source, crop_spec(), shared_options(alone, name));
    std::thread other([&] {
      for (int j = 0; j < 3; ++j) {
        Feed goes(*source, crop_spec(), shared_options(alone, name));
        goes.take((i + j) % 5);
      }
    });
    EXPECT_EQ(stays.all(), expected);
    other.join();
  }
}

template <typename Error>
std::string shared_problem(const Source& source, const LoaderOptions& options) {
  return thrown_by<Error>([&] { const Feed refused(source, crop_spec(), options); });
}

TEST(SharedFeeds, OtherRowsUnderOneNameAreRefused) {
  const auto source = half_cached_source(), longer = half_cached_source(42);
  const LoaderOptions options = shared_options(exchange_options(1), new_name());
  const Feed feed(*source, crop_spec(), options);
  LoaderOptions other = options;
  other.seed = 10;
  EXPECT_THAT(shared_problem<std::runtime_error>(*source, other),
              HasSubstr("seed is 9 there and 10 here"));
  other = options;
  other.batch_size = 10;
  EXPECT_THAT(shared_problem<std::runtime_error>(*source, other),
              HasSubstr("batch_size is 20 there and 10 here"));
  other = options;
  other.share.steps = 5;
  EXPECT_THAT(shared_problem<std::runtime_error>(*source, other),
              HasSubstr("steps shared is 64 there and 5 here"));
  EXPECT_THAT(shared_problem<std::runtime_error>(*longer, options),
              HasSubstr("number of samples is 41 there and 42 here"));
  other = options;
  other.feed.workers = 3;  // and whatever else does not change the rows
  other.epochs = 1;
  other.ring_depth = 7;
  EXPECT_EQ(shared_problem<std::runtime_error>(*source, other), "nothing was thrown");
}

TEST(SharedFeeds, WhatCannotBeSharedIsRefused) {
  const auto source = half_cached_source();
  const std::string name = new_name();
  LoaderOptions options = shared_options(exchange_options(1), name);
  options.remote_rows = true;
  EXPECT_THAT(shared_problem<InvalidField>(*source, options), HasSubstr("remote"));
  options = shared_options(exchange_options(1), "a/b");
  EXPECT_THAT(shared_problem<InvalidField>(*source, options), HasSubstr("\"a/b\""));
  options = shared_options(exchange_options(1), std::string(101, 'a'));
  EXPECT_THAT(shared_problem<InvalidField>(*source, options), HasSubstr("100 letters"));
  options = shared_options(exchange_options(1), name, 0);
  EXPECT_THAT(shared_problem<InvalidField>(*source, options), HasSubstr("share.steps is 0"));
  options = shared_options(exchange_options(1, 1 << 14), name, 1 << 16);
  options.ring_depth = 1;
  EXPECT_THAT(shared_problem<std::runtime_error>(*source, options), HasSubstr("steps would fit"));
}

TEST(SharedFeeds, TheMemoryPlanHasTheSharedMemory) {
  const auto source = half_cached_source();
  const auto share_bytes = [&](int steps) {
    Feed feed(*source, crop_spec(), shared_options(exchange_options(1), new_name(), steps));
    return feed.loader().memory_plan().share_bytes;
  };
  const int64_t one = share_bytes(1), three = share_bytes(3);
  EXPECT_GT(one, 20 * 24 * 24 * 3);
  EXPECT_GT(three - one, 2 * 20 * 24 * 24 * 3);
  Feed alone(*source, crop_spec(), exchange_options(1));
  EXPECT_EQ(alone.loader().memory_plan().share_bytes, 0);
}

}  // namespace
}  // namespace stoker::testing
