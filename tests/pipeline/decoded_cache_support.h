// Shared by the tests of DecodedCache: folders of pictures, and the rows of a feed of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/cache/decoded_cache.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {

// A recipe, and the size of its rows.
struct Recipe {
  const char* stages;
  Size size;
  PixelPolicy pixels = PixelPolicy::exact;
  AugmentSpec spec() const { return AugmentSpec(stages, size); }
};

inline constexpr Recipe kEvaluation{"resize_center_crop(short=30)", {24, 24}};
inline constexpr Recipe kSmall{"random_crop(padding=4) | flip", {32, 32}};

// A folder of pictures. They are written an hour ago, so that a stamp stands for their bytes.
class PictureFolder {
 public:
  // JPEGs of all sizes, and of one.
  void add_photographs(int count) {
    for (int i = 0; i < count; ++i) {
      const Size size{40 + (number_ * 7) % 41, 38 + (number_ * 5) % 37};
      add(jpeg(size));
    }
  }
  void add_small(int count, Size size = {32, 32}) {
    for (int i = 0; i < count; ++i) add(jpeg(size));
  }
  void add(const std::vector<uint8_t>& file) {
    write(number_, file);
    ++number_;
  }
  void write(int number, const std::vector<uint8_t>& file, int hours_ago = 1) const {
    const std::string name =
        "data/c" + std::to_string(number % 3) + "/" + std::to_string(1000 + number) + ".jpg";
    const std::string path =
        folder_.write(name, {reinterpret_cast<const char*>(file.data()), file.size()});
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  std::vector<uint8_t> jpeg(Size size) const {
    JpegKind kind{.quality = 90,
                  .sampling_x = 1 + number_ % 2,
                  .sampling_y = 1 + number_ / 2 % 2,
                  .progressive = number_ % 5 == 4};
    return make_jpeg(size, kind, static_cast<uint32_t>(number_) + 1);
  }

  int size() const { return number_; }
  std::unique_ptr<Source> open() const { return open_source(folder_.path() + "/data", Split::all); }
  const std::string& path() const { return folder_.path(); }
  std::string cache_folder() const { return folder_.path() + "/cache"; }

 private:
  TempFolder folder_;
  int number_ = 0;
};

inline LoaderOptions decoded_options(const Recipe& recipe, double epochs, int workers) {
  return {.batch_size = 8,
          .seed = 3,
          .epochs = epochs,
          .feed = {.workers = workers,
                   .decode = {.pixels = recipe.pixels},
                   .seek_index = "off",
                   .max_bad = 1e9},
          .digests = true};
}

struct FedRows {
  std::vector<Delivered> rows;
  LoaderStats stats;
};

// Every row of a feed. `cache`: or null.
inline FedRows feed_rows(const Source& source, const Recipe& recipe,
                         std::shared_ptr<DecodedCache> cache, double epochs = 3, int workers = 0) {
  LoaderOptions options = decoded_options(recipe, epochs, workers);
  options.feed.cache = std::move(cache);
  Feed feed(source, recipe.spec(), options);
  std::vector<Delivered> rows = feed.all();
  return {std::move(rows), feed.loader().stats()};
}

}  // namespace stoker::testing
