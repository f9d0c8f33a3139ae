// FeedOptions::memory: a feed never has more, whatever pictures come, and the rows do not depend on
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "pipeline/feed/memory_plan.h"
#include "pipeline/feed/picture_look.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/source/annotated_source.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/process_memory.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

// Returns the least memory of a feed with these options, as the refusal of less says.
int64_t least_memory(const Source& source, LoaderOptions options,
                     const AugmentSpec& augment = crop_spec()) {
  options.feed.memory = 1;
  const std::string refusal = thrown_by<InvalidField>([&] { Feed feed(source, augment, options); });
  const std::string before = "at least ";
  return std::stoll(refusal.substr(refusal.find(before) + before.size())) * kMebibyte;
}

LoaderOptions limited_options(int workers) {
  LoaderOptions options{.batch_size = 8, .seed = 3, .epochs = 1};
  options.feed.workers = workers;
  options.feed.max_bad = 1000;
  options.digests = true;
  return options;
}

// Each takes 12 MiB or more as coefficients or pixels; between them are small ones.
std::vector<std::vector<uint8_t>> large_and_small_files() {
  std::vector<std::vector<uint8_t>> files;
  for (uint32_t i = 0; i < (kSanitizer ? 1 : 2); ++i) {  // they are slow there
    files.push_back(make_jpeg({2400, 1700}, {.quality = 40, .progressive = true}, i + 1));
    files.push_back(jpeg_file(60, 50, i + 10));
    files.push_back(make_png({.size = {2300, 1800}, .is_interlaced = true}, i + 1));
    files.push_back(jpeg_file(70, 50, i + 20));
    files.push_back(
        make_jpeg({1800, 1400}, {.colours = JpegColours::cmyk, .progressive = true}, i + 1));
  }
  return files;
}

TEST(MemoryLimit, RowsAreTheSameWhoeverHasToWait) {
  const FakeSource source(large_and_small_files(), 10, 2);
  for (const int workers : {0, 8}) {
    LoaderOptions options = limited_options(workers);
    const std::vector<Delivered> expected = Feed(source, crop_spec(), options).all();
    options.feed.memory = least_memory(source, options);
    Feed feed(source, crop_spec(), options);
    EXPECT_EQ(feed.all(), expected) << workers << " workers";
    const MemoryPlan plan = feed.loader().memory_plan();
    EXPECT_LE(plan.most_bytes(), options.feed.memory);
    EXPECT_GE(plan.frame_bytes, 32 * kMebibyte);
    EXPECT_EQ(feed.loader().stats().memory_waits > 0, workers == 8);
  }
}

// Two rows are at hand where they are mixed, and the whole picture where it is turned.
TEST(MemoryLimit, AlsoOfMixedAndOfTurnedPictures) {
  const FakeSource source(large_and_small_files(), 10, 2);
  AugmentSpec mixed = crop_spec();
  mixed.mix = {.mixup_alpha = 0.4, .cutmix_alpha = 1};
  const AugmentSpec whole("rotate(10) | random_resized_crop | flip", {24, 24});
  for (const AugmentSpec& augment : {mixed, whole}) {
    LoaderOptions options = limited_options(6);
    const std::vector<Delivered> expected = Feed(source, augment, options).all();
    options.feed.memory = least_memory(source, options, augment) + 16 * kMebibyte;
    Feed feed(source, augment, options);
    EXPECT_EQ(feed.all(), expected);
  }
}

// Their bytes are in buffers of the worker, which a row that begins again reads anew.
TEST(MemoryLimit, AlsoOfRawSamples) {
  const auto source = make_synthetic_source(24, {1500, 1100}, 2, 1);
  const AugmentSpec augment("rotate(20) | random_resized_crop | gaussian_blur(9)", {24, 24});
  for (const int workers : {0, 6}) {
    LoaderOptions options = limited_options(workers);
    const std::vector<Delivered> expected = Feed(*source, augment, options).all();
    options.feed.memory = least_memory(*source, options, augment);
    Feed feed(*source, augment, options);
    EXPECT_EQ(feed.all(), expected) << workers << " workers";
    EXPECT_GT(feed.loader().stats().memory_taken, 0);
    // All of the limit is expected to be used, and what is not in it.
    EXPECT_EQ(feed.loader().memory_plan().expected_bytes,
              options.feed.memory + kUsualCodeBytes + std::max(workers, 1) * kUsualThreadBytes);
  }
}

TEST(MemoryLimit, WhatCanNeverFitIsABadSampleWithNumbers) {
  std::vector<std::vector<uint8_t>> files = large_and_small_files();
  const FakeSource without(files, 10, 2);
  files[3] = make_jpeg({6000, 5000}, {.quality = 20, .progressive = true});  // 60 MiB and more
  const FakeSource source(files, 10, 2);
  for (const int workers : {0, 5}) {
    LoaderOptions options = limited_options(workers);
    const std::vector<Delivered> expected = Feed(without, crop_spec(), options).all();
    options.feed.memory = least_memory(source, options);
    const TempFolder folder;
    options.quarantine_file = folder.path() + "/bad.jsonl";
    const std::vector<Delivered> rows = Feed(source, crop_spec(), options).all();
    ASSERT_EQ(rows.size(), expected.size());
    int bad = 0;
    for (size_t batch = 0; batch < rows.size(); ++batch) {
      for (size_t row = 0; row < rows[batch].rows.size(); ++row) {
        const DeliveredRow& got = rows[batch].rows[row];
        if (got.id % std::ssize(files) != 3) {
          EXPECT_EQ(got, expected[batch].rows[row]);
          continue;
        }
        EXPECT_EQ(got.code, DecodeCode::too_large);
        EXPECT_EQ(got.weight, 0);
        EXPECT_NE(got.pixels_of % std::ssize(files), 3);
        ++bad;
      }
    }
    EXPECT_GE(bad, 1);  // more where it fills up the last batch
    std::ifstream list(options.quarantine_file);
    std::string line;
    ASSERT_TRUE(std::getline(list, line));
    EXPECT_THAT(line, AnyOf(HasSubstr("fake/3"), HasSubstr("fake/8")));
    EXPECT_THAT(line, HasSubstr("MiB of memory are needed for it, and the feed has at most"));
  }
}

// The pictures are small; what lies behind their end is read with them.
TEST(MemoryLimit, FilesCountToo) {
  std::vector<std::vector<uint8_t>> files;
  for (uint32_t i = 0; i < 4; ++i) {
    files.push_back(jpeg_file(60, 50, i));
    files.back().resize(size_t{24} << 20);
  }
  const FakeSource source(files, 12, 2);
  for (const int io_threads : {0, 2}) {
    LoaderOptions options = limited_options(6);
    options.feed.io_threads = io_threads;
    const std::vector<Delivered> expected = Feed(source, crop_spec(), options).all();
    options.feed.memory = least_memory(source, options);
    Feed feed(source, crop_spec(), options);
    EXPECT_EQ(feed.all(), expected);
    EXPECT_GE(feed.loader().stats().memory_taken, 16 * kMebibyte);
    EXPECT_GT(feed.loader().stats().memory_waits, 0);
  }
}

TEST(MemoryLimit, StoppingEndsTheWaiting) {
  const FakeSource source(large_and_small_files(), 10, 2);
  for (int i = 0; i < 5; i += kSanitizer ? 3 : 1) {
    LoaderOptions options = limited_options(8);
    options.epochs = -1;
    options.feed.memory = least_memory(source, options);
    Feed feed(source, crop_spec(), options);
    feed.take(i);
  }
}

TEST(MemoryLimit, TooLittleIsRefusedWithNumbers) {
  const auto source = jpeg_source(10);
  LoaderOptions options = limited_options(3);
  options.feed.memory = 20 * kMebibyte;
  EXPECT_THAT(thrown_by<InvalidField>([&] { Feed feed(*source, crop_spec(), options); }),
              AllOf(HasSubstr("memory is 20 MiB, must be at least"), HasSubstr("3 workers 8 MiB")));
  options.feed.memory = -1;
  EXPECT_THAT(thrown_by<InvalidField>([&] { Feed feed(*source, crop_spec(), options); }),
              HasSubstr("memory is -1 bytes"));
}

TEST(MemoryShares, TheyNeverExceedTheLimit) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    FeedOptions options;
    const int64_t needed = static_cast<int64_t>(random() % 1000) * kMebibyte;
    const int64_t own = static_cast<int64_t>(1 + random() % 200) * kMebibyte;
    const int workers = 1 + static_cast<int>(random() % 64);
    options.memory = needed + static_cast<int64_t>(random() % 4000) * kMebibyte;
    MemoryShares shares;
    try {
      shares = share_memory(options, needed, own, workers, i % 2 == 0);
    } catch (const InvalidField&) {
      EXPECT_LT(options.memory, needed + workers * std::min(own, 8 * kMebibyte) + 32 * kMebibyte);
      continue;
    }
    EXPECT_EQ(needed + workers * shares.own + shares.large_files + shares.pictures, options.memory);
    EXPECT_LE(shares.own, own);
    EXPECT_GE(shares.pictures, 28 * kMebibyte);
    EXPECT_EQ(shares.large_files > 0, i % 2 == 0);
  }
}

class SizesKnown : public ::testing::Test {
 protected:
  // The pictures are small; what the annotations say of some of them is not.
  AnnotatedSource annotated(const std::vector<Size>& sizes) const {
    AnnotationSetBuilder set({.objects = true});
    SampleAnnotations annotations;
    for (int64_t i = 0; i < files_.size(); ++i) {
      const auto place = static_cast<size_t>(i);
      set.add(files_.name(i), Annotations{.size = place < sizes.size() ? sizes[place] : Size{}});
      annotations.pictures.push_back(i);
    }
    annotations.set = set.finish();
    return {files_, std::move(annotations)};
  }

  // Returns why a feed is refused. The largest picture may have 40 MiB or less.
  std::string refusal(const Source& source, const AugmentSpec& augment, double max_bad = 0) {
    LoaderOptions options = limited_options(2);
    options.feed.memory = least_memory(files_, options, augment);
    options.feed.max_bad = max_bad;
    return thrown_by<InvalidField>([&] { Feed feed(source, augment, options); });
  }

  const FakeSource files_{{jpeg_file(60, 50, 1)}, 12, 2};
  const AugmentSpec whole_{"rotate(10) | random_resized_crop | flip", {24, 24}};
};

TEST_F(SizesKnown, PicturesThatCanNeverFitAreRefusedBefore) {
  // As bytes: 40,000,000 and 60,000,000 and more are too much, 8,000,000 are not.
  const AnnotatedSource source = annotated({{}, {2000, 1500}, {5000, 3000}, {}, {9000, 8000}});
  const std::string text = refusal(source, whole_);
  EXPECT_THAT(text, AllOf(HasSubstr("memory is "), HasSubstr("and 2 of 12 pictures can never")));
  EXPECT_THAT(text, HasSubstr("`max_bad` allows 0: the first is fake/2, 5000 x 3000 pixels, "
                              "which take at least 42 MiB; the largest needs a limit of about "));
  // That limit is enough.
  const std::string before = "about ";
  LoaderOptions options = limited_options(2);
  options.feed.max_bad = 0;
  options.feed.memory = std::stoll(text.substr(text.find(before) + before.size())) * kMebibyte;
  Feed(source, whole_, options).take(0);
}

TEST_F(SizesKnown, ViewsPassThemOn) {
  const AnnotatedSource source = annotated({{}, {}, {}, {}, {9000, 8000}});
  const SubsetSource part(source, {7, 4, 2});
  EXPECT_THAT(refusal(part, whole_), HasSubstr("1 of 3 pictures"));
  const ConcatSource both({&part, &source});
  EXPECT_THAT(refusal(both, whole_), HasSubstr("2 of 15 pictures"));
  EXPECT_EQ(both.picture_size(1), (Size{9000, 8000}));
  EXPECT_EQ(both.picture_size(4), Size{});
  EXPECT_EQ(both.picture_size(3 + 4), (Size{9000, 8000}));
}

TEST_F(SizesKnown, WhatFitsOrIsToleratedIsNotRefused) {
  const std::string none = "nothing was thrown";
  EXPECT_EQ(refusal(annotated({{2000, 1500}}), whole_), none);
  const AnnotatedSource large = annotated({{9000, 8000}});
  EXPECT_EQ(refusal(large, whole_, 1), none);
  EXPECT_EQ(refusal(large, whole_, 0.1), none);
  EXPECT_NE(refusal(large, whole_, 0.05), none);
  // A crop of it fits, or the whole of it in half of the epochs.
  EXPECT_EQ(refusal(large, crop_spec()), none);
  EXPECT_EQ(refusal(large, AugmentSpec("rotate(10, p=0.5) | random_resized_crop", {24, 24})), none);
  // It is a bad sample anyway.
  EXPECT_EQ(refusal(annotated({{20000, 20000}}), whole_), none);
}

// A row of it has the file, the decoder a copy of its data, and the picture before and after it is
// turned.
TEST(PictureLook, CountsWhatTheLargestPictureTakes) {
  const std::vector<uint8_t> large = make_jpeg({900, 700}, {}, 1);
  FakeSource source({jpeg_file(60, 50, 1), jpeg_file(70, 50, 2), large}, 3, 1);
  const AugmentSpec augment("rotate((45, 45)) | resize_center_crop", {24, 24});
  MemoryBudget memory(64 * kMebibyte);
  EXPECT_FALSE(look_at_pictures(source, augment, {}, memory));
  EXPECT_EQ(source.reads(), 0);  // it has no files
  for (SampleId id = 0; id < source.size(); ++id) source.cache(id);
  const auto look = look_at_pictures(source, augment, {}, memory);
  ASSERT_TRUE(look);
  EXPECT_TRUE(look->is_cached);
  EXPECT_EQ(look->file_bytes, std::ssize(large));
  const int64_t counted = 2 * 3 * 900 * 700 + 2 * look->file_bytes;
  EXPECT_GE(look->row_bytes, counted - (kMebibyte >> 2));  // headers are not copied
  EXPECT_LE(look->row_bytes, counted + kMebibyte);
  // If it cannot have so much, that is said, and nothing stays taken.
  MemoryBudget little(2 * kMebibyte);
  EXPECT_GT(look_at_pictures(source, augment, {}, little)->row_bytes, 2 * kMebibyte);
  MemoryLease all(&little, 0);
  EXPECT_TRUE(all.wait_for(2 * kMebibyte));
}

// The samples are files, so that they may be read before the run.
class StampedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  FileStamp stamp(SampleId) const override { return {.bytes = 1, .modified_ns = 1}; }
};

TEST(PictureLook, ReadsFewFilesThatAreNotInMemory) {
  const FakeSource files({jpeg_file(60, 50, 1)}, 1000, 2);
  MemoryBudget memory(64 * kMebibyte);
  const auto look = look_at_pictures(StampedSource(files), crop_spec(), {}, memory);
  ASSERT_TRUE(look);
  EXPECT_FALSE(look->is_cached);
  EXPECT_EQ(files.reads(), 16 + 4);  // headers, rows
}

// An operation that throws makes a bad sample in a feed, and no error here.
TEST(PictureLook, LeavesOutWhatFails) {
  FakeSource source({jpeg_file(60, 50, 1)}, 3, 1);
  for (SampleId id = 0; id < source.size(); ++id) source.cache(id);
  AugmentSpec augment = crop_spec();
  augment.add(
      {"fails", [](MutableImageView, const RandomKey&) { throw std::runtime_error("no"); }});
  MemoryBudget memory(64 * kMebibyte);
  EXPECT_TRUE(look_at_pictures(source, augment, {}, memory));
}

TEST(MemoryPlan, IsExpectedAsCountedByHand) {
  const auto source = make_synthetic_source(64, {32, 32}, 2, 1);
  for (const int workers : {1, 5}) {
    const LoaderOptions options = limited_options(workers);
    Feed feed(*source, crop_spec(), options);
    const MemoryPlan plan = feed.loader().memory_plan();
    const int64_t each = worker_scratch_bytes(*source, crop_spec(), {}) + kUsualThreadBytes;
    EXPECT_EQ(plan.expected_bytes, plan.ring_bytes + kUsualCodeBytes + workers * each);
  }
  // Nothing is known of files that only code of users has: as photographs of half a megapixel.
  const FakeSource files({jpeg_file(60, 50, 1)}, 12, 2);
  Feed feed(files, crop_spec(), limited_options(2));
  const MemoryPlan plan = feed.loader().memory_plan();
  const int64_t each = (900 << 10) + 2 * 3 * 24 * 24 + kUsualThreadBytes;
  EXPECT_EQ(plan.expected_bytes, plan.ring_bytes + kUsualCodeBytes + 2 * each);
}

// Ends the process: 0 if its peak has grown by no more than the limit, and by what tables, threads
// and the allocator take.
[[noreturn]] void run_limited(const std::string& folder, const LoaderOptions& options) {
  constexpr int64_t kUncounted = 24 * kMebibyte;
  const auto source = open_source(folder, Split::train);
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // reset the peak
  const int64_t before = process_bytes("VmRSS");
  {
    Feed feed(*source, crop_spec(64), options);
    feed.all();
  }
  const int64_t grown = process_bytes("VmHWM") - before;
  std::fprintf(stderr, "grew by %lld MiB of %lld\n", static_cast<long long>(grown / kMebibyte),
               static_cast<long long>(options.feed.memory / kMebibyte));
  std::exit(::testing::Test::HasFailure() || grown > options.feed.memory + kUncounted ? 1 : 0);
}

// The kernel counts, so libraries' memory is in it, too. Each has its own process.
TEST(MemoryLimitDeathTest, TheProcessStaysWithinIt) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers keep what is freed";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempFolder folder;
  const auto files = large_and_small_files();
  for (size_t i = 0; i < files.size(); ++i) {
    const char* const ending = files[i][0] == 0xFF ? ".jpg" : ".png";
    folder.write("a/" + std::to_string(i) + ending, std::string(files[i].begin(), files[i].end()));
  }
  for (const int workers : {2, 12}) {
    for (const int io_threads : {0, 2}) {
      LoaderOptions options = limited_options(workers);
      options.feed.io_threads = io_threads;
      const auto source = open_source(folder.path(), Split::train);
      options.feed.memory = least_memory(*source, options) + 16 * kMebibyte;
      EXPECT_EXIT(run_limited(folder.path(), options), ::testing::ExitedWithCode(0), "grew by");
    }
  }
}

}  // namespace
}  // namespace stoker::testing
