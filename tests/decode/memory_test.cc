// The allocations of decoding: none in the steady state, and rows rather than frames for large
// images.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/process_memory.h"

namespace {
std::atomic<int64_t> allocations{0};
}

// Not inlined: otherwise GCC would see only one of malloc() and free(), and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace stoker {
namespace {

// libjpeg's own memory (from malloc, freed after each image) is not counted here.
TEST(DecodeMemory, SteadyStateAllocatesNothing) {
  std::vector<std::vector<uint8_t>> files;
  for (const int sampling : {1, 2}) {
    for (const bool progressive : {false, true}) {
      files.push_back(make_jpeg({200, 150}, {.sampling_x = sampling,
                                             .sampling_y = sampling,
                                             .progressive = progressive,
                                             .exif_orientation = 6}));
    }
  }
  files.push_back(make_jpeg({200, 150}, {.colours = JpegColours::cmyk}));
  files.push_back(make_jpeg({200, 150}, {.colours = JpegColours::gray}));
  ImageDecoder plain, turning({.exif = ExifPolicy::apply});
  Pixels out({64, 64});
  const auto decode_all = [&] {
    for (const std::vector<uint8_t>& file : files) {
      for (const Box crop : {Box{0, 0, 150, 150}, {20, 30, 90, 111}, {3, 3, 64, 64}}) {
        for (ImageDecoder* decoder : {&plain, &turning}) {
          ImageInfo info;
          ASSERT_TRUE(decoder->info(file, info).ok());
          const CropSpec spec = {crop, {64, 64}, {0, 0, 64, 64}, crop.x % 2 == 0};
          ASSERT_TRUE(decoder->decode(file, spec, out.view()).ok());
        }
      }
    }
  };
  decode_all();
  const int64_t scratch = plain.scratch_bytes() + turning.scratch_bytes();
  const int64_t before = allocations;
  for (int i = 0; i < 5; ++i) decode_all();
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(plain.scratch_bytes() + turning.scratch_bytes(), scratch);
}

// Makes a JPEG that repeats the same MCU row `mcu_rows` times, between restart markers: huge, and
// made quickly.
std::vector<uint8_t> tall_jpeg(int width, int mcu_rows) {
  constexpr int kMcuHeight = 16;
  const JpegKind kind = {.sampling_x = 2, .sampling_y = 2, .restart_rows = 1};
  const std::vector<uint8_t> one = make_jpeg({width, kMcuHeight}, kind);
  size_t scan = 0;
  while (!(one[scan] == 0xFF && one[scan + 1] == 0xDA)) ++scan;
  scan += 2 + (one[scan + 2] << 8 | one[scan + 3]);
  std::vector<uint8_t> file = with_size({one.begin(), one.begin() + static_cast<ptrdiff_t>(scan)},
                                        {width, mcu_rows * kMcuHeight});
  for (int row = 0; row < mcu_rows; ++row) {
    file.insert(file.end(), one.begin() + static_cast<ptrdiff_t>(scan), one.end() - 2);
    const uint8_t marker = row + 1 < mcu_rows ? static_cast<uint8_t>(0xD0 + row % 8) : 0xD9;
    file.insert(file.end(), {0xFF, marker});
  }
  return file;
}

// Returns how much the process grew at its peak while `file` was decoded as a whole, to side x
// side; -1 if the system does not report it.
int64_t growth_while_decoding(ImageDecoder& decoder, const std::vector<uint8_t>& file,
                              int side = 224) {
  ImageInfo info;
  EXPECT_TRUE(decoder.info(file, info).ok());
  Pixels out({side, side});
  const CropSpec spec = {
      {0, 0, info.size.width, info.size.height}, {side, side}, {0, 0, side, side}};
  return growth_during([&] {
    const DecodeStatus status = decoder.decode(file, spec, out.view());
    EXPECT_TRUE(status.ok()) << status.message;
  });
}

TEST(DecodeMemory, HugeImagesAreStreamed) {
  const std::vector<uint8_t> file = tall_jpeg(12'000, 500);  // 96 megapixels, 288 MB as RGB
  ImageDecoder decoder;
  const int64_t bound = decode_scratch_bound({}, {224, 224}).streamed;
  EXPECT_LT(bound, 107 << 20);
  EXPECT_LE(growth_while_decoding(decoder, file), bound);
  EXPECT_LE(decoder.scratch_bytes(), bound);
}

TEST(DecodeMemory, HugePngsAreStreamedToo) {
  const PngKind kind = {.size = {30'000, 5'000}, .colours = 0, .bits = 1};  // 450 MB as RGB
  const std::vector<uint8_t> file = make_png(kind, 1);
  ImageDecoder decoder;
  const int64_t bound = decode_scratch_bound({}, {224, 224}).streamed;
  EXPECT_LE(growth_while_decoding(decoder, file), bound);
  EXPECT_LE(decoder.scratch_bytes(), bound);
}

// Frames of codecs keep to the plan, whose limit of pixels is that of these files.
TEST(DecodeMemory, FramesOfCodecsAreBounded) {
  const Size size{3'000, 2'000};
  const DecodeOptions options{.max_pixels = int64_t{size.width} * size.height};
  const ScratchBound bound = decode_scratch_bound(options, {224, 224});
  for (const auto& [colours, bits] : {std::pair(6, 16), {2, 8}, {3, 1}}) {
    const PngKind kind{
        .size = size, .colours = colours, .bits = bits, .is_interlaced = true, .level = 1};
    ImageDecoder decoder(options);
    EXPECT_LE(growth_while_decoding(decoder, make_png(kind, 1)), bound.whole_frame) << colours;
    EXPECT_LE(decoder.scratch_bytes(), bound.streamed) << colours;
  }
}

// A side that no table of the plan is made for is refused, however few its pixels are.
TEST(DecodeMemory, SidesAreBounded) {
  ImageDecoder decoder;
  ImageInfo info;
  for (const Size size : {Size{65'536, 1}, {1, 65'536}, {70'000'000, 2}}) {
    const std::string text =
        "P5 " + std::to_string(size.width) + " " + std::to_string(size.height) + " 255 ";
    const std::vector<uint8_t> file(text.begin(), text.end());
    EXPECT_EQ(decoder.info(file, info).code, DecodeCode::too_large) << text;
  }
}

// With the vertical pass first, whole rows wait for sixteen outputs. If those are far apart, the
// rows would be too many for CropDecoder, and the sums of the open outputs are kept instead.
TEST(DecodeMemory, TallImagesAreStreamedToo) {
  const std::vector<uint8_t> file = tall_jpeg(3'200, 500);
  for (const int side : {224, 32}) {
    const CropSpec spec{{0, 0, 3'200, 8'000}, {side, side}, {0, 0, side, side}};
    ASSERT_EQ(pass_order(PixelPolicy::exact, spec), PassOrder::vertical_first);
    Pixels out({side, side});
    CropDecoder crop(1 << 28, PixelPolicy::exact);
    EXPECT_EQ(crop.decode(file, spec, out.view()), side == 224);
    EXPECT_LE(crop.scratch_bytes(), kMaxCropScratch);
    ImageDecoder decoder;
    const int64_t bound = decode_scratch_bound({}, {side, side}).streamed;
    EXPECT_LE(growth_while_decoding(decoder, file, side), bound);
    EXPECT_LE(decoder.scratch_bytes(), bound);
  }
}

// Where a frame cannot be avoided, it is bounded, too, and freed afterwards.
TEST(DecodeMemory, FramesAreBoundedAndGivenBack) {
  const DecodeOptions turning = {.exif = ExifPolicy::apply, .max_pixels = 12'000'000};
  const JpegKind kind = {.progressive = true, .exif_orientation = 6};
  ImageDecoder decoder(turning);
  const ScratchBound bound = decode_scratch_bound(turning, {224, 224});
  EXPECT_LE(growth_while_decoding(decoder, make_jpeg({4000, 3000}, kind)), bound.whole_frame);
  EXPECT_LE(decoder.scratch_bytes(), bound.streamed);
}

// CropDecoder holds the coefficients of a progressive file's crop while it decodes, and keeps a few
// megabytes.
TEST(DecodeMemory, CoefficientsAreBoundedAndGivenBack) {
  constexpr Size kSize = {2000, 1500};
  const std::vector<uint8_t> file = make_jpeg(kSize, {.quality = 50, .progressive = true});
  const DecodeOptions options = {.max_pixels = int64_t{kSize.width} * kSize.height};
  ImageDecoder decoder(options);
  const ScratchBound bound = decode_scratch_bound(options, {224, 224});
  EXPECT_LE(growth_while_decoding(decoder, file), bound.whole_frame);
  EXPECT_LE(decoder.scratch_bytes(), bound.streamed);

  CropDecoder crop(options.max_pixels, PixelPolicy::exact);
  Pixels out({224, 224});
  for (const int side : {1500, 300}) {
    const CropSpec spec{{100, 0, side, side}, {224, 224}, {0, 0, 224, 224}};
    ASSERT_TRUE(crop.decode(file, spec, out.view()));
    EXPECT_LE(crop.scratch_bytes(), kMaxCropScratch);
  }
  EXPECT_LE(crop.scratch_bytes(), 8 << 20);
}

// Blocks are stored in groups of four, so a crop of one column takes more than its pixels.
TEST(DecodeMemory, CoefficientsThatNeedMoreThanTheirBoundAreLibjpegs) {
  constexpr Size kSize = {1, 65'000};
  const std::vector<uint8_t> file = make_jpeg(kSize, {.progressive = true});
  Pixels out({1, 8000});
  const CropSpec spec{{0, 0, 1, kSize.height}, {1, 8000}, {0, 0, 1, 8000}};
  EXPECT_FALSE(CropDecoder(kSize.height, PixelPolicy::fast).decode(file, spec, out.view()));
  EXPECT_TRUE(CropDecoder(1 << 24, PixelPolicy::fast).decode(file, spec, out.view()));
}

}  // namespace
}  // namespace stoker
