// DecodedCache: rows with it are those without it, what it keeps and refuses, and what damage,
// changed files, other sizes, full disks and several processes do. (kept_files_test.cc kills one
// thread at each of its system calls.)
#include "pipeline/cache/decoded_cache.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "pipeline/cache/decoded_samples.h"
#include "pipeline/feed/feed_sequence.h"
#include "pipeline/files/durable_file.h"
#include "pipeline/files/invalid_field.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/decoded_cache_support.h"
#include "tests/support/cache_folder.h"
#include "tests/support/child_test.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kPlenty = int64_t{64} << 20;

std::shared_ptr<DecodedCache> cache_at(const std::string& folder, int64_t bytes = kPlenty) {
  return std::make_shared<DecodedCache>(DecodedCacheOptions{folder, bytes});
}

int64_t row_bytes(const Recipe& recipe) {
  return DecodedSamples::place_bytes({.is_whole = false, .size = recipe.size});
}

std::string decoded_refusal(const Source& source, const Recipe& recipe) {
  LoaderOptions options = decoded_options(recipe, 1, 0);
  options.feed.cache = cache_at("");
  try {
    const Feed feed(source, recipe.spec(), options);
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(decoded_cache_refusal(source, recipe.spec(), options.feed.decode),
              std::string(error.what()).substr(std::string("LoaderOptions: cache").size()));
    return error.what();
  }
  return "";
}

// ---- The same rows

struct Case {
  Recipe recipe;
  bool small = false;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.recipe.stages << ", " << to_string(one.recipe.pixels);
}

class SameRowsTest : public ::testing::TestWithParam<Case> {};

// Geometry that is the same in every epoch, with and without a random part behind it; and small
// images, of which rows show parts.
INSTANTIATE_TEST_SUITE_P(
    Recipes, SameRowsTest,
    ::testing::Values(
        Case{kEvaluation}, Case{{"resize((20, 24))", {24, 20}}},
        Case{{"resize((20, 24), filter='bicubic') | flip", {24, 20}}},
        Case{{"center_crop(24) | flip | color_jitter(0.3, 0.3, 0.3)", {24, 24}}},
        Case{{"corner_crop('bottom_right', 30) | rotate(20)", {30, 30}}},
        Case{{"resize_center_crop(short=30) | flip", {24, 24}, PixelPolicy::fast}},
        Case{{"resize((40, 40)) | pad(4, mode='reflect') | random_crop(40)", {40, 40}}},
        Case{{"resize_center_crop(short=30) | random_erasing(0.5)", {24, 24}}},
        Case{{"resize_center_crop(short=30) | flip | mix(mixup=0.4)", {24, 24}}},
        Case{{"resize_center_crop(short=30)", {24, 24}, PixelPolicy::exact_pillow12}},
        Case{
            {"resize_center_crop(short=35, filter='bicubic') | flip", {25, 21}, PixelPolicy::fast}},
        Case{{"center_crop(25) | flip", {25, 25}, PixelPolicy::fast}},
        Case{{"corner_crop('bottom_right', (30, 27)) | flip", {27, 30}, PixelPolicy::fast}},
        Case{kSmall, true},
        Case{{"random_crop(padding=4) | flip", {32, 32}, PixelPolicy::fast}, true},
        Case{{"random_crop(padding=4, mode='edge') | flip | cutout(8)", {32, 32}}, true},
        Case{{"random_crop(padding=4, fill=9) | flip", {32, 32}, PixelPolicy::fast}, true},
        Case{{"random_crop(28) | flip", {28, 28}}, true},
        Case{{"random_resized_crop(24) | flip | color_jitter(0.2)", {24, 24}}, true},
        Case{{"random_resized_crop(24, filter='bicubic')", {24, 24}, PixelPolicy::exact_pillow12},
             true},
        Case{{"flip | random_resized_crop(20) | vertical_flip", {20, 20}}, true}));

TEST_P(SameRowsTest, AreThoseWithoutTheCache) {
  const auto& [recipe, is_small] = GetParam();
  PictureFolder pictures;
  is_small ? pictures.add_small(21) : pictures.add_photographs(21);
  const auto source = pictures.open();
  const FedRows plain = feed_rows(*source, recipe, nullptr);
  ASSERT_FALSE(plain.stats.cache);
  for (const char* place : {"", "/memory"}) {
    const std::string folder = *place == 0 ? "" : pictures.cache_folder();
    const auto cache = cache_at(folder);
    for (const int workers : {0, 3}) {
      const FedRows fed = feed_rows(*source, recipe, cache, 3, workers);
      EXPECT_EQ(fed.rows, plain.rows) << recipe.stages << ", " << workers << " workers";
      ASSERT_TRUE(fed.stats.cache);
      EXPECT_EQ(fed.stats.cache->places, 21);
      EXPECT_EQ(fed.stats.cache->hits + fed.stats.cache->misses, 3 * 24);
      EXPECT_GT(fed.stats.cache->hits, 21) << recipe.stages;
    }
    // A new cache finds nothing in memory, and everything on the disk.
    const FedRows again = feed_rows(*source, recipe, cache_at(folder));
    EXPECT_EQ(again.rows, plain.rows);
    EXPECT_EQ(again.stats.cache->found, folder.empty() ? 0 : again.stats.cache->places);
  }
}

class DecodedCacheTest : public ::testing::Test {
 protected:
  static constexpr int kSamples = 24;  // three batches

  DecodedCacheTest() { pictures_.add_photographs(kSamples); }
  FedRows fed(std::shared_ptr<DecodedCache> cache, double epochs = 3, int workers = 0) const {
    return feed_rows(*pictures_.open(), kEvaluation, std::move(cache), epochs, workers);
  }
  std::shared_ptr<DecodedCache> disk(int64_t bytes = kPlenty) const {
    return cache_at(pictures_.cache_folder(), bytes);
  }

  PictureFolder pictures_;
};

TEST_F(DecodedCacheTest, EachPictureIsDecodedOnce) {
  for (const auto& cache : {cache_at(""), disk()}) {
    const FedRows first = fed(cache);
    EXPECT_EQ(first.stats.cache->hits, 2 * kSamples);
    EXPECT_EQ(first.stats.cache->misses, kSamples);
    EXPECT_EQ(first.stats.cache->kept, kSamples);
    EXPECT_EQ(first.stats.cache->kept_bytes, kSamples * row_bytes(kEvaluation));
    EXPECT_EQ(first.stats.cache->found, 0);
    EXPECT_THAT(describe(*first.stats.cache),
                HasSubstr("48 of 72 rows came from it (66.67%); 24 decoded pictures"));
    // Another Loader on the same cache.
    EXPECT_EQ(fed(cache, 1).stats.cache->hits, kSamples);
  }
}

TEST_F(DecodedCacheTest, FilesAreNotReadForWhatIsKept) {
  const auto cache = disk();
  const FedRows plain = fed(nullptr, 1);
  EXPECT_EQ(fed(cache, 1).rows, plain.rows);
  const auto source = pictures_.open();
  // With the stamps and the headers that they had: who decodes them sees.
  for (int i = 0; i < kSamples; ++i) {
    const std::string name = pictures_.path() + "/data/" + source->name(i);
    const auto time = fs::last_write_time(name);
    std::string bytes = read_whole_file(name);
    std::fill(bytes.end() - std::ssize(bytes) / 3, bytes.end(), 'x');
    std::ofstream(name) << bytes;
    fs::last_write_time(name, time);
  }
  EXPECT_EQ(feed_rows(*source, kEvaluation, cache, 1).rows, plain.rows);
  EXPECT_NE(feed_rows(*source, kEvaluation, nullptr, 1).rows, plain.rows);
}

TEST_F(DecodedCacheTest, AShareIsKeptAndALargerCacheGoesOn) {
  const int64_t bytes = row_bytes(kEvaluation);
  const FedRows plain = fed(nullptr);
  const FedRows half = fed(disk(bytes * 12 + bytes - 1));
  EXPECT_EQ(half.rows, plain.rows);
  EXPECT_EQ(half.stats.cache->places, 12);
  EXPECT_EQ(half.stats.cache->hits, 2 * 12);
  EXPECT_EQ(fs::file_size(half.stats.cache->folder + "/samples"), 12 * bytes);
  const FedRows more = fed(disk(bytes * 18));
  EXPECT_EQ(more.rows, plain.rows);
  EXPECT_EQ(more.stats.cache->found, 12);
  EXPECT_EQ(more.stats.cache->hits, 12 + 2 * 18);
  const FedRows less = fed(disk(bytes * 6));
  EXPECT_EQ(less.stats.cache->found, 6);
  EXPECT_EQ(less.stats.cache->hits, 3 * 6);
  EXPECT_EQ(fs::file_size(less.stats.cache->folder + "/samples"), 6 * bytes);
  const FedRows nothing = fed(disk(bytes - 1));
  EXPECT_EQ(nothing.rows, plain.rows);
  EXPECT_EQ(nothing.stats.cache->places, 0);
  EXPECT_EQ(nothing.stats.cache->hits, 0);
}

TEST_F(DecodedCacheTest, TheMemoryPlanHasIt) {
  const auto source = pictures_.open();
  LoaderOptions options = decoded_options(kEvaluation, 1, 0);
  const MemoryPlan plain = Feed(*source, kEvaluation.spec(), options).loader().memory_plan();
  EXPECT_EQ(plain.cache_bytes, 0);
  const int64_t bytes = row_bytes(kEvaluation);
  for (const int64_t places : {5, kSamples}) {
    options.feed.cache = cache_at("", places * bytes + 7);
    const MemoryPlan plan = Feed(*source, kEvaluation.spec(), options).loader().memory_plan();
    EXPECT_EQ(plan.cache_bytes, places * (bytes + 1));
    EXPECT_GE(plan.total_bytes(), plain.total_bytes() + places * bytes);
  }
  options.feed.cache = disk();
  EXPECT_EQ(Feed(*source, kEvaluation.spec(), options).loader().memory_plan().cache_bytes, 0);
}

// Calls that a source in a store gets.
TEST_F(DecodedCacheTest, WhatIsKeptIsNotAnnouncedNorWhatIsPast) {
  const auto source = pictures_.open();
  LoaderOptions options = decoded_options(kEvaluation, -1, 0);
  options.feed.cache = cache_at("", 20 * row_bytes(kEvaluation));
  Quarantine quarantine(*source, options);
  RowFiller filler(*source, kEvaluation.spec(), options, 1, quarantine);
  const auto ids = [&](FeedSequence& sequence, int most) {
    std::vector<SampleId> found;
    SampleId id = -1;
    while (std::ssize(found) < most && sequence(id) == NextSample::found) found.push_back(id);
    return found;
  };
  constexpr Step kSteps = 1'000'000;
  FeedSequence all(filler, nullptr, 1, options.batch_size, 0, kSteps);
  EXPECT_EQ(ids(all, kSamples).size(), kSamples);  // nothing is kept yet
  feed_rows(*source, kEvaluation, options.feed.cache, 1);
  const auto samples = options.feed.cache->open(*source, kEvaluation.spec(), {});
  FeedSequence others(filler, nullptr, 1, options.batch_size, 0, kSteps);
  const std::vector<SampleId> epoch = ids(others, 4);
  EXPECT_EQ(std::set<SampleId>(epoch.begin(), epoch.end()).size(), 4);
  for (const SampleId id : epoch) EXPECT_FALSE(samples->holds(id));
  // 64 batches beyond the first one are 21 epochs and two thirds: more is not known yet.
  const auto is_ahead = [](int64_t count) { return count >= 4 * 21 && count <= 4 * 22; };
  EXPECT_TRUE(is_ahead(4 + std::ssize(ids(others, 1'000))));
  EXPECT_TRUE(ids(others, 1).empty());
  // Rows of a much later batch are read: nobody needs those between any more.
  filler.reader().decoded_rows().reach(3'000);
  EXPECT_TRUE(is_ahead(std::ssize(ids(others, 1'000))));
  // A feed of which all is kept has an end of asking, too.
  options.feed.cache = cache_at("");
  feed_rows(*source, kEvaluation, options.feed.cache, 1);
  RowFiller full(*source, kEvaluation.spec(), options, 1, quarantine);
  FeedSequence none(full, nullptr, 1, options.batch_size, 0, kSteps);
  EXPECT_TRUE(ids(none, 1).empty());
}

// With a seek index only a part of each file is read, the first time as well.
TEST(DecodedCachePieces, AreKeptAsWholeFilesAre) {
  PictureFolder pictures;
  JpegKind large{.quality = 97};
  for (uint32_t i = 0; i < 16; ++i) pictures.add(make_jpeg({400, 360}, large, i + 1));
  const CacheFolder home(pictures.path() + "/home");
  const Recipe recipe{"corner_crop('top_left', 60) | flip", {60, 60}, PixelPolicy::fast};
  const auto source = pictures.open();
  LoaderOptions options = decoded_options(recipe, 3, 0);
  options.feed.seek_index = "auto";
  const auto rows = [&](LoaderStats& stats) {
    Feed feed(*source, recipe.spec(), options);
    std::vector<Delivered> all = feed.all();
    stats = feed.loader().stats();
    return all;
  };
  LoaderStats stats;
  const std::vector<Delivered> plain = rows(stats);  // leaves an index
  ASSERT_EQ(rows(stats), plain);
  ASSERT_EQ(stats.seek_index.used, 3 * 16);
  ASSERT_GT(stats.seek_index.unread_bytes, 0);
  options.feed.cache = cache_at("");
  EXPECT_EQ(rows(stats), plain);
  EXPECT_EQ(stats.seek_index.used, 16);
  EXPECT_GT(stats.seek_index.unread_bytes, 0);
  EXPECT_EQ(stats.cache->hits, 2 * 16);
}

// ---- What is told apart

TEST_F(DecodedCacheTest, AFileThatChangesIsDecodedAnew) {
  for (const auto& cache : {cache_at(""), disk()}) {
    fed(cache);
    pictures_.write(5, pictures_.jpeg({77, 51}), 3);
    const FedRows changed = fed(cache);
    EXPECT_EQ(changed.rows, fed(nullptr).rows);
    EXPECT_LT(changed.stats.cache->hits, 3 * kSamples);
    pictures_.write(5, pictures_.jpeg({50, 61}), 2);
  }
  // The disk has the new one, in place of the old.
  const auto cache = disk();
  fed(cache);
  EXPECT_EQ(fed(cache, 1).stats.cache->hits, kSamples);
}

TEST_F(DecodedCacheTest, AFileThatWasWrittenJustNowIsNotTrusted) {
  pictures_.write(5, pictures_.jpeg({50, 61}), 0);
  const auto cache = cache_at("");
  EXPECT_EQ(fed(cache).stats.cache->hits, 2 * (kSamples - 1));
}

// Its files change while they are read.
class TouchedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    ++reads_;
    return source_.read(id, buffer, bytes);
  }
  FileStamp stamp(SampleId id) const override {
    FileStamp stamp = source_.storage().stamp(id);
    stamp.modified_ns += reads_;
    return stamp;
  }

 private:
  mutable std::atomic<int64_t> reads_ = 0;
};

TEST_F(DecodedCacheTest, AFileThatChangesWhileItIsReadIsNotKept) {
  const auto source = pictures_.open();
  const TouchedSource touched(*source);
  const FedRows with = feed_rows(touched, kEvaluation, cache_at(""));
  EXPECT_EQ(with.rows, fed(nullptr).rows);
  EXPECT_EQ(with.stats.cache->kept, 0);
}

TEST_F(DecodedCacheTest, OtherPixelsRecipesAndDataHaveAnotherFolder) {
  const auto source = pictures_.open();
  const auto folder_of = [&](const Source& data, const Recipe& recipe, DecodeOptions decode) {
    decode.pixels = recipe.pixels;
    return disk()->open(data, recipe.spec(), decode)->stats().folder;
  };
  std::vector<std::string> folders;
  const auto differs = [&](const std::string& folder) {
    EXPECT_THAT(folders, ::testing::Not(::testing::Contains(folder)));
    folders.push_back(folder);
  };
  differs(folder_of(*source, kEvaluation, {}));
  differs(folder_of(*source, {kEvaluation.stages, {24, 24}, PixelPolicy::fast}, {}));
  differs(folder_of(*source, {kEvaluation.stages, {24, 24}, PixelPolicy::exact_pillow12}, {}));
  differs(folder_of(*source, kEvaluation, {.exif = ExifPolicy::apply}));
  differs(folder_of(*source, kEvaluation, {.max_pixels = 1 << 20}));
  differs(folder_of(*source, {"resize_center_crop(short=31)", {24, 24}}, {}));
  differs(folder_of(*source, {"resize_center_crop(short=30, filter='bicubic')", {24, 24}}, {}));
  differs(folder_of(*source, {"resize_center_crop(short=30)", {25, 25}}, {}));
  differs(folder_of(SubsetSource(*source, std::vector<SampleId>{1, 2, 3}), kEvaluation, {}));
  PictureFolder others;
  others.add_photographs(kSamples);
  differs(folder_of(*others.open(), kEvaluation, {}));
  // Random stages come behind the kept part.
  EXPECT_EQ(folder_of(*source, {"resize_center_crop(short=30) | flip | cutout(3)", {24, 24}}, {}),
            folders.front());
  const std::string about = read_whole_file(folders.front() + "/about");
  EXPECT_THAT(about, AllOf(HasSubstr(pictures_.path()), HasSubstr("24 samples"),
                           HasSubstr("pixels exact"), HasSubstr("rows of 24 x 24")));
}

TEST_F(DecodedCacheTest, RowsThatShowSomethingElseAreMadeOfTheirFiles) {
  // Seldom: nobody sees it beforehand.
  const Recipe filters{
      "random_choice(resize((40, 40)), resize((40, 40), filter='nearest'), resize((40, 40)), "
      "weights=(0.7, 0.002, 0.298))",
      {40, 40}};
  const auto all = pictures_.open();
  const FedRows nearest = feed_rows(*all, filters, disk(), 90);
  EXPECT_EQ(nearest.rows, feed_rows(*all, filters, nullptr, 90).rows);
  EXPECT_GT(nearest.stats.cache->hits, 88 * kSamples);
  EXPECT_LT(nearest.stats.cache->hits, 89 * kSamples);
  const Recipe recipe{"resize((40, 40)) | random_apply(center_crop(30) | resize((40, 40)), p=0.01)",
                      {40, 40}};
  const auto source = pictures_.open();
  const auto cache = disk();
  const FedRows plain = feed_rows(*source, recipe, nullptr, 20);
  const FedRows with = feed_rows(*source, recipe, cache, 20);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_GT(with.stats.cache->hits, 18 * kSamples);
}

TEST_F(DecodedCacheTest, ImagesOfAnotherSizeAreNotKept) {
  PictureFolder small;
  small.add_small(70);
  small.add_small(2, {33, 32});
  const auto source = small.open();
  const auto cache = cache_at("");
  const FedRows plain = feed_rows(*source, kSmall, nullptr);
  const FedRows with = feed_rows(*source, kSmall, cache);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_EQ(with.stats.cache->hits, 2 * 70);
}

// ---- Bad pictures

TEST_F(DecodedCacheTest, BadPicturesStayBad) {
  pictures_.add(random_bytes(300));
  pictures_.add(truncated(pictures_.jpeg({60, 60}), 700));
  pictures_.add({});
  std::vector<uint8_t> late = pictures_.jpeg({64, 64});
  std::fill(late.end() - 300, late.end() - 20, uint8_t{0xFF});
  pictures_.add(late);
  const FedRows plain = fed(nullptr);
  ASSERT_GE(plain.stats.bad_samples, 9);
  for (const auto& cache : {cache_at(""), disk()}) {
    for (int i = 0; i < 2; ++i) {
      const FedRows with = fed(cache);
      EXPECT_EQ(with.rows, plain.rows);
      EXPECT_EQ(with.stats.bad_samples, plain.stats.bad_samples);
    }
  }
}

TEST(DecodedCacheDamage, APartMayBeGoodWhereTheImageIsNot) {
  PictureFolder pictures;
  pictures.add_small(20);
  std::vector<uint8_t> broken = pictures.jpeg({32, 32});
  std::fill(broken.end() - 60, broken.end() - 20, uint8_t{0xFF});
  for (int i = 0; i < 4; ++i) pictures.add(broken);
  const Recipe recipe{"random_crop(12)", {12, 12}};
  const auto source = pictures.open();
  const FedRows plain = feed_rows(*source, recipe, nullptr, 6);
  EXPECT_GT(plain.stats.bad_samples, 0);
  const FedRows with = feed_rows(*source, recipe, cache_at(""), 6);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_EQ(with.stats.bad_samples, plain.stats.bad_samples);
}

// ---- What is refused

TEST_F(DecodedCacheTest, WhatNeverComesAgainIsRefused) {
  const auto source = pictures_.open();
  EXPECT_THAT(decoded_refusal(*source, {"random_resized_crop | flip", {24, 24}}),
              AllOf(HasSubstr("cannot keep decoded pictures"), HasSubstr("random_resized_crop"),
                    HasSubstr("another part of each image in every epoch"),
                    HasSubstr("different sizes"), HasSubstr("`store.cache`")));
  EXPECT_THAT(decoded_refusal(*source, {"resize(30) | random_crop(24)", {24, 24}}),
              HasSubstr("another part of each image"));
  EXPECT_THAT(
      decoded_refusal(*source, {"resize(30) | color_jitter(0.2) | center_crop(24)", {24, 24}}),
      HasSubstr("makes them of different sizes"));
  EXPECT_THAT(decoded_refusal(*source, {"resize(40) | five_crop(24)", {24, 24}}),
              HasSubstr("5 views"));
  PictureFolder small;
  small.add_small(8);
  EXPECT_THAT(decoded_refusal(*small.open(), {"random_crop(28)", {28, 28}, PixelPolicy::fast}),
              HasSubstr("fast pixels"));
  PictureFolder large;
  large.add_small(8, {129, 128});
  EXPECT_THAT(decoded_refusal(*large.open(), {"random_crop(28)", {28, 28}}),
              AllOf(HasSubstr("129 x 128"), HasSubstr("16384")));
}

TEST_F(DecodedCacheTest, SourcesWithNothingToDecodeOrWithoutStampsAreRefused) {
  EXPECT_THAT(decoded_refusal(*jpeg_source(8), kEvaluation), HasSubstr("nothing says when sample"));
  const auto raw = make_synthetic_source(8, {16, 16}, 2, 1);
  EXPECT_THAT(decoded_refusal(*raw, {"flip", {16, 16}}), HasSubstr("raw pixels"));
  PictureFolder bad;
  for (int i = 0; i < 5; ++i) bad.add(random_bytes(200));
  EXPECT_THROW(cache_at("")->open(*bad.open(), kEvaluation.spec(), {}), std::runtime_error);
  EXPECT_THROW(DecodedCache({"", 0}), std::invalid_argument);
  const auto source = pictures_.open();
  LoaderOptions remote = decoded_options(kEvaluation, 1, 1);
  remote.remote_rows = true;
  remote.feed.cache = cache_at("");
  EXPECT_THROW(Feed(*source, kEvaluation.spec(), remote), InvalidField);
  EXPECT_THROW(DecodedCache({"s3://bucket/a", 5}), std::invalid_argument);
  fs::create_directories(pictures_.path() + "/taken");
  std::ofstream(pictures_.path() + "/taken/file") << "x";
  EXPECT_THROW(fed(cache_at(pictures_.path() + "/taken/file")), std::runtime_error);
}

// ---- Damage

TEST_F(DecodedCacheTest, DamageIsAMissThatIsMended) {
  const FedRows plain = fed(nullptr);
  const std::string folder = fed(disk()).stats.cache->folder;
  const int64_t bytes = row_bytes(kEvaluation);
  damage_byte(folder + "/seals", 8 * 3 + 2);
  damage_byte(folder + "/samples", 7 * bytes + 9);     // a head
  damage_byte(folder + "/samples", 9 * bytes + 500);   // pixels
  damage_byte(folder + "/samples", 23 * bytes + 700);  // pixels
  for (const int hits : {kSamples - 4, kSamples}) {
    const FedRows with = fed(disk(), 1);
    EXPECT_EQ(with.stats.cache->hits, hits);
    EXPECT_EQ(with.stats.cache->kept, kSamples - hits);
  }
  damage_byte(folder + "/samples", 9 * bytes + 500);
  EXPECT_EQ(fed(disk()).rows, plain.rows);
  fs::resize_file(folder + "/samples", 10 * bytes + 3);
  EXPECT_EQ(fed(disk()).rows, plain.rows);
  fs::resize_file(folder + "/seals", 8 * 5 + 4);
  const FedRows with = fed(disk());
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_EQ(with.stats.cache->found, 5);
  std::ofstream(folder + "/about") << "of other data";
  EXPECT_EQ(fed(disk()).stats.cache->found, 0);
}

// A place that has another sample's picture, or one of another form, with a seal that holds.
TEST_F(DecodedCacheTest, AHeadThatDoesNotFitIsAMiss) {
  const auto source = pictures_.open();
  const auto samples = cache_at("")->open(*source, kEvaluation.spec(), {});
  std::vector<uint8_t> pixels(3 * 24 * 24, 7), buffer;
  DecodedPicture picture{{60, 50}, {{0, 0, 60, 50}, {36, 30}, {6, 3, 24, 24}}, pixels};
  const FileStamp stamp = source->storage().stamp(0);
  EXPECT_TRUE(samples->wants(0));
  EXPECT_FALSE(samples->holds(0));
  samples->keep(0, {}, picture);
  EXPECT_FALSE(samples->holds(0));
  samples->keep(0, stamp, picture);
  EXPECT_TRUE(samples->holds(0));
  EXPECT_FALSE(samples->wants(0));
  const DecodedPicture found = samples->read(0, stamp, MayWait::no, buffer);
  EXPECT_TRUE(std::ranges::equal(found.pixels, pixels));
  EXPECT_TRUE(shows_the_same(found.crop, picture.crop));
  EXPECT_EQ(found.source, picture.source);
  EXPECT_TRUE(
      samples->read(0, {stamp.bytes, stamp.modified_ns + 1}, MayWait::yes, buffer).pixels.empty());
  EXPECT_TRUE(samples->read(0, {}, MayWait::yes, buffer).pixels.empty());
  EXPECT_TRUE(samples->read(1, source->storage().stamp(1), MayWait::yes, buffer).pixels.empty());
}

// ---- Several at a time

TEST_F(DecodedCacheTest, SeveralLoadersShareACache) {
  const FedRows plain = fed(nullptr);
  for (const bool in_memory : {true, false}) {
    const auto cache = in_memory ? cache_at("") : disk();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto own = in_memory || i < 2 ? cache : disk();
        EXPECT_EQ(fed(own, 3, i).rows, plain.rows);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fed(cache, 1).stats.cache->hits, kSamples);
  }
}

// ---- Disks that are full

TEST_F(DecodedCacheTest, ALimitOnFilesEndsTheKeepingAndNotTheRun) {
  const FedRows plain = fed(nullptr);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(10 * row_bytes(kEvaluation));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto cache = disk();
  cache->open(*pictures_.open(), kEvaluation.spec(), {});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const FedRows with = fed(cache);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_THAT(with.stats.cache->problem, HasSubstr("File too large"));
  EXPECT_LE(with.stats.cache->kept, 10);
  EXPECT_THAT(describe(*with.stats.cache), HasSubstr("no more, because of"));
}

TEST_F(DecodedCacheTest, AFullDiskMakesItSmallerAndNotTheRunShorter) {
  const std::string folder = pictures_.path() + "/disk";
  fs::create_directories(folder);
  if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=40k") != 0) {
    GTEST_SKIP() << "only root may mount";
  }
  const FedRows plain = fed(nullptr);
  const FedRows with = fed(cache_at(folder));
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_THAT(with.stats.cache->problem, HasSubstr("No space left on device"));
  EXPECT_GT(with.stats.cache->kept, 3);
  EXPECT_LT(with.stats.cache->kept, kSamples);
  EXPECT_GE(with.stats.cache->hits, 2 * with.stats.cache->kept);
  EXPECT_EQ(mount("", folder.c_str(), "", MS_REMOUNT | MS_RDONLY, "size=40k"), 0);
  const FedRows read_only = fed(cache_at(folder));
  EXPECT_EQ(read_only.rows, plain.rows);
  EXPECT_GE(read_only.stats.cache->hits, 3 * with.stats.cache->kept);
  EXPECT_EQ(read_only.stats.cache->kept, 0);
  EXPECT_EQ(umount(folder.c_str()), 0);
}

constexpr const char* kData = "STOKER_TEST_DECODED_DATA";
constexpr const char* kDecodedFolder = "STOKER_TEST_DECODED_FOLDER";
constexpr const char* kDecodedEpochs = "STOKER_TEST_DECODED_EPOCHS";
constexpr int64_t kDecodedBytes = int64_t{1} << 30;

// The other process: this program, with this test alone.
TEST(DecodedCacheProcess, FeedsEpochs) {
  if (std::getenv(kData) == nullptr) GTEST_SKIP() << "it is started by the tests below";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto source = open_source(std::getenv(kData), Split::all);
  const auto cache = cache_at(std::getenv(kDecodedFolder), kDecodedBytes);
  feed_rows(*source, kSmall, cache, std::atof(std::getenv(kDecodedEpochs)), 2);
}

class DecodedCacheProcessesTest : public ::testing::Test {
 protected:
  static constexpr int kSamples = 800;

  DecodedCacheProcessesTest() { pictures_.add_small(kSamples); }

  pid_t start(const char* epochs) const {
    return start_child_test("DecodedCacheProcess.*", {{kData, pictures_.path() + "/data"},
                                                      {kDecodedFolder, pictures_.cache_folder()},
                                                      {kDecodedEpochs, epochs}});
  }
  FedRows feed(bool is_cached, double epochs) const {
    return feed_rows(*pictures_.open(), kSmall, is_cached ? cache() : nullptr, epochs, 2);
  }
  std::shared_ptr<DecodedCache> cache() const {
    return cache_at(pictures_.cache_folder(), kDecodedBytes);
  }

  PictureFolder pictures_;
};

TEST_F(DecodedCacheProcessesTest, ThreeFillOneCacheTogether) {
  const pid_t first = start("3"), second = start("3");
  const FedRows own = feed(true, 3);
  EXPECT_EQ(wait_for_child(first), 0);
  EXPECT_EQ(wait_for_child(second), 0);
  const FedRows plain = feed(false, 3);
  EXPECT_EQ(own.rows, plain.rows);
  const FedRows after = feed(true, 3);
  EXPECT_EQ(after.rows, plain.rows);
  EXPECT_EQ(after.stats.cache->hits, 3 * kSamples);
}

// KeptFiles kills one thread at each of its system calls; this kills workers in the midst of
// theirs.
TEST_F(DecodedCacheProcessesTest, KillsAmongWorkersLeaveItRight) {
  const std::string seals =
      cache()->open(*pictures_.open(), kSmall.spec(), {})->stats().folder + "/seals";
  const auto sealed = [&] {
    const std::string bytes = read_whole_file(seals);
    int64_t count = 0;
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      count += bytes.compare(at, 8, std::string(8, '\0')) != 0;
    }
    return count;
  };
  std::mt19937 random(5);
  int kills = 0;
  for (int64_t before = 0; kills < 30 && before < kSamples - 40; before = sealed(), ++kills) {
    const int64_t until = before + 1 + static_cast<int64_t>(random() % 16);
    const pid_t child = start("1000000");
    EXPECT_TRUE(wait_until([&] { return sealed() >= until; }));
    kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(wait_for_child(child)));
  }
  EXPECT_GT(kills, 3);
  const FedRows plain = feed(false, 1), with = feed(true, 1);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_GE(with.stats.cache->hits, 30);
  EXPECT_EQ(feed(true, 1).stats.cache->hits, kSamples);
}

}  // namespace
}  // namespace stoker::testing
