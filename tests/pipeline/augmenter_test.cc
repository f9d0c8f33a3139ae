#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pipeline/augment.h"
#include "tests/support/plain_steps.h"

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
  const DecodeStatus status =
      augmenter.file_row(golden("photo.jpg"), seed, epoch, sample, view_of(pixels), source);
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
  const AugmentSpec spec(
      "random_resized_crop | flip | color_jitter(0.4, 0.5, 0.6, 0.1) | cutout(8)", kOutput);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(file_row(spec, 5, 3, i), golden_row(static_cast<size_t>(i))) << i;
  }
}

TEST(Augmenter, ResizeCenterRowsAreTorchvisions) {
  const AugmentSpec spec("resize_center_crop(40, filter=bicubic)", kOutput);
  EXPECT_EQ(file_row(spec, 0, 0, 0), golden_row(6));
}

TEST(Augmenter, PaddedRowsAreTorchvisions) {
  for (size_t i = 0; i < 8; ++i) {
    const std::string mode = i < 4 ? "reflect" : "constant";
    const AugmentSpec spec("resize | random_crop(padding=4, mode=" + mode + ") | flip", kOutput);
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

// Makes the expected raw row in the plain way, step by step, whatever could be joined.
Pixels plain_row(const AugmentSpec& spec, const Pixels& rgb, Size size, int64_t sample,
                 PixelPolicy policy = PixelPolicy::exact) {
  Draws draws;
  draw_augmentation(spec, size, 1, 2, sample, draws);
  return plain_steps(draws, rgb, policy);
}

const char* const kLists[] = {
    "random_resized_crop | flip | cutout(6)",
    "resize_center_crop | flip | cutout(6)",
    "resize | random_crop(padding=5, mode=reflect) | flip | cutout(6)",
    "resize | flip | cutout(6)",
    "resize | random_crop(padding=(1, 2, 3, 4)) | flip",
    "resize | flip | random_crop(padding=(1, 2, 3, 4), fill=(9, 8, 7)) | flip | color_jitter(0.5)",
    "resize(60) | center_crop(40) | flip | random_crop((24, 32)) | flip",
    "random_crop((50, 60), pad_if_needed=True, mode=edge) | resize(70, max_size=71) | "
    "resize((24, 32), filter=bicubic)",
    "flip | resize((40, 20)) | flip | center_crop",
    "resize | pad((3, 4, 5, 6), mode=symmetric) | pad(7, mode=reflect) | pad(2, mode=edge) | "
    "resize",
    "resize | aug_mix | flip",
    "resize | timm_auto_augment('rand-m9-mstd3-n4-p1') | timm_auto_augment('augmix-m9') | flip",
    "flip | resize(filter=box)",
    "flip | resize(filter=nearest) | invert | posterize(3) | solarize(99) | grayscale | invert",
    "random_resized_crop((30, 40)) | pad((3, 4), fill=200) | color_jitter(0.3) | "
    "color_jitter(0.3) | resize | random_apply(color_jitter(0.9) | flip, p=0.3)",
    // Images that are made inside a border.
    "letterbox | clamp_boxes | flip | random_hsv | sanitize_boxes",
    "clamp_boxes | scale_jitter(scale_range=(0.3, 1.5)) | fixed_size_crop(fill=9)",
    "random_shortest_size((9, 12), 20) | color_jitter(0.4) | pad_to_size(fill=(1, 2, 3)) | invert",
    "resize | rotate(20) | sanitize_boxes | random_crop((10, 20)) | flip | fixed_size_crop(fill=3)",
    "random_resize(8, 20) | random_zoom_out(7, p=1) | resize | random_photometric_distort(p=0.9)",
};

TEST(Augmenter, RawRowsAreTheSameFromPlanesAndRgbAndThePlainWay) {
  for (const char* list : kLists) {
    const AugmentSpec spec(list, kOutput);
    Augmenter augmenter(spec, {});
    for (Size size : {kOutput, Size{50, 41}, Size{7, 90}}) {
      Pixels planar;
      const Pixels rgb = noise_image(size, planar);
      for (int64_t sample = 0; sample < 30; ++sample) {
        Pixels from_rgb, from_planes;
        ASSERT_TRUE(augmenter.raw_row(rgb, false, size, 1, 2, sample, view_of(from_rgb)).ok());
        ASSERT_TRUE(augmenter.raw_row(planar, true, size, 1, 2, sample, view_of(from_planes)).ok());
        ASSERT_EQ(from_rgb, from_planes) << list << ", sample " << sample;
        ASSERT_EQ(from_rgb, plain_row(spec, rgb, size, sample)) << list << ", sample " << sample;
      }
    }
  }
}

TEST(Augmenter, FileRowsAreThoseOfThePlainWayFromTheDecodedImage) {
  const Pixels photo = golden("photo.jpg");
  constexpr Size kPhoto{131, 97};
  Pixels whole;
  ImageDecoder decoder;
  const Box all{0, 0, kPhoto.width, kPhoto.height};
  ASSERT_TRUE(decoder.decode(photo, {all, kPhoto, all}, view_of(whole, kPhoto)).ok());
  for (const char* list : kLists) {
    const AugmentSpec spec(list, kOutput);
    for (int64_t sample = 0; sample < 30; ++sample) {
      ASSERT_EQ(file_row(spec, 1, 2, sample), plain_row(spec, whole, kPhoto, sample))
          << list << ", sample " << sample;
    }
  }
}

TEST(Augmenter, RawRowsFollowThePixelPolicy) {
  const AugmentSpec spec("resize_center_crop", kOutput);
  constexpr Size kTall{50, 400};
  Pixels planar;
  std::map<PixelPolicy, Pixels> of_policy;
  const Pixels rgb = noise_image(kTall, planar);
  for (const PixelPolicy policy :
       {PixelPolicy::exact, PixelPolicy::exact_pillow12, PixelPolicy::fast}) {
    Augmenter augmenter(spec, {.pixels = policy});
    Pixels& row = of_policy[policy];
    ASSERT_TRUE(augmenter.raw_row(rgb, false, kTall, 1, 2, 3, view_of(row)).ok());
    EXPECT_EQ(row, plain_row(spec, rgb, kTall, 3, policy));
  }
  EXPECT_NE(of_policy[PixelPolicy::exact], of_policy[PixelPolicy::exact_pillow12]);
  EXPECT_EQ(of_policy[PixelPolicy::fast], of_policy[PixelPolicy::exact_pillow12]);
}

TEST(Augmenter, ASampleThatDoesNotFitIsBadAndSaysWhy) {
  const struct {
    const char* list;
    const char* problem;
  } cases[] = {
      {"random_crop((200, 32)) | resize", "random_crop: 32 x 200 pixels of an image of 131 x 97"},
      {"pad(97, mode=reflect) | resize", "97 pixels of padding with mode reflect"},
      {"cutout(98) | resize", "cutout: size is 98, must be inside the image of 131 x 97"},
      {"center_crop((24, 32)) | pad(0) | resize(15000) | color_jitter(0.5) | resize",
       "an image of 20000 x 15000 pixels on the way"}};
  for (const auto& [list, problem] : cases) {
    const AugmentSpec spec(list, kOutput);
    Augmenter augmenter(spec, {});
    Pixels pixels;
    Size source;
    const DecodeStatus status =
        augmenter.file_row(golden("photo.jpg"), 1, 1, 1, view_of(pixels, spec.output), source);
    EXPECT_EQ(status.code, DecodeCode::unsupported);
    EXPECT_THAT(status.message, ::testing::HasSubstr(problem));
  }
}

TEST(Augmenter, KeepsNothingOfTheRowBefore) {
  const AugmentSpec spec("random_resized_crop | pad(3) | flip | color_jitter(0.4) | resize",
                         kOutput);
  Augmenter used(spec, {});
  const Pixels photo = golden("photo.jpg");
  Pixels planar, other;
  const Pixels rgb = noise_image({50, 41}, planar);
  for (int64_t sample = 5; sample >= 0; --sample) {
    Pixels pixels;
    Size source;
    used.raw_row(planar, true, {50, 41}, 5, 3, sample, view_of(other));
    ASSERT_TRUE(used.file_row(photo, 5, 3, sample, view_of(pixels), source).ok());
    EXPECT_EQ(pixels, file_row(spec, 5, 3, sample));
  }
  EXPECT_GT(used.scratch_bytes(), 3 * 50 * 41);
}

TEST(Augmenter, LeavesTheGapBetweenRowsAlone) {
  const AugmentSpec spec(
      "random_crop(padding=2) | color_jitter(0.5, 0.5, 0.5, 0.2) | cutout(4) | "
      "random_augment | pad(1) | resize | gaussian_blur(3) | random_erasing(p=1)",
      {8, 8});
  Augmenter augmenter(spec, {});
  Pixels planar;
  noise_image({8, 8}, planar);
  Pixels padded(8 * 32, 0xEE);
  ASSERT_TRUE(augmenter.raw_row(planar, true, {8, 8}, 1, 1, 1, {padded.data(), 8, 8, 32}).ok());
  for (size_t y = 0; y < 8; ++y) {
    for (size_t x = 24; x < 32; ++x) EXPECT_EQ(padded[y * 32 + x], 0xEE);
  }
}

TEST(Augmenter, BadBytesAreAStatus) {
  const AugmentSpec spec("resize | random_crop(padding=2)", kOutput);
  Augmenter augmenter(spec, {});
  Pixels pixels;
  Size source;
  const Pixels photo = golden("photo.jpg");
  EXPECT_EQ(augmenter.file_row({}, 1, 1, 1, view_of(pixels), source).code, DecodeCode::empty);
  const std::span<const uint8_t> half(photo.data(), photo.size() / 2);
  for (int64_t sample = 0; sample < 5; ++sample) {  // with and without a shift
    EXPECT_EQ(augmenter.file_row(half, 1, 1, sample, view_of(pixels), source).code,
              DecodeCode::truncated);
  }
  const DecodeStatus status =
      augmenter.raw_row({photo.data(), 100}, true, {32, 32}, 1, 1, 1, view_of(pixels));
  EXPECT_EQ(status.code, DecodeCode::truncated);
  EXPECT_THAT(status.message, ::testing::HasSubstr("100 bytes of raw pixels, expected 3072"));
  EXPECT_THROW(Augmenter(AugmentSpec{}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
