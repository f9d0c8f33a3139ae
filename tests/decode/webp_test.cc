// WebP: parts of a picture have the pixels that libwebp gives for the whole; the first frame of an
// animation; damaged chunks. (golden_test.cc has Pillow's pixels.)
#include <gtest/gtest.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <random>
#include <string>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"
#include "tests/decode/process_memory.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes make_webp(Size size, bool is_lossy, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes pixels;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const int wave = (x * 5 + y * 3 + static_cast<int>(seed)) % 256;
      for (const int c : {wave, 255 - wave, (x * y) % 256}) {
        pixels.push_back(
            static_cast<uint8_t>(std::clamp(c + static_cast<int>(random() % 40), 0, 255)));
      }
    }
  }
  uint8_t* file = nullptr;
  const size_t bytes =
      is_lossy
          ? WebPEncodeRGB(pixels.data(), size.width, size.height, 3 * size.width, 70, &file)
          : WebPEncodeLosslessRGB(pixels.data(), size.width, size.height, 3 * size.width, &file);
  const Bytes made(file, file + bytes);
  WebPFree(file);
  return made;
}

void add(Bytes& to, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}

void add_chunk(Bytes& to, const std::string& tag, const Bytes& data) {
  to.insert(to.end(), tag.begin(), tag.end());
  add(to, static_cast<uint32_t>(data.size()), 4);
  to.insert(to.end(), data.begin(), data.end());
  if (data.size() % 2 == 1) to.push_back(0);
}

// An animation whose frames lie in `box` on the canvas; the chunk of pixels is that of `still`.
Bytes animate(const Bytes& still, Size canvas, Box box, int frames = 2) {
  Bytes extended(4), frame, file;
  extended[0] = 2;
  add(extended, static_cast<uint32_t>(canvas.width - 1), 3);
  add(extended, static_cast<uint32_t>(canvas.height - 1), 3);
  add(frame, static_cast<uint32_t>(box.x / 2), 3);
  add(frame, static_cast<uint32_t>(box.y / 2), 3);
  add(frame, static_cast<uint32_t>(box.width - 1), 3);
  add(frame, static_cast<uint32_t>(box.height - 1), 3);
  add(frame, 40, 4);  // a duration, and no flags
  frame.insert(frame.end(), still.begin() + 12, still.end());
  const std::string head = "RIFF0000WEBP";
  file.assign(head.begin(), head.end());
  add_chunk(file, "VP8X", extended);
  add_chunk(file, "ANIM", Bytes(6, 0x55));
  for (int i = 0; i < frames; ++i) add_chunk(file, "ANMF", frame);
  Bytes size;
  add(size, static_cast<uint32_t>(file.size() - 8), 4);
  std::copy(size.begin(), size.end(), file.begin() + 4);
  return file;
}

Bytes whole_by_libwebp(const Bytes& file) {
  int width = 0, height = 0;
  uint8_t* pixels = WebPDecodeRGB(file.data(), file.size(), &width, &height);
  const Bytes made(pixels, pixels + size_t{3} * width * height);
  WebPFree(pixels);
  return made;
}

DecodeStatus decode_webp(const Bytes& file, Box crop, Bytes& pixels) {
  ImageDecoder decoder;
  Pixels out({crop.width, crop.height}, 3);
  const DecodeStatus status = decoder.decode(file, plain_crop(crop), out.view());
  EXPECT_TRUE(out.gaps_intact());
  pixels = out.packed();
  return status;
}

// The crop's pixels; black where they are not in `inner`, which has `pixels`.
Bytes webp_part(const Bytes& pixels, Box inner, Box crop) {
  Bytes part;
  for (int y = crop.y; y < crop.y + crop.height; ++y) {
    for (int x = crop.x; x < crop.x + crop.width; ++x) {
      const bool is_inside =
          x >= inner.x && x < inner.x + inner.width && y >= inner.y && y < inner.y + inner.height;
      const size_t at =
          is_inside ? 3 * (static_cast<size_t>(y - inner.y) * inner.width + (x - inner.x)) : 0;
      for (size_t c = 0; c < 3; ++c) part.push_back(is_inside ? pixels[at + c] : 0);
    }
  }
  return part;
}

// A lossless picture of one colour whose numbers are 0 or 1: each of its five codes has one symbol.
TEST(Webp, OneColourTakesEightBytes) {
  uint64_t bits = 0;
  int count = 0;
  const auto put = [&](uint64_t value, int size) {
    bits |= value << count;
    count += size;
  };
  put(0x2f, 8);
  put(99, 14);  // width - 1
  put(79, 14);
  put(0, 4);  // no alpha, version 0
  put(0, 3);  // no transform, no cache of colours, one set of codes
  for (const uint64_t symbol : {1, 0, 1, 1, 0}) put(1 | symbol << 3, 4);  // green, red, blue ...
  Bytes pixels, data, file{'R', 'I', 'F', 'F', 20, 0, 0, 0, 'W', 'E', 'B', 'P'};
  add(data, static_cast<uint32_t>(bits), 4);
  add(data, static_cast<uint32_t>(bits >> 32), 4);
  add_chunk(file, "VP8L", data);
  const Box crop{90, 10, 10, 70};
  const DecodeStatus status = decode_webp(file, crop, pixels);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(pixels, webp_part(whole_by_libwebp(file), {0, 0, 100, 80}, crop));
  EXPECT_EQ(Bytes(pixels.begin(), pixels.begin() + 3), (Bytes{0, 1, 1}));
  file[16] = 7;  // a byte less, which the codes need
  file.pop_back();
  EXPECT_FALSE(decode_webp(file, crop, pixels).ok());
}

TEST(Webp, PartsHaveThePixelsOfTheWhole) {
  std::mt19937 random(1);
  for (uint32_t round = 0; round < 60; ++round) {
    const Size size{1 + static_cast<int>(random() % 90), 1 + static_cast<int>(random() % 90)};
    const Bytes file = make_webp(size, round % 3 != 0, round);
    const Bytes whole = whole_by_libwebp(file);
    const Box all{0, 0, size.width, size.height};
    for (int i = 0; i < 12; ++i) {
      const Box crop = i == 0 ? all : random_box(size, random);
      Bytes pixels;
      const DecodeStatus status = decode_webp(file, crop, pixels);
      ASSERT_TRUE(status.ok()) << status.message;
      ASSERT_EQ(pixels, webp_part(whole, all, crop))
          << round << ": " << size.width << "x" << size.height << ", crop " << crop.width << "x"
          << crop.height << " at " << crop.x << "," << crop.y;
    }
  }
}

TEST(Webp, FirstFrameOfAnAnimationLiesOnBlack) {
  std::mt19937 random(2);
  for (uint32_t round = 0; round < 40; ++round) {
    const Size canvas{20 + static_cast<int>(random() % 60), 20 + static_cast<int>(random() % 60)};
    Box box = random_box(canvas, random);
    box.x &= ~1;
    box.y &= ~1;
    const Bytes still = make_webp({box.width, box.height}, round % 2 == 0, round);
    const Bytes file = animate(still, canvas, box);
    const Bytes frame = whole_by_libwebp(still);
    for (int i = 0; i < 8; ++i) {
      const Box crop = i == 0 ? Box{0, 0, canvas.width, canvas.height} : random_box(canvas, random);
      Bytes pixels;
      const DecodeStatus status = decode_webp(file, crop, pixels);
      ASSERT_TRUE(status.ok()) << status.message;
      ASSERT_EQ(pixels, webp_part(frame, box, crop)) << round;
    }
  }
}

TEST(Webp, FramesThatDoNotFitAreRefused) {
  const Bytes still = make_webp({30, 20}, true, 1);
  Bytes pixels;
  EXPECT_TRUE(decode_webp(animate(still, {32, 24}, {2, 4, 30, 20}), {0, 0, 9, 9}, pixels).ok());
  // Off the canvas; of another size than its pixels; no frame.
  for (const Bytes& file :
       {animate(still, {32, 24}, {4, 4, 30, 20}), animate(still, {32, 24}, {0, 6, 30, 20}),
        animate(still, {32, 24}, {0, 0, 28, 20}), animate(still, {32, 24}, {0, 0, 30, 20}, 0)}) {
    EXPECT_EQ(decode_webp(file, {0, 0, 9, 9}, pixels).code, DecodeCode::corrupt);
  }
}

// Where the entropy data below a crop are broken, lossy pictures are decoded down to the crop.
TEST(Webp, RowsBelowTheCropAreNotDecoded) {
  const Bytes still = make_webp({64, 800}, true, 3);
  Bytes broken = still;
  std::fill(broken.begin() + static_cast<ptrdiff_t>(broken.size() * 3 / 4), broken.end(), 0);
  const Box upper{3, 5, 40, 60}, lower{3, 700, 40, 60};
  Bytes pixels, expected;
  ASSERT_TRUE(decode_webp(still, upper, expected).ok());
  ASSERT_TRUE(decode_webp(broken, upper, pixels).ok());
  EXPECT_EQ(pixels, expected);
  ASSERT_TRUE(decode_webp(still, lower, expected).ok());
  EXPECT_TRUE(!decode_webp(broken, lower, pixels).ok() || pixels != expected);
}

// A huge canvas, or a huge frame, that a few bytes promise.
TEST(Webp, BombsTakeNoMemory) {
  const Bytes tiny = make_webp({16, 16}, true, 1);
  const Size huge{13'000, 13'000}, too_huge{1 << 24, 1 << 24};
  const Box inside{0, 0, 16, 16}, whole{0, 0, 13'000, 13'000};
  // In an animation only the frame is made; the canvas around it is black.
  EXPECT_LE(growth_of_decoding(animate(tiny, huge, inside), huge, DecodeCode::ok), kLittleGrowth);
  EXPECT_LE(growth_of_decoding(animate(tiny, too_huge, inside), huge, DecodeCode::too_large),
            kLittleGrowth);
  // The frame is larger than its pixels, or than the canvas.
  EXPECT_LE(growth_of_decoding(animate(tiny, huge, whole), huge, DecodeCode::corrupt),
            kLittleGrowth);
  const Size small{20, 20};
  for (const Box box : {whole, Box{0, 0, 1 << 24, 1 << 24}, {6, 0, 16, 16}, {0, 6, 16, 16}}) {
    EXPECT_LE(growth_of_decoding(animate(tiny, small, box), small, DecodeCode::corrupt),
              kLittleGrowth);
  }
  // A still picture with another canvas than its pixels have.
  Bytes still = animate(tiny, huge, inside, 0);
  still[20] = 0;  // not animated
  still.insert(still.end(), tiny.begin() + 12, tiny.end());
  const auto bytes = static_cast<uint32_t>(still.size() - 8);
  for (size_t i = 0; i < 4; ++i) still[4 + i] = static_cast<uint8_t>(bytes >> 8 * i);
  EXPECT_LE(growth_of_decoding(still, huge, DecodeCode::corrupt), kLittleGrowth);
  // Pixels whose own header promises too many: the plan of memory has a frame for them.
  Bytes header = tiny;
  for (const size_t side : {26u, 28u}) {
    header[side] = 13'000 & 0xff;
    header[side + 1] = 13'000 >> 8;
  }
  EXPECT_LE(growth_of_decoding(header, huge, DecodeCode::corrupt),
            decode_scratch_bound({}, {224, 224}).whole_frame);
}

}  // namespace
}  // namespace stoker
