// Rows of several samples: mosaic, mixup and copy_paste through a whole feed. The pixels are those
// of a plain twin that makes every picture and every canvas whole; what lies on them is where the
// pixels are; a row is the same for any batch, threads and ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "decode/pixel_ops.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/cache/decoded_cache.h"
#include "pipeline/row/row_pictures.h"
#include "tests/pipeline/painted_source.h"
#include "tests/support/plain_steps.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Size kCombinedRow{48, 40};
constexpr uint8_t kNothing = 255, kGround = 7;

// Every object has a colour of its own.
uint8_t colour_of(int64_t id, size_t object) {
  return static_cast<uint8_t>(20 + 4 * id + static_cast<int64_t>(object));
}

Painting each_its_colour(std::function<Size(int64_t)> size = size_of) {
  Painting painting;
  painting.size = std::move(size);
  painting.objects = [](int64_t id) {
    std::vector<PaintedObject> objects = objects_of(id);
    for (size_t i = 0; i < objects.size(); ++i) objects[i].colour = colour_of(id, i);
    return objects;
  };
  return painting;
}

// Objects that lie inside the pictures of the row's size.
Painting of_row_size() {
  Painting painting = each_its_colour([](int64_t) { return kCombinedRow; });
  painting.objects = [](int64_t id) {
    std::vector<PaintedObject> objects;
    for (int i = 0; i <= id % 4; ++i) {
      const int left = 2 + (i % 2) * 24 + static_cast<int>(id % 5), top = 3 + (i / 2) * 19;
      objects.push_back(
          {{left, top, 11 + static_cast<int>(id % 7), 12}, colour_of(id, static_cast<size_t>(i))});
    }
    return objects;
  };
  return painting;
}

LoaderOptions combined_options() {
  LoaderOptions options;
  options.batch_size = 4;
  options.seed = 5;
  options.annotations = {.max_objects = 40, .masks = RowMasks::bytes};
  return options;
}

// Where an object's colour is in a row.
std::vector<float> coloured_box(const AnnotatedRow& row, int64_t colour, Size size) {
  float x0 = 1e9f, y0 = 1e9f, x1 = -1, y1 = -1;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      if (row.pixels[static_cast<size_t>(3 * (y * size.width + x))] != colour) continue;
      x0 = std::min(x0, static_cast<float>(x)), x1 = std::max(x1, static_cast<float>(x + 1));
      y0 = std::min(y0, static_cast<float>(y)), y1 = std::max(y1, static_cast<float>(y + 1));
    }
  }
  if (x1 < 0) return {};
  return {x0, y0, x1, y1};
}

std::vector<float> box_of(const AnnotatedRow& row, size_t object) {
  const auto first = row.boxes.begin() + static_cast<ptrdiff_t>(4 * object);
  return {first, first + 4};
}

std::vector<SampleId> pictures_in(SampleId id, const RowNote& note) {
  std::vector<SampleId> all = {id};
  for (const SampleId partner : note.partners) {
    if (partner >= 0) all.push_back(partner);
  }
  return all;
}

// A label image for each picture, as a PNG: its pixels are the picture's.
class LabelledPictures final : public ForwardingSource {
 public:
  LabelledPictures(const Source& source, Painting painting)
      : ForwardingSource(source), info_(source.info()), painting_(std::move(painting)) {
    info_.annotations = {.label_image = true, .digest = 3};
  }
  const SourceInfo& info() const override { return info_; }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t>,
                              Annotations& out) const override {
    out.clear();
    const Size size = painting_.size(id);
    const std::vector<uint8_t> file = picture_of(painting_, id);
    std::vector<uint8_t> gray;
    for (size_t i = file.size() - static_cast<size_t>(3 * size.width * size.height);
         i < file.size(); i += 3) {
      gray.push_back(file[i]);
    }
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = static_cast<png_uint_32>(size.width);
    png.height = static_cast<png_uint_32>(size.height);
    png.format = PNG_FORMAT_GRAY;
    png_alloc_size_t bytes = 1 << 16;
    out.label_buffer.resize(bytes);
    EXPECT_TRUE(png_image_write_to_memory(&png, out.label_buffer.data(), &bytes, 0, gray.data(), 0,
                                          nullptr));
    out.label_file = std::span(out.label_buffer).first(bytes);
    return {};
  }

 private:
  SourceInfo info_;
  const Painting painting_;
};

// A visible keypoint is a pixel inside its object. Returns how many there are.
int expect_points_inside(const AnnotatedRow& row, size_t object) {
  int visible = 0;
  for (size_t i = 2 * object; i < 2 * object + 2; ++i) {
    if (row.keypoints[3 * i + 2] == 0) continue;
    ++visible;
    const int x = static_cast<int>(row.keypoints[3 * i]);
    const int y = static_cast<int>(row.keypoints[3 * i + 1]);
    const auto has = [&](int at_x, int at_y) {
      const auto pixel = static_cast<size_t>(3 * (at_y * kCombinedRow.width + at_x));
      return row.pixels[pixel] == row.labels[object];
    };
    EXPECT_TRUE(has(x, y) || has(std::max(x - 1, 0), std::max(y - 1, 0))) << x << " " << y;
  }
  return visible;
}

// The pictures are not resized, so that their colours stay.
TEST(CombinedFeed, AMosaicHasTheObjectsOfFourPictures) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  Feed feed(source, AugmentSpec("flip | mosaic((40, 48), fill=255) | random_crop((40, 48))"),
            combined_options());
  const Rows rows = rows_of(feed);
  ASSERT_EQ(rows.size(), size_t{kPictures});
  std::set<size_t> different;
  int seen = 0, visible = 0;
  for (const auto& [id, row] : rows) {
    const std::vector<SampleId> from = pictures_in(id, row.note);
    ASSERT_EQ(from.size(), 4u);
    different.insert(std::set(from.begin(), from.end()).size());
    int64_t objects = 0;
    for (const SampleId each : from) objects += std::ssize(painting.objects(each));
    ASSERT_EQ(row.count, objects);
    std::map<int64_t, int> times;
    for (const int64_t label : row.labels) ++times[label];
    for (size_t i = 0; i < static_cast<size_t>(row.count); ++i) {
      if (times[row.labels[i]] > 1) continue;  // a partner came twice
      const std::vector<float> painted = coloured_box(row, row.labels[i], kCombinedRow);
      if (!painted.empty()) {
        EXPECT_EQ(box_of(row, i), painted) << id << " " << i;
        ++seen;
      }
      const size_t pixels = row.pixels.size() / 3;
      for (size_t p = 0; p < pixels; ++p) {
        ASSERT_EQ(row.masks[i * pixels + p], row.pixels[3 * p] == row.labels[i])
            << id << " " << i << " " << p;
      }
      visible += expect_points_inside(row, i);
    }
    EXPECT_EQ(row.picture_box, (std::vector<int32_t>{0, 0, 48, 40}));
  }
  EXPECT_GT(seen, 40);
  EXPECT_GT(visible, 40);
  EXPECT_TRUE(different.contains(4));
}

// A picture that was made whole.
struct PlainPicture {
  Size size;
  std::vector<uint8_t> rgb;
};

class PlainRow {
 public:
  PlainRow(const Painting& painting, const AugmentSpec& spec) : painting_(painting), spec_(spec) {
    for (const Stage& stage : spec.stages.stages()) {
      if (stage.partners() > 0) {
        combining_.push_back(&stage);
        levels_.emplace_back();
      } else {
        levels_.back().push_back(&stage);
      }
    }
  }

  std::vector<uint8_t> make(uint64_t seed, SampleId id, const RowNote& note) {
    size_t drawn = 0;
    std::vector<RowPicture> plan;
    plan_pictures(
        spec_.stages, seed, 0, id,
        [&](const RandomKey&, uint32_t) { return note.partners[drawn++]; }, plan);
    std::vector<PlainPicture> finished;
    for (const RowPicture& picture : plan) {
      PlainPicture made;
      if (picture.parts == 0) {
        const std::vector<uint8_t> file = picture_of(painting_, picture.id);
        made.size = painting_.size(picture.id);
        made.rgb.assign(file.end() - 3 * made.size.width * made.size.height, file.end());
      } else {
        const auto first = finished.end() - static_cast<ptrdiff_t>(picture.parts);
        made = combine(*combining_[picture.level - 1], picture, {first, finished.end()});
        finished.erase(first, finished.end());
      }
      Draws draws;
      draws.begin(made.size, spec_.output, picture.seed, 0, picture.id);
      if (picture.stages) {
        picture.stages->draw(draws);
      } else {
        for (const Stage* stage : levels_[picture.level]) stage->draw(draws);
      }
      EXPECT_EQ(draws.failure(), "");
      finished.push_back(run(draws, made));
    }
    return finished.at(0).rgb;
  }

 private:
  static PlainPicture run(const Draws& draws, const PlainPicture& from) {
    return {draws.size(), plain_steps(draws, from.rgb, PixelPolicy::exact)};
  }

  static PlainPicture combine(const Stage& stage, const RowPicture& picture,
                              std::vector<PlainPicture> parts) {
    std::vector<Size> sizes;
    for (const PlainPicture& part : parts) sizes.push_back(part.size);
    const Combination how = stage.combine(stage.own_key(picture.seed, 0, picture.id), sizes);
    PlainPicture canvas{how.canvas, {}};
    for (int i = 0; i < how.canvas.width * how.canvas.height; ++i) {
      canvas.rgb.insert(canvas.rgb.end(), how.fill.begin(), how.fill.end());
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      Draws draws;
      draws.begin(parts[i].size, {}, 0, 0, 0);
      add_resize(draws, how.pictures[i].size, how.filter);
      const PlainPicture resized = run(draws, parts[i]);
      const bool blends = how.kind == CombinationKind::blend && i == 1;
      put(how.pictures[i], resized, blends ? how.own_share : 0, canvas);
    }
    return canvas;
  }

  // `share`: of what is there.
  static void put(const PlacedPicture& placed, const PlainPicture& from, float share,
                  PlainPicture& canvas) {
    const auto parts = static_cast<int64_t>(share * kMixParts);
    for (int y = 0; y < placed.shown.height; ++y) {
      for (int x = 0; x < 3 * placed.shown.width; ++x) {
        uint8_t& to =
            canvas
                .rgb[static_cast<size_t>(3 * ((placed.y + y) * canvas.size.width + placed.x) + x)];
        const uint8_t pixel = from.rgb[static_cast<size_t>(
            3 * ((placed.shown.y + y) * from.size.width + placed.shown.x) + x)];
        to = static_cast<uint8_t>((parts * to + (kMixParts - parts) * pixel + kMixParts / 2) /
                                  kMixParts);
      }
    }
  }

  const Painting& painting_;
  const AugmentSpec& spec_;
  std::vector<const Stage*> combining_;
  std::vector<std::vector<const Stage*>> levels_ = {{}};
};

class PlainTwin : public ::testing::TestWithParam<const char*> {};

TEST_P(PlainTwin, MakesTheSamePixels) {
  Painting painting = each_its_colour();
  painting.is_noisy = true;
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const AugmentSpec spec(GetParam());
  LoaderOptions options = combined_options();
  options.epochs = 1;
  Feed feed(source, spec, options);
  PlainRow plain(painting, spec);
  for (const auto& [id, row] : rows_of(feed)) {
    ASSERT_EQ(row.note.pixels_of, id);
    EXPECT_EQ(row.pixels, plain.make(options.seed, id, row.note)) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lists, PlainTwin,
    ::testing::Values(
        "mosaic(24) | center_crop(24)", "random_crop((30, 38)) | flip | mosaic(32, p=0.5) | flip",
        "mosaic((20, 30), filter='bicubic') | affine(20, (0.1, 0.1), (0.5, 1.5), 5, 'bilinear', "
        "9) | center_crop((20, 30)) | vertical_flip",
        "mosaic(24) | affine(180, scale=(1, 3), interpolation='bicubic') | invert | "
        "random_crop(16) | flip",
        "mosaic(24) | affine(30) | center_crop(24)",
        "mosaic(24) | affine(0, (1, 1)) | center_crop(24) | pad(2)",
        "mosaic(24) | gaussian_blur(3) | random_crop(24)",
        "mosaic(24) | flip(p=1) | random_crop(20) | vertical_flip(p=1) | random_crop(12)",
        "letterbox(30) | mixup", "letterbox(30) | mixup(alpha=0.5, p=0.5) | random_crop(20) | flip",
        "mosaic(24) | affine(10, (0.1, 0.1), (0.5, 1.5), interpolation='bilinear') | "
        "center_crop(24) | mixup | flip",
        "mosaic(24) | affine(30, scale=2, interpolation='bilinear') | center_crop(24) | "
        "mixup(flip | letterbox(24), alpha=8, p=0.7) | flip",
        "random_crop((30, 38)) | mixup | mosaic(24) | resize((20, 20)) | color_jitter(0.5)"));

// An object's visible share is that of all cuts, before the canvas and on it.
TEST(CombinedFeed, WhatIsCutOnTheWayCountsInTheEnd) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const auto rows_with = [&](const std::string& share) {
    const std::string last = " | sanitize_boxes(min_visibility=" + share + ")";
    Feed feed(source, AugmentSpec("random_crop((30, 30)) | mosaic(30) | center_crop(30)" + last),
              combined_options());
    return rows_of(feed);
  };
  const Rows all = rows_with("0"), some = rows_with("0.6");
  int dropped = 0;
  for (const auto& [id, row] : all) {
    const AnnotatedRow& kept = some.at(id);
    for (size_t i = 0, k = 0; i < static_cast<size_t>(row.count); ++i) {
      const Box box =
          painting.objects(row.ids[i] / 1000)[static_cast<size_t>(row.ids[i] % 1000)].box;
      const std::vector<float> left = box_of(row, i);
      const float share =
          (left[2] - left[0]) * (left[3] - left[1]) / static_cast<float>(box.width * box.height);
      const bool is_kept = k < static_cast<size_t>(kept.count) && kept.ids[k] == row.ids[i] &&
                           box_of(kept, k) == left;
      EXPECT_EQ(is_kept, share >= 0.6F - 1e-6F) << id << " " << i << " " << share;
      k += is_kept;
      dropped += !is_kept;
    }
  }
  EXPECT_GT(dropped, 20);
}

TEST(CombinedFeed, RowsAreTheSameForAnyBatchThreadsAndRanks) {
  const Painting painting = each_its_colour();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const AugmentSpec spec(
      "mosaic(24, p=0.7) | affine(20, scale=(0.5, 1.5)) | center_crop(24) | mixup(p=0.5)");
  LoaderOptions options = combined_options();
  Feed one(source, spec, options);
  const Rows expected = rows_of(one);
  const auto expect_same = [&](const Rows& rows) {
    for (const auto& [id, row] : rows) {
      EXPECT_EQ(row.pixels, expected.at(id).pixels) << id;
      EXPECT_EQ(row.boxes, expected.at(id).boxes) << id;
      EXPECT_EQ(row.masks, expected.at(id).masks) << id;
      EXPECT_EQ(row.note.partners, expected.at(id).note.partners) << id;
    }
  };
  options.batch_size = 3;
  options.feed.workers = 3;
  Feed threads(source, spec, options);
  expect_same(rows_of(threads));
  options.feed.workers = 0;
  Feed inline_feed(source, spec, options);
  expect_same(rows_of(inline_feed));
  options.world = 2;
  size_t rows = 0;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    Feed rank(source, spec, options);
    const Rows own = rows_of(rank);
    expect_same(own);
    rows += own.size();
  }
  EXPECT_GE(rows, size_t{kPictures});
  options.rank = 0, options.world = 1;
  options.first_step = 4;
  Feed resumed(source, spec, options);
  const Rows rest = rows_of(resumed);
  EXPECT_GT(rest.size(), 5u);
  expect_same(rest);
  options.first_step = 0;
  options.share.name = "combined_feed_test_" + std::to_string(::getpid());
  Feed first(source, spec, options), second(source, spec, options);
  expect_same(rows_of(first));
  expect_same(rows_of(second));
}

TEST(CombinedFeed, PartnersAreOfTheBlockAroundTheRow) {
  const StageList stages("mosaic(24) | mixup");
  const SharedOrder order = sequential_order(5000);
  const EpochKey epoch(3, 1);
  std::set<SampleId> seen;
  for (int64_t position = 0; position < 5000; position += 7) {
    const int64_t first = std::min(position / kPartnerBlock * kPartnerBlock, 5000 - kPartnerBlock);
    for (const SampleId partner : draw_partners(stages, *order, epoch, position)) {
      EXPECT_GE(partner, first);
      EXPECT_LT(partner, first + kPartnerBlock);
      seen.insert(partner);
    }
  }
  EXPECT_GT(seen.size(), 2000u);
  // Each picture has draws of its own; the canvases have those of their first picture.
  std::vector<RowPicture> plan;
  plan_pictures(
      stages, 3, 1, 0, [](const RandomKey&, uint32_t) { return 0; }, plan);
  std::set<uint64_t> seeds;
  for (const RowPicture& picture : plan) seeds.insert(picture.seed);
  EXPECT_EQ(plan.size(), 8u + 2 + 1);
  EXPECT_EQ(seeds.size(), 8u);
  EXPECT_EQ(plan.back().seed, 3u);
  plan_pictures(
      StageList("mosaic(24) | mixup(letterbox(48))"), 3, 1, 0,
      [](const RandomKey&, uint32_t) { return 0; }, plan);
  EXPECT_EQ(plan.size(), 4u + 1 + 1 + 1);
  const SharedOrder one = sequential_order(1);
  EXPECT_THAT(draw_partners(StageList("mosaic(24)"), *one, epoch, 0),
              ElementsAre(0, 0, 0, -1, -1, -1, -1));
}

// Each picture of a mosaic has a corner at one point, and what does not fit the canvas is cut off
// at the other side.
TEST(CombinedFeed, FourPicturesMeetAtAPoint) {
  const StageList stages("mosaic((40, 60))");
  const std::array<Size, 4> pictures = {{{120, 20}, {30, 60}, {60, 40}, {7, 90}}};
  const std::array<Size, 4> fitted = {{{60, 10}, {20, 40}, {60, 40}, {3, 40}}};
  int cut = 0;
  for (int64_t sample = 0; sample < 500; ++sample) {
    const Combination mosaic = stages.stages()[0].combine(RandomKey(1, 0, sample), pictures);
    ASSERT_EQ(mosaic.canvas, (Size{120, 80}));
    const auto& [upper_left, upper_right, lower_left, lower_right] = mosaic.pictures;
    const int x = lower_right.x, y = lower_right.y;
    EXPECT_TRUE(x >= 30 && x < 90 && y >= 20 && y < 60) << x << " " << y;
    for (const PlacedPicture* left : {&upper_left, &lower_left}) {
      EXPECT_EQ(left->x + left->shown.width, x);
      EXPECT_EQ(left->shown.x + left->shown.width, left->size.width);
      EXPECT_EQ(left->x, std::max(x - left->size.width, 0));
    }
    for (const PlacedPicture* right : {&upper_right, &lower_right}) {
      EXPECT_EQ(right->x, x);
      EXPECT_EQ(right->shown.x, 0);
      EXPECT_EQ(right->shown.width, std::min(right->size.width, 120 - x));
    }
    for (const PlacedPicture* upper : {&upper_left, &upper_right}) {
      EXPECT_EQ(upper->y + upper->shown.height, y);
      EXPECT_EQ(upper->shown.y + upper->shown.height, upper->size.height);
      EXPECT_EQ(upper->y, std::max(y - upper->size.height, 0));
    }
    for (const PlacedPicture* lower : {&lower_left, &lower_right}) {
      EXPECT_EQ(lower->y, y);
      EXPECT_EQ(lower->shown.y, 0);
      EXPECT_EQ(lower->shown.height, std::min(lower->size.height, 80 - y));
    }
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(mosaic.pictures[i].size, fitted[i]);
      cut += mosaic.pictures[i].shown.width < fitted[i].width;
    }
  }
  EXPECT_GT(cut, 200);
  const Combination one =
      stages.stages()[0].combine(RandomKey(1, 0, 0), std::span(pictures).first(1));
  EXPECT_EQ(one.pictures[0].x, 30);
  EXPECT_EQ(one.pictures[0].y, 35);
  EXPECT_EQ(one.pictures[0].shown, (Box{0, 0, 60, 10}));
}

// Pasted objects are whole, and those below them end there.
TEST(CombinedFeed, CopyPasteCutsWhatItCovers) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  Feed feed(source, AugmentSpec("resize((40, 48)) | copy_paste"), combined_options());
  int pasted = 0, cut = 0, covered = 0;
  for (const auto& [id, row] : rows_of(feed)) {
    const SampleId partner = row.note.partners[0];
    ASSERT_GE(partner, 0);
    if (partner == id) continue;
    std::map<int64_t, size_t> place_of_id;
    for (size_t i = 0; i < static_cast<size_t>(row.count); ++i) place_of_id[row.ids[i]] = i;
    const size_t pixels = row.pixels.size() / 3;
    for (size_t i = 0; i < static_cast<size_t>(row.count); ++i) {
      const std::vector<float> painted = coloured_box(row, row.labels[i], kCombinedRow);
      EXPECT_EQ(box_of(row, i), painted) << id << " " << i;
      for (size_t p = 0; p < pixels; ++p) {
        ASSERT_EQ(row.masks[i * pixels + p], row.pixels[3 * p] == row.labels[i]) << id << " " << i;
      }
      if (row.ids[i] / 1000 == partner) {
        ++pasted;
        EXPECT_EQ(row.crowd[i], 0);  // the third object is a crowd
        const Box box = painting.objects(partner)[static_cast<size_t>(row.ids[i] % 1000)].box;
        EXPECT_THAT(painted, ElementsAre(box.x, box.y, box.x + box.width, box.y + box.height));
      } else {
        const Box box = painting.objects(id)[static_cast<size_t>(row.ids[i] % 1000)].box;
        cut += std::count(row.masks.begin() + static_cast<ptrdiff_t>(i * pixels),
                          row.masks.begin() + static_cast<ptrdiff_t>((i + 1) * pixels),
                          1) < box.width * box.height;
      }
    }
    for (size_t i = 0; i < painting.objects(id).size(); ++i) {
      covered += !place_of_id.contains(1000 * id + static_cast<int64_t>(i));
    }
    EXPECT_GT(std::ranges::count_if(row.ids, [&](int64_t each) { return each / 1000 == partner; }),
              0);
  }
  EXPECT_GT(pasted, 20);
  EXPECT_GT(cut, 10);
  EXPECT_GT(covered, 0);
}

TEST(CombinedFeed, APartnerThatIsBadIsReplacedByTheOwnSample) {
  const Painting painting = of_row_size();
  FakeSource files = pictures(painting);
  files.fail(3);
  std::vector<uint8_t> cut = picture_of(painting, 4);
  cut.resize(cut.size() - 30);  // the header is whole
  files.replace(4, cut);
  PaintedSource source(files, painting);
  source.broken[5] = "object 17: the box is nothing";
  LoaderOptions options = combined_options();
  options.feed.max_bad = 5;
  const AugmentSpec spec("mosaic((40, 48), fill=255) | resize((40, 48), 'nearest')");
  Feed feed(source, spec, options);
  int replaced = 0;
  for (const auto& [id, row] : rows_of(feed)) {
    EXPECT_EQ(row.note.bad, id >= 3 && id <= 5) << id;
    if (row.note.bad) continue;
    const std::vector<SampleId> from = pictures_in(id, row.note);
    int64_t objects = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const bool is_bad = from[i] >= 3 && from[i] <= 5;
      EXPECT_EQ(row.note.replaced >> i & 1, is_bad) << id << " " << i;
      objects += std::ssize(painting.objects(is_bad ? id : from[i]));
      replaced += is_bad;
    }
    EXPECT_EQ(row.count, objects) << id;
    EXPECT_THAT(row_steps_text(spec, options.seed, 0, row.note, &source),
                HasSubstr("sample " + std::to_string(id)));
  }
  EXPECT_GT(replaced, 3);
  EXPECT_EQ(feed.loader().stats().bad_samples, 3);
}

// The own sample in a partner's place has other draws, which may fail, too.
TEST(CombinedFeed, ARowEndsWhereTheOwnSampleFailsInAPlace) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  LoaderOptions options = combined_options();
  options.feed.max_bad = kPictures;
  const char* const list = "random_choice(flip, random_crop(1000)) | mosaic(24) | center_crop(24)";
  Feed feed(source, AugmentSpec(list), options);
  int bad = 0, replaced = 0;
  for (const auto& [id, row] : rows_of(feed)) {
    bad += row.note.bad;
    replaced += !row.note.bad && row.note.replaced != 0;
  }
  EXPECT_GT(bad, kPictures / 2);
  EXPECT_GT(replaced, 0);
}

TEST(CombinedFeed, AnnotationsThatDoNotFitTheirPictureAreBad) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  PaintedSource source(files, painting);
  LoaderOptions options = combined_options();
  options.feed.on_bad_sample = OnBadSample::fail;
  const AugmentSpec spec("mosaic((40, 48)) | random_crop((40, 48))");
  source.has_bad_masks = true;
  Feed masks(source, spec, options);
  EXPECT_THAT(message_of([&] { rows_of(masks); }), HasSubstr("the run lengths add up to 5 pixels"));
  masks.destroy();  // its workers may still read
  source.has_bad_masks = false;
  for (SampleId id = 0; id < kPictures; ++id) source.sizes[id] = {640, 480};
  Feed sizes(source, spec, options);
  EXPECT_THAT(message_of([&] { rows_of(sizes); }),
              HasSubstr("it is of a picture of 640 x 480 pixels, this one has 48 x 40"));
  const LabelledPictures labels(files, each_its_colour());
  options.annotations.masks = RowMasks::none;
  Feed labelled(labels, spec, options);
  Delivered batch;
  EXPECT_THAT(message_of([&] { labelled.next(0, batch); }),
              AllOf(HasSubstr("the label image has"), HasSubstr("pixels, the picture 48 x 40")));
}

TEST(CombinedFeed, TheTextOfARowNamesItsPictures) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const AugmentSpec spec("invert | mosaic((40, 48)) | center_crop((40, 48)) | flip(p=1)");
  RowNote note{.source = kCombinedRow, .pixels_of = 2};
  note.partners = {9, 1, 4, -1, -1, -1, -1};
  const std::string text = row_steps_text(spec, 5, 0, note, &source);
  for (const char* line : {"sample 2: invert", "\nsample 9: invert | crop(", "\nsample 1: invert",
                           "\nsample 4: invert", "\nmosaic((40, 48)) of 4 at (", " | flip"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(row_steps_text(spec, 5, 0, note), "");
}

// Notes which samples are announced, and which are read or given up.
class AheadSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    SampleId id = 0;
    while (next(id) == NextSample::found) ++announced[id];
    return std::make_unique<LookAhead>();
  }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    ++used[id];
    return ForwardingSource::read(id, buffer, bytes);
  }
  bool read_cached(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return false;
  }
  void will_not_read(SampleId id) const override { ++used[id]; }

  mutable std::map<SampleId, int> announced, used;
};

TEST(CombinedFeed, AStoreIsToldOfPartners) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource painted(files, painting);
  const AheadSource source(painted);
  LoaderOptions options = combined_options();
  options.feed.workers = 1;
  options.feed.io_threads = 0;
  Feed feed(source, AugmentSpec("mosaic((40, 48), p=0.5) | random_crop((40, 48))"), options);
  rows_of(feed);
  EXPECT_EQ(source.used, source.announced);
  int64_t announced = 0;
  for (const auto& [id, times] : source.announced) announced += times;
  EXPECT_GT(announced, 2 * kPictures);
}

TEST(CombinedFeed, TheMemoryPlanHasTheirCanvases) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const auto planned = [&](const char* list) {
    Feed feed(source, AugmentSpec(list), combined_options());
    return feed.loader().memory_plan().scratch_bytes;
  };
  EXPECT_GT(planned("mosaic(500) | center_crop(40)"),
            planned("letterbox(1000) | center_crop(40)") + 3 * 1000 * 1000);
}

TEST(CombinedFeed, AreExplainedStageByStage) {
  const AugmentSpec spec(
      "flip | mosaic(24) | affine(10) | center_crop(24) | mixup | invert | posterize(3)");
  EXPECT_THAT(
      explain_augmentation(spec),
      ElementsAre(
          HasSubstr("flip: done by the decoder while it decodes"),
          "mosaic(24): puts pictures of other samples to it, each decoded as far as it is seen",
          "affine(10): a pass of its own", "center_crop(24): a pass of its own",
          "mixup: puts pictures of other samples to it, each decoded as far as it is seen",
          "invert: joined with its neighbours into one table of bytes",
          "posterize(3): joined with its neighbours into one table of bytes"));
}

TEST(CombinedFeed, LabelImagesLieAsThePictures) {
  const Painting painting = of_row_size();
  const FakeSource files = pictures(painting);
  const LabelledPictures source(files, painting);
  LoaderOptions options = combined_options();
  options.annotations.masks = RowMasks::none;
  options.annotations.ignore_label = kNothing;
  const AugmentSpec spec("flip | mosaic((40, 48), fill=255) | random_crop((50, 70)) | pad(1, 255)");
  Feed feed(source, spec, options);
  Delivered batch;
  int rows = 0, ground = 0, nothing = 0;
  const auto look = [&](const DeviceBatch& leased) {
    for (int row = 0; row < leased.shape().rows; ++row, ++rows) {
      const auto labels = values_of<uint8_t>(feed.loader(), leased, "label_image", row);
      const size_t pixels = labels.size();
      const uint8_t* images = leased.images() + 3 * pixels * static_cast<size_t>(row);
      for (size_t i = 0; i < pixels; ++i) {
        ASSERT_EQ(labels[i], images[3 * i]) << row << " " << i;
        ground += labels[i] == kGround;
        nothing += labels[i] == kNothing;
      }
    }
  };
  while (feed.next(0, batch, look)) {
  }
  EXPECT_GE(rows, kPictures);
  EXPECT_GT(ground, 1000);
  EXPECT_GT(nothing, 1000);
}

TEST(CombinedFeed, WhatCannotBeCombinedIsRefused) {
  const Painting painting = each_its_colour();
  const FakeSource files = pictures(painting);
  const PaintedSource source(files, painting);
  const LabelledPictures labelled(files, painting);
  const auto refused = [&](const Source& data, const char* list) {
    return message_of([&] {
      const Feed feed(data, AugmentSpec(list, {24, 24}), combined_options());
    });
  };
  LoaderOptions plain = combined_options();
  plain.annotations = {};
  EXPECT_THAT(message_of([&] {
                const Feed feed(files, AugmentSpec("mosaic(24) | center_crop(24)"), plain);
              }),
              HasSubstr("these carry neither objects nor label images"));
  EXPECT_THAT(refused(source, "mixup | letterbox(24)"), HasSubstr("takes images of one size"));
  EXPECT_THAT(refused(source, "random_apply(mosaic(12))"), HasSubstr("cannot stand inside"));
  EXPECT_THAT(refused(source, "letterbox(24) | mixup | mix(mixup=1)"),
              HasSubstr("neither mix nor views"));
  EXPECT_THAT(refused(source, "views(letterbox(24) | mixup, counts=2)"),
              HasSubstr("cannot stand inside views"));
  EXPECT_THAT(refused(source, "mosaic(12) | mosaic(12)"), HasSubstr("more than 8 samples"));
  EXPECT_THAT(
      refused(source, "letterbox(24) | mixup(letterbox(20))"),
      HasSubstr("mixup(partner=letterbox(20)): 'letterbox(20)' does not make images of 24x24"));
  EXPECT_THAT(refused(source, "letterbox(24) | mixup(letterbox(24) | aug_mix)"),
              HasSubstr("blend_begin cannot move what the samples carry"));
  EXPECT_THAT(refused(source, "letterbox(24) | mixup(mosaic(12))"),
              HasSubstr("cannot stand inside mixup"));
  EXPECT_THAT(refused(source, "mosaic(24) | center_crop(24) | aug_mix"),
              HasSubstr("blend_begin cannot move what the samples carry"));
  EXPECT_THAT(refused(source, "mosaic(24)"), HasSubstr("ends with images of 48x48"));
  LoaderOptions kept = combined_options();
  kept.feed.cache = std::make_shared<DecodedCache>(DecodedCacheOptions{.bytes = 1 << 20});
  EXPECT_THAT(message_of([&] {
                const Feed feed(source, AugmentSpec("mosaic(24) | center_crop(24)"), kept);
              }),
              HasSubstr("are not made of pictures that are kept"));
  LoaderOptions masks = combined_options();
  masks.annotations.masks = RowMasks::none;
  EXPECT_THAT(message_of([&] {
                const Feed feed(labelled, AugmentSpec("letterbox(24) | copy_paste"), masks);
              }),
              HasSubstr("copy_paste cuts objects out by their masks"));
  EXPECT_THAT(
      message_of([&] { const Feed feed(labelled, AugmentSpec("letterbox(24) | mixup"), masks); }),
      HasSubstr("cannot be done to label images"));
}

}  // namespace
}  // namespace stoker::testing
