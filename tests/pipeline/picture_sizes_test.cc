// The pass over the headers of pictures, and what is kept of it.
#include "pipeline/source/picture_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "pipeline/source/synthetic_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string as_text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// A marker segment of so many bytes behind the file's first two, as cameras write them.
std::vector<uint8_t> with_long_head(const std::vector<uint8_t>& file, size_t bytes) {
  std::vector<uint8_t> longer(file.begin(), file.begin() + 2);
  longer.insert(longer.end(), {0xFF, 0xEE, static_cast<uint8_t>((bytes + 2) >> 8),
                               static_cast<uint8_t>((bytes + 2) & 0xFF)});
  longer.insert(longer.end(), bytes, 7);
  longer.insert(longer.end(), file.begin() + 2, file.end());
  return longer;
}

TEST(PictureSizes, AreThoseOfWholeFiles) {
  const TempFolder folder;
  const std::vector<uint8_t> noise = make_jpeg({160, 90}, {.quality = 100});
  ASSERT_GT(noise.size(), 4096u);
  folder.write("a/0_first_bytes.jpg", as_text(noise));
  folder.write("a/1_small.jpg", as_text(jpeg_file(20, 10, 2)));
  folder.write("a/2_long_head.jpg", as_text(with_long_head(noise, 9000)));
  folder.write("a/3_damaged.jpg", "no picture");
  folder.write("a/4_empty.jpg", "");
  folder.write("a/5_pixmap.ppm", "P6\n30 40\n255\n" + std::string(3600, 'x'));
  const auto source = open_source(folder.path(), {.cache_dir = ""});
  for (const int workers : {-1, 1, 3}) {
    EXPECT_THAT(
        picture_sizes(*source, {.workers = workers, .cache_dir = ""}),
        ElementsAre(Size{160, 90}, Size{20, 10}, Size{160, 90}, Size{}, Size{}, Size{30, 40}));
  }
}

TEST(PictureSizes, AreThoseOfTurnedPictures) {
  const TempFolder folder;
  for (const int orientation : {6, 3}) {
    const JpegKind kind{.quality = 100, .exif_orientation = orientation};
    folder.write("a/" + std::to_string(9 - orientation) + ".jpg",
                 as_text(make_jpeg({160, 90}, kind)));
  }
  const auto source = open_source(folder.path(), {.cache_dir = ""});
  EXPECT_THAT(picture_sizes(*source, {.cache_dir = ""}), ElementsAre(Size{160, 90}, Size{160, 90}));
  EXPECT_THAT(picture_sizes(*source, {.decode = {.exif = ExifPolicy::apply}, .cache_dir = ""}),
              ElementsAre(Size{90, 160}, Size{160, 90}));
}

TEST(PictureSizes, OfRawSamplesNeedNoReading) {
  const auto source = make_synthetic_source(5, {8, 6}, 3, 1);
  EXPECT_THAT(picture_sizes(*source), ::testing::Each(Size{8, 6}));
}

class KeptSizes : public ::testing::Test {
 protected:
  std::vector<Size> sizes(PictureSizeOptions options = {}) {
    options.cache_dir = folder_.path();
    const int64_t before = source_.reads();
    std::vector<Size> found = picture_sizes(source_, options);
    reads_ = source_.reads() - before;
    return found;
  }
  std::string kept_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      return entry.path().string();
    }
    return "";
  }

  const TempFolder folder_;
  FakeSource source_{{jpeg_file(20, 10, 1), jpeg_file(9, 30, 2), text_bytes("none")}, 1500, 3};
  int64_t reads_ = 0;
};

TEST_F(KeptSizes, AreReadOnce) {
  const std::vector<Size> first = sizes();
  EXPECT_EQ(reads_, 1500);
  EXPECT_EQ(first[300], (Size{20, 10}));
  EXPECT_EQ(first[301], (Size{9, 30}));
  EXPECT_EQ(first[302], Size{});
  EXPECT_EQ(sizes(), first);
  EXPECT_EQ(reads_, 0);
  sizes({.decode = {.exif = ExifPolicy::apply}});
  EXPECT_EQ(reads_, 1500) << "other sizes";
}

TEST_F(KeptSizes, AreReadAgainIfTheirFileIsDamaged) {
  const std::vector<Size> first = sizes();
  damage_byte(kept_file(), 200);
  EXPECT_EQ(sizes(), first);
  EXPECT_EQ(reads_, 1500);
  EXPECT_EQ(sizes(), first);
  EXPECT_EQ(reads_, 0);
}

// The old file gives its place to the new one.
TEST_F(KeptSizes, AreReadAgainIfAPictureChanged) {
  const auto pixmap = [](int width) {
    return "P6\n" + std::to_string(width) + " 2\n255\n" +
           std::string(6 * static_cast<size_t>(width), 'x');
  };
  const TempFolder folder;
  for (int i = 0; i < 1000; ++i) folder.write("a/" + std::to_string(i) + ".ppm", pixmap(3));
  const auto source = open_source(folder.path(), {.cache_dir = ""});
  const PictureSizeOptions options{.cache_dir = folder_.path()};
  EXPECT_THAT(picture_sizes(*source, options), ::testing::Each(Size{3, 2}));
  const std::string kept = kept_file();
  folder.write("a/" + source->name(500).substr(2), pixmap(40));
  EXPECT_EQ(picture_sizes(*source, options)[500], (Size{40, 2}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_EQ(kept_file(), kept);
}

TEST_F(KeptSizes, APassCanBeStopped) {
  const auto stops = [](int64_t done, int64_t total) { return done < total / 2; };
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { sizes({.workers = 2, .go_on = stops}); }),
              HasSubstr("stopped"));
  EXPECT_LT(reads_, 1500);
  EXPECT_EQ(kept_file(), "");
}

}  // namespace
}  // namespace stoker::testing
