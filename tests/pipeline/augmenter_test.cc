#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "tests/support/pillow_reference.h"

namespace stoker {
namespace {

using Pixels = std::vector<uint8_t>;

Pixels golden(const std::string& name) {
  std::ifstream file(STOKER_GOLDEN_DIR "/pipeline/" + name, std::ios::binary);
  return Pixels(std::istreambuf_iterator<char>(file), {});
}

constexpr Size kOutput{32, 24};
constexpr size_t kRowBytes = 3 * 32 * 24;

MutableImageView view_of(Pixels& pixels, Size size = kOutput) {
  pixels.resize(size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height));
  return {pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

Pixels file_row(const AugmentSpec& spec, uint64_t seed, int64_t epoch, int64_t sample) {
  Augmenter augmenter(spec, {});
  Pixels pixels;
  Size source;
  AugmentDraw draw;
  const DecodeStatus status =
      augmenter.file_row(golden("photo.jpg"), seed, epoch, sample, view_of(pixels), source, draw);
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(source, (Size{131, 97}));
  return pixels;
}

// rows.bin: see write_rows() in make_augment_golden.py.
Pixels golden_row(size_t index) {
  const Pixels rows = golden("rows.bin");
  EXPECT_EQ(rows.size(), 15 * kRowBytes);
  const auto first = rows.begin() + static_cast<ptrdiff_t>(index * kRowBytes);
  return Pixels(first, first + kRowBytes);
}

TEST(Augmenter, RandomResizedRowsAreTorchvisions) {
  const AugmentSpec spec{.output = kOutput,
                         .crop = CropMode::random_resized,
                         .flip = FlipMode::random,
                         .cutout = 8,
                         .brightness = 0.4,
                         .contrast = 0.5,
                         .saturation = 0.6,
                         .hue = 0.1};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(file_row(spec, 5, 3, i), golden_row(static_cast<size_t>(i))) << i;
  }
}

TEST(Augmenter, ResizeCenterRowsAreTorchvisions) {
  const AugmentSpec spec{.output = kOutput, .resize_short = 40, .filter = Filter::bicubic};
  EXPECT_EQ(file_row(spec, 0, 0, 0), golden_row(6));
}

TEST(Augmenter, PaddedRowsAreTorchvisions) {
  for (size_t i = 0; i < 8; ++i) {
    const AugmentSpec spec{.output = kOutput,
                           .crop = CropMode::pad_random,
                           .pad = 4,
                           .pad_mode = i < 4 ? PadMode::reflect : PadMode::zero,
                           .flip = FlipMode::random};
    EXPECT_EQ(file_row(spec, 6, 0, static_cast<int64_t>(i % 4)), golden_row(7 + i)) << i;
  }
}

// A raw image and its planar twin.
Pixels noise_image(Size size, Pixels& planar) {
  Pixels rgb;
  const MutableImageView view = view_of(rgb, size);
  planar.resize(rgb.size());
  const size_t plane = rgb.size() / 3;
  for (size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<uint8_t>((i * 2654435761u) >> 13);
    planar[i % 3 * plane + i / 3] = rgb[i];
  }
  EXPECT_EQ(view.data, rgb.data());
  return rgb;
}

// Makes the expected raw row in the plain way: resize, then pixel by pixel.
Pixels plain_row(const AugmentSpec& spec, const Pixels& rgb, Size size, const AugmentDraw& draw,
                 PixelPolicy policy = PixelPolicy::exact) {
  const ImageView image{rgb.data(), size.width, size.height, ptrdiff_t{3} * size.width};
  const ImageView crop{image.data + draw.crop.y * image.stride_bytes + 3 * draw.crop.x,
                       draw.crop.width, draw.crop.height, image.stride_bytes};
  Pixels resized, out;
  pillow_resize_reference(crop, {draw.crop, draw.resized, draw.window, false, spec.filter},
                          view_of(resized, spec.output), policy);
  view_of(out, spec.output);
  const int width = spec.output.width, height = spec.output.height;
  const auto reflect = [](int at, int length) {
    return at < 0 ? -at : at >= length ? 2 * length - 2 - at : at;
  };
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_x = reflect((draw.flip ? width - 1 - x : x) + draw.shift_x, width);
      const int from_y = reflect(y + draw.shift_y, height);
      for (int c = 0; c < 3; ++c) {
        out[static_cast<size_t>(3 * (y * width + x) + c)] =
            resized[static_cast<size_t>(3 * (from_y * width + from_x) + c)];
      }
    }
  }
  for (int y = draw.cutout.y; y < draw.cutout.y + draw.cutout.height; ++y) {
    for (int x = draw.cutout.x; x < draw.cutout.x + draw.cutout.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        out[static_cast<size_t>(3 * (y * width + x) + c)] = spec.cutout_value;
      }
    }
  }
  return out;
}

TEST(Augmenter, RawRowsAreTheSameFromPlanesAndRgbAndThePlainWay) {
  const AugmentSpec base{.output = kOutput, .flip = FlipMode::random, .cutout = 6};
  for (CropMode crop :
       {CropMode::random_resized, CropMode::resize_center, CropMode::pad_random, CropMode::whole}) {
    AugmentSpec spec = base;
    spec.crop = crop;
    spec.pad = crop == CropMode::pad_random ? 5 : 0;
    Augmenter augmenter(spec, {});
    for (Size size : {kOutput, Size{50, 41}, Size{7, 90}}) {
      Pixels planar;
      const Pixels rgb = noise_image(size, planar);
      for (int64_t sample = 0; sample < 30; ++sample) {
        Pixels from_rgb, from_planes;
        AugmentDraw draw, again;
        ASSERT_TRUE(
            augmenter.raw_row(rgb, false, size, 1, 2, sample, view_of(from_rgb), draw).ok());
        ASSERT_TRUE(
            augmenter.raw_row(planar, true, size, 1, 2, sample, view_of(from_planes), again).ok());
        ASSERT_EQ(from_rgb, from_planes) << sample;
        ASSERT_EQ(from_rgb, plain_row(spec, rgb, size, draw)) << sample;
        const AugmentDraw expected = draw_augmentation(spec, size, 1, 2, sample);
        ASSERT_EQ(draw.crop, expected.crop);
        ASSERT_EQ(draw.flip, expected.flip);
        ASSERT_EQ(again.shift_x, expected.shift_x);
      }
    }
  }
}

TEST(Augmenter, RawRowsFollowThePixelPolicy) {
  const AugmentSpec spec{.output = kOutput, .crop = CropMode::resize_center};
  constexpr Size kTall{50, 400};
  Pixels planar, of_policy[3];
  const Pixels rgb = noise_image(kTall, planar);
  for (const PixelPolicy policy :
       {PixelPolicy::exact, PixelPolicy::exact_pillow12, PixelPolicy::fast}) {
    Augmenter augmenter(spec, {.pixels = policy});
    Pixels& row = of_policy[static_cast<size_t>(policy)];
    AugmentDraw draw;
    ASSERT_TRUE(augmenter.raw_row(rgb, false, kTall, 1, 2, 3, view_of(row), draw).ok());
    EXPECT_EQ(row, plain_row(spec, rgb, kTall, draw, policy));
  }
  const auto of = [&](PixelPolicy policy) { return of_policy[static_cast<size_t>(policy)]; };
  EXPECT_NE(of(PixelPolicy::exact), of(PixelPolicy::exact_pillow12));
  EXPECT_EQ(of(PixelPolicy::fast), of(PixelPolicy::exact_pillow12));
}

TEST(Augmenter, KeepsNothingOfTheRowBefore) {
  const AugmentSpec spec{.output = kOutput,
                         .crop = CropMode::random_resized,
                         .flip = FlipMode::random,
                         .brightness = 0.4};
  Augmenter used(spec, {});
  const Pixels photo = golden("photo.jpg");
  Pixels planar, other;
  const Pixels rgb = noise_image({50, 41}, planar);
  for (int64_t sample = 5; sample >= 0; --sample) {
    Pixels pixels;
    Size source;
    AugmentDraw draw;
    used.raw_row(planar, true, {50, 41}, 5, 3, sample, view_of(other), draw);
    ASSERT_TRUE(used.file_row(photo, 5, 3, sample, view_of(pixels), source, draw).ok());
    EXPECT_EQ(pixels, file_row(spec, 5, 3, sample));
  }
  EXPECT_GT(used.scratch_bytes(), 3 * 50 * 41);
}

TEST(Augmenter, LeavesTheGapBetweenRowsAlone) {
  const AugmentSpec spec{.output = {8, 8},
                         .crop = CropMode::pad_random,
                         .pad = 2,
                         .cutout = 4,
                         .brightness = 0.5,
                         .hue = 0.2};
  Augmenter augmenter(spec, {});
  Pixels planar;
  noise_image({8, 8}, planar);
  Pixels padded(8 * 32, 0xEE);
  AugmentDraw draw;
  ASSERT_TRUE(
      augmenter.raw_row(planar, true, {8, 8}, 1, 1, 1, {padded.data(), 8, 8, 32}, draw).ok());
  for (size_t y = 0; y < 8; ++y) {
    for (size_t x = 24; x < 32; ++x) EXPECT_EQ(padded[y * 32 + x], 0xEE);
  }
}

TEST(Augmenter, BadBytesAreAStatus) {
  const AugmentSpec spec{.output = kOutput, .crop = CropMode::pad_random, .pad = 2};
  Augmenter augmenter(spec, {});
  Pixels pixels;
  Size source;
  AugmentDraw draw;
  const Pixels photo = golden("photo.jpg");
  EXPECT_EQ(augmenter.file_row({}, 1, 1, 1, view_of(pixels), source, draw).code, DecodeCode::empty);
  const std::span<const uint8_t> half(photo.data(), photo.size() / 2);
  for (int64_t sample = 0; sample < 5; ++sample) {  // with and without a shift
    EXPECT_EQ(augmenter.file_row(half, 1, 1, sample, view_of(pixels), source, draw).code,
              DecodeCode::truncated);
  }
  const DecodeStatus status =
      augmenter.raw_row({photo.data(), 100}, true, {32, 32}, 1, 1, 1, view_of(pixels), draw);
  EXPECT_EQ(status.code, DecodeCode::truncated);
  EXPECT_THAT(status.message, ::testing::HasSubstr("100 bytes of raw pixels, expected 3072"));
  EXPECT_THROW(Augmenter(AugmentSpec{}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
