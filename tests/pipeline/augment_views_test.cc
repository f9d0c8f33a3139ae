// Several views of a sample: the rows that each would be alone, from one decoding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/source/synthetic_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/plain_steps.h"

namespace stoker::testing {
namespace {

using Pixels = std::vector<uint8_t>;

constexpr char kViews[] =
    "views(random_resized_crop((24, 32)) | flip | color_jitter(0.4), "
    "random_resized_crop(12, scale=(0.05, 0.4)) | random_augment, counts=(2, 3))";

MutableImageView view_in(Pixels& pixels, Size size) {
  pixels.resize(size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  return {pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

std::vector<Pixels> views_of(Augmenter& augmenter, const AugmentSpec& spec, const Pixels& file,
                             int64_t sample) {
  std::vector<Pixels> rows(static_cast<size_t>(spec.views()));
  std::vector<MutableImageView> outs;
  for (int view = 0; view < spec.views(); ++view) {
    outs.push_back(view_in(rows[static_cast<size_t>(view)], spec.view(view).output));
  }
  Size source;
  const DecodeStatus status = augmenter.file_views(file, 1, 2, sample, outs, source);
  EXPECT_TRUE(status.ok()) << status.message;
  return rows;
}

TEST(AugmentViews, TheNeededBoxHasWhatEachOfThemShows) {
  const AugmentSpec spec(kViews), resized("resize(40) | center_crop(24)");
  constexpr Size kSize{131, 97};
  Draws draws;
  for (int64_t sample = 0; sample < 40; ++sample) {
    const Box needed = needed_box(spec, kSize, 1, 2, sample, draws);
    EXPECT_TRUE(lies_inside(needed, kSize));
    for (int view = 0; view < spec.views(); ++view) {
      draw_augmentation(spec, kSize, 1, 2, sample, draws, view);
      const auto [x, y, width, height] = shown_box(draws);
      EXPECT_TRUE(needed.x <= x && needed.x + needed.width >= x + width);
      EXPECT_TRUE(needed.y <= y && needed.y + needed.height >= y + height);
    }
  }
  // Only the pixels that a window is made from; nothing above them.
  const Box window = needed_box(resized, {400, 900}, 1, 2, 3, draws);
  EXPECT_GT(window.y,
            280);  // half of the rows that a window of 24 of 90 leaves out, less the filter
  EXPECT_LT(window.y, 330);
}

TEST(AugmentViews, AreTheStepsOfTheWholeImageInThePlainWay) {
  const AugmentSpec spec(kViews);
  Augmenter augmenter(spec, {});
  constexpr Size kSize{131, 97};
  const Pixels file = jpeg_file(kSize.width, kSize.height, 3);
  Pixels whole;
  const Box all{0, 0, kSize.width, kSize.height};
  ASSERT_TRUE(ImageDecoder().decode(file, {all, kSize, all}, view_in(whole, kSize)).ok());
  std::set<std::string> drawn;
  for (int64_t sample = 0; sample < 40; ++sample) {
    const std::vector<Pixels> rows = views_of(augmenter, spec, file, sample);
    for (int view = 0; view < spec.views(); ++view) {
      Draws draws;
      draw_augmentation(spec, kSize, 1, 2, sample, draws, view);
      drawn.insert(steps_text(draws.steps()));
      ASSERT_EQ(rows[static_cast<size_t>(view)], plain_steps(draws, whole, PixelPolicy::exact))
          << "sample " << sample << ", view " << view;
    }
  }
  EXPECT_EQ(drawn.size(), 200u);
}

// Stages before are drawn once: the crops are of one image.
TEST(AugmentViews, CropsAreOfOneImage) {
  const std::string before = "resize(40) | rotate(30) | color_jitter(0.4)";
  const AugmentSpec spec(before + " | ten_crop((24, 30))"), whole(before, {54, 40});
  Augmenter augmenter(spec, {});
  constexpr Size kSize{131, 97};
  const Pixels file = jpeg_file(kSize.width, kSize.height, 3);
  Pixels pixels;
  const Box all{0, 0, kSize.width, kSize.height};
  ASSERT_TRUE(ImageDecoder().decode(file, {all, kSize, all}, view_in(pixels, kSize)).ok());
  const int corners[5][2] = {{0, 0}, {24, 0}, {0, 16}, {24, 16}, {12, 8}};
  for (int64_t sample = 0; sample < 20; ++sample) {
    Draws draws;
    draw_augmentation(whole, kSize, 1, 2, sample, draws);
    const Pixels image = plain_steps(draws, pixels, PixelPolicy::exact);
    const std::vector<Pixels> rows = views_of(augmenter, spec, file, sample);
    ASSERT_EQ(rows.size(), 10u);
    for (size_t view = 0; view < 10; ++view) {
      const auto [left, top] = corners[view % 5];
      Pixels crop;
      for (int y = 0; y < 24; ++y) {
        for (int x = 0; x < 30; ++x) {
          // The second five are of the mirrored image.
          const int from = view < 5 ? left + x : 53 - left - x;
          const uint8_t* pixel = image.data() + 3 * ((top + y) * 54 + from);
          crop.insert(crop.end(), pixel, pixel + 3);
        }
      }
      ASSERT_EQ(rows[view], crop) << "sample " << sample << ", view " << view;
    }
  }
}

TEST(AugmentViews, TheFirstIsTheRowWithoutOthers) {
  const AugmentSpec spec(kViews), alone("random_resized_crop((24, 32)) | flip | color_jitter(0.4)");
  Augmenter augmenter(spec, {}), single(alone, {});
  const Pixels file = jpeg_file(131, 97, 3);
  for (int64_t sample = 0; sample < 10; ++sample) {
    Pixels row;
    Size source;
    ASSERT_TRUE(single.file_row(file, 1, 2, sample, view_in(row, alone.output), source).ok());
    EXPECT_EQ(views_of(augmenter, spec, file, sample)[0], row);
  }
}

// Above kMaxSharedPixels views are decoded one by one: the same bytes, and less memory.
TEST(AugmentViews, OfLargeImagesAreDecodedOneByOne) {
  const AugmentSpec spec("views(resize((20, 30)), random_resized_crop(12), counts=(1, 2))");
  Augmenter augmenter(spec, {});
  const Pixels file = jpeg_file(4000, 2200, 3);
  const std::vector<Pixels> rows = views_of(augmenter, spec, file, 5);
  EXPECT_LT(augmenter.scratch_bytes(), int64_t{3} * 4000 * 2200);
  for (int view = 0; view < 3; ++view) {
    Draws draws;
    draw_augmentation(spec, {4000, 2200}, 1, 2, 5, draws, view);
    const Size size = spec.view(view).output;
    const Box crop = view == 0 ? Box{0, 0, 4000, 2200} : Box{};
    if (view == 0) {
      Pixels row;
      ASSERT_TRUE(
          ImageDecoder()
              .decode(file, {crop, size, {0, 0, size.width, size.height}}, view_in(row, size))
              .ok());
      EXPECT_EQ(rows[0], row);
    }
  }
  EXPECT_NE(rows[1], rows[2]);
}

TEST(AugmentViews, AViewThatCannotBeDrawnMakesABadSample) {
  const AugmentSpec spec("views(resize((8, 8)), random_crop(100) | resize((8, 8)))");
  Augmenter augmenter(spec, {});
  Pixels rows[2];
  const MutableImageView outs[] = {view_in(rows[0], {8, 8}), view_in(rows[1], {8, 8})};
  Size source;
  const DecodeStatus status = augmenter.file_views(jpeg_file(50, 120, 1), 1, 2, 3, outs, source);
  EXPECT_EQ(status.code, DecodeCode::unsupported);
  EXPECT_THAT(status.message, ::testing::HasSubstr("random_crop: 100 x 100 pixels of an image"));
}

// All views, as a device got them.
std::vector<Pixels> fed_pixels(const Source& source, const AugmentSpec& spec,
                               const LoaderOptions& options) {
  Feed feed(source, spec, options);
  std::vector<Pixels> batches;
  Delivered batch;
  while (feed.next(0, batch, [&](const DeviceBatch& device) {
    for (size_t i = 0; i < feed.loader().targets().size(); ++i) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(device.target(static_cast<int>(i)));
      const size_t count = static_cast<size_t>(device.shape().rows) *
                           static_cast<size_t>(feed.loader().targets()[i].bytes());
      batches.emplace_back(bytes, bytes + count);
    }
  })) {
    for (const DeliveredRow& row : batch.rows) {
      batches.push_back({reinterpret_cast<const uint8_t*>(&row.noted),
                         reinterpret_cast<const uint8_t*>(&row.noted) + 8});
    }
  }
  return batches;
}

TEST(AugmentViews, TravelAsColumnsTheSameForAnyWorkers) {
  const auto files = jpeg_source(21);
  const auto raw = make_synthetic_source(21, {16, 16}, 10, 3);
  const AugmentSpec spec(
      "views(random_resized_crop((9, 10)) | flip, random_resized_crop(7), "
      "counts=(2, 1))");
  for (const Source* source : std::initializer_list<const Source*>{files.get(), raw.get()}) {
    LoaderOptions options{.batch_size = 6, .feed = {.workers = 0}, .digests = true};
    const std::vector<Pixels> expected = fed_pixels(*source, spec, options);
    for (const int workers : {1, 3}) {
      options.feed.workers = workers;
      EXPECT_EQ(fed_pixels(*source, spec, options), expected);
    }
    Feed feed(*source, spec, options);
    const std::vector<TargetColumn>& columns = feed.loader().targets();
    ASSERT_EQ(columns.size(), 2u);
    EXPECT_EQ(columns[0].describe(), "'view_1': uint8 (9, 10, 3)");
    EXPECT_EQ(columns[1].describe(), "'view_2': uint8 (7, 7, 3)");
    // A digest is of all views.
    const AugmentSpec other(
        "views(random_resized_crop((9, 10)) | flip, "
        "random_resized_crop(7) | invert, counts=(2, 1))");
    EXPECT_NE(fed_pixels(*source, other, options).back(), expected.back());
  }
}

TEST(AugmentViews, AreExplainedAndShownOneByOne) {
  const AugmentSpec spec("views(random_resized_crop(8) | invert, resize((4, 6)))");
  EXPECT_THAT(
      explain_augmentation(spec),
      ::testing::ElementsAre("view 0, 8 x 8, of the same decoding:",
                             "  random_resized_crop(8): done by the decoder while it decodes",
                             "  invert: a pass of its own", "view 1, 4 x 6, of the same decoding:",
                             "  resize(size=(4, 6)): done by the decoder while it decodes"));
  const RowNote note{.source = {20, 10}, .pixels_of = 3};
  std::string lines;
  for (int view = 0; view < 2; ++view) {
    Draws draws;
    draw_augmentation(spec, {20, 10}, 5, 6, 3, draws, view);
    lines += (view > 0 ? "\n" : "") + steps_text(draws.steps());
  }
  EXPECT_EQ(row_steps_text(spec, 5, 6, note), lines);
  EXPECT_EQ(row_steps_text(spec, 5, 6, {.pixels_of = -1}), "");
}

TEST(AugmentViews, AreConvertedLikeTheImages) {
  const auto source = make_synthetic_source(6, {16, 16}, 10, 3);
  const AugmentSpec spec("views(random_crop(8), counts=2)");
  LoaderOptions options{.batch_size = 6, .feed = {.workers = 2}};
  const Pixels bytes = fed_pixels(*source, spec, options).at(0);
  options.format = {.type = PixelType::fp32, .order = PixelOrder::nchw};
  const std::vector<Pixels> converted = fed_pixels(*source, spec, options);
  const auto* floats = reinterpret_cast<const float*>(converted.at(0).data());
  ASSERT_EQ(converted[0].size(), 4 * bytes.size());
  for (size_t row = 0; row < 6; ++row) {
    for (size_t i = 0; i < 64; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(floats[row * 192 + c * 64 + i],
                  static_cast<float>(bytes[row * 192 + 3 * i + c] / 255.0));
      }
    }
  }
  options.format->type = PixelType::bf16;
  EXPECT_THROW(fed_pixels(*source, spec, options), std::invalid_argument);
}

}  // namespace
}  // namespace stoker::testing
