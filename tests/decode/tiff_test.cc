// TIFF: the pixels that libtiff's writer was given, in every layout; what is decoded for a crop;
// files that promise more than they have, and the memory that they take. (golden_test.cc has
// Pillow's pixels.)
#include <gtest/gtest.h>
#include <tiff.h>

#include <algorithm>
#include <random>

#include "decode/codec/tiff_lines.h"
#include "decode/image_decoder.h"
#include "decode/orientation.h"
#include "tests/decode/pixels.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/process_memory.h"
#include "tests/decode/random_spec.h"
#include "tests/decode/tiff_maker.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kLossless[] = {COMPRESSION_NONE,     COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE,
                             COMPRESSION_PACKBITS, COMPRESSION_LZMA, COMPRESSION_ZSTD};

bool has_predictor(int compression) {
  return compression != COMPRESSION_NONE && compression != COMPRESSION_PACKBITS;
}

// RGB as Pillow makes it of the samples.
Bytes rgb_of(const TiffKind& kind, const std::vector<uint16_t>& samples, Box box) {
  Bytes rgb;
  for (int y = box.y; y < box.y + box.height; ++y) {
    for (int x = box.x; x < box.x + box.width; ++x) {
      const size_t pixel = static_cast<size_t>(y) * kind.size.width + x;
      for (int c = 0; c < 3; ++c) {
        const uint16_t value = samples[pixel * kind.samples + std::min(c, kind.samples - 1)];
        const bool is_gray_16 = kind.bits == 16 && kind.samples == 1;
        rgb.push_back(static_cast<uint8_t>(kind.bits == 1    ? 255 * value
                                           : is_gray_16      ? std::min<int>(value, 255)
                                           : kind.bits == 16 ? value >> 8
                                                             : value));
      }
    }
  }
  return rgb;
}

DecodeStatus decode_tiff(const Bytes& file, Box box, Bytes& pixels,
                         int64_t max_pixels = 1'000'000) {
  ImageDecoder decoder({.max_pixels = max_pixels});
  Pixels out({box.width, box.height});
  const DecodeStatus status = decoder.decode(file, plain_crop(box), out.view());
  pixels = out.packed();
  return status;
}

void expect_pixels(const TiffKind& kind, std::mt19937& random) {
  SCOPED_TRACE(::testing::Message()
               << "compression " << kind.compression << ", " << kind.samples << " samples of "
               << kind.bits << " bits, differences " << kind.has_differences << ", planes "
               << kind.is_separate << ", tile " << kind.tile.width << "x" << kind.tile.height
               << ", strips of " << kind.rows_per_strip << ", big " << kind.is_big
               << ", big-endian " << kind.is_big_endian);
  std::vector<uint16_t> samples;
  const Bytes file = make_tiff(kind, static_cast<uint32_t>(random()), samples);
  Bytes pixels;
  for (int i = 0; i < 4; ++i) {
    const Box box =
        i == 0 ? Box{0, 0, kind.size.width, kind.size.height} : random_box(kind.size, random);
    const DecodeStatus status = decode_tiff(file, box, pixels);
    ASSERT_TRUE(status.ok()) << to_string(status.code) << ": " << status.message;
    ASSERT_EQ(pixels, rgb_of(kind, samples, box)) << box.x << "," << box.y;
  }
}

TEST(Tiff, EveryLayoutHasThePixelsThatWereWritten) {
  std::mt19937 random(1);
  for (const int compression : kLossless) {
    if (!can_make_tiff(compression)) continue;
    for (int i = 0; i < 96; ++i) {
      TiffKind kind{.size = {37 + i, 41 + i % 7}, .compression = compression};
      kind.samples = i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 4;
      kind.bits = i / 3 % 2 == 0 ? 8 : 16;
      kind.is_big = i / 6 % 2 == 1;
      kind.is_big_endian = i / 12 % 2 == 1;
      // Pillow reads planes of 16 bits without compression as if they had 8, so they are refused.
      const bool has_planes = kind.samples > 1 && (compression != 1 || kind.bits == 8);
      kind.is_separate = i / 24 % 2 == 1 && has_planes;
      kind.has_differences = i % 5 < 2 && has_predictor(compression);
      kind.rows_per_strip = i % 4 == 0 ? 0 : i % 4 == 1 ? 7 : 1;
      if (i % 4 == 3) kind.tile = i % 8 == 3 ? Size{16, 32} : Size{128, 64};
      expect_pixels(kind, random);
      if (HasFatalFailure()) return;
    }
  }
}

// A second sample of gray or of a palette's index, without a meaning or alpha, does not show.
TEST(Tiff, ASecondSampleIsLeftOut) {
  const Size size{23, 9};
  for (const bool has_palette : {false, true}) {
    for (const int extra : {EXTRASAMPLE_UNSPECIFIED, EXTRASAMPLE_UNASSALPHA}) {
      for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW}) {
        const TiffKind kind{.size = size,
                            .samples = 2,
                            .compression = compression,
                            .extra = extra,
                            .has_palette = has_palette};
        std::vector<uint16_t> samples;
        const Bytes file = make_tiff(kind, 4, samples);
        Bytes pixels, expected;
        for (size_t i = 0; i < samples.size(); i += 2) {
          const auto value = static_cast<uint8_t>(samples[i]);
          const auto other = static_cast<uint8_t>(255 - value);
          expected.insert(expected.end(),
                          {value, has_palette ? other : value, has_palette ? uint8_t{7} : value});
        }
        const DecodeStatus status = decode_tiff(file, {0, 0, size.width, size.height}, pixels);
        ASSERT_TRUE(status.ok()) << status.message;
        EXPECT_EQ(pixels, expected) << has_palette << extra << compression;
      }
    }
  }
  std::vector<uint16_t> samples;
  Bytes pixels;
  const TiffKind multiplied{.size = size, .samples = 2, .extra = EXTRASAMPLE_ASSOCALPHA};
  EXPECT_EQ(decode_tiff(make_tiff(multiplied, 4, samples), {0, 0, 9, 9}, pixels).code,
            DecodeCode::unsupported);
}

// Corel's programs write 999 for alpha, which is read as such where there are 8 bits.
TEST(Tiff, AlphaOfCorelHasEightBits) {
  for (const int bits : {8, 16}) {
    const TiffKind kind{.size = {9, 7}, .samples = 4, .bits = bits};
    std::vector<uint16_t> samples;
    Bytes file = make_tiff(kind, 4, samples), pixels;
    const auto u16 = [&](size_t at) { return size_t{file[at]} | size_t{file[at + 1]} << 8; };
    size_t entry = u16(4) + 2;
    while (u16(entry) != TIFFTAG_EXTRASAMPLES) entry += 12;
    file[entry + 8] = 999 & 255, file[entry + 9] = 999 >> 8;
    EXPECT_EQ(decode_tiff(file, {0, 0, 9, 7}, pixels).code,
              bits == 8 ? DecodeCode::ok : DecodeCode::unsupported);
  }
}

TEST(Tiff, BilevelLines) {
  std::mt19937 random(2);
  for (const int compression : {COMPRESSION_NONE, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_CCITTFAX3,
                                COMPRESSION_CCITTFAX4, COMPRESSION_LZW, COMPRESSION_PACKBITS}) {
    for (const int strip : {0, 1, 9}) {
      for (const bool is_reversed : {false, true}) {
        if (is_reversed && compression == COMPRESSION_ADOBE_DEFLATE) continue;  // refused
        TiffKind kind{.size = {45, 38}, .samples = 1, .bits = 1, .compression = compression};
        kind.rows_per_strip = strip;
        kind.is_bit_reversed = is_reversed;
        expect_pixels(kind, random);
      }
    }
  }
}

// For JPEG and WebP the pixels are not known, but those of a part are those of the whole.
TEST(Tiff, PartsOfLossyFilesAreThoseOfTheWhole) {
  std::mt19937 random(3);
  for (const int compression : {COMPRESSION_JPEG, COMPRESSION_WEBP}) {
    if (!can_make_tiff(compression)) continue;
    for (const Size tile : {Size{0, 0}, {32, 16}}) {
      for (const int strip : {0, 8}) {
        const TiffKind kind{
            .size = {90, 75}, .compression = compression, .tile = tile, .rows_per_strip = strip};
        std::vector<uint16_t> samples;
        const Bytes file = make_tiff(kind, 4, samples);
        Bytes whole, part;
        ASSERT_TRUE(decode_tiff(file, {0, 0, 90, 75}, whole).ok());
        for (int i = 0; i < 20; ++i) {
          const Box box = random_box(kind.size, random);
          ASSERT_TRUE(decode_tiff(file, box, part).ok());
          for (int y = 0; y < box.height; ++y) {
            const auto from = whole.begin() + 3 * ((box.y + y) * 90 + box.x);
            ASSERT_TRUE(std::equal(from, from + 3 * box.width, part.begin() + 3 * y * box.width));
          }
        }
      }
    }
  }
}

// The bytes of the strip or tile with this number, found through what the file says of it.
struct Place {
  size_t at, size;
};
Place place_of(const Bytes& file, uint32_t number, bool is_tiled) {
  const auto u16 = [&](size_t at) { return size_t{file[at]} | size_t{file[at + 1]} << 8; };
  const auto u32 = [&](size_t at) { return u16(at) | u16(at + 2) << 16; };
  const auto value = [&](size_t tag) {
    for (size_t at = u32(4) + 2;; at += 12) {
      if (u16(at) != tag) continue;
      const size_t each = u16(at + 2) == 3 ? 2 : 4;
      const size_t first = each * u32(at + 4) <= 4 ? at + 8 : u32(at + 8);
      return each == 2 ? u16(first + 2 * number) : u32(first + 4 * number);
    }
  };
  return {value(is_tiled ? 324 : 273), value(is_tiled ? 325 : 279)};
}

// A damaged strip or tile is seen by the crops that need it, and by no others.
TEST(Tiff, OnlyThePartsOfACropAreDecoded) {
  const Box top{0, 0, 64, 20}, middle{0, 25, 64, 10}, bottom{0, 40, 64, 24};
  for (const int compression : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
    for (const bool is_tiled : {false, true}) {
      TiffKind kind{.size = {64, 64}, .compression = compression, .rows_per_strip = 16};
      if (is_tiled) kind.tile = {64, 16};
      std::vector<uint16_t> samples;
      const Bytes good = make_tiff(kind, 5, samples);
      const auto damaged = [&](uint32_t number) {
        Bytes file = good;
        const Place place = place_of(file, number, is_tiled);
        std::fill_n(file.begin() + static_cast<ptrdiff_t>(place.at), place.size, uint8_t{0xff});
        return file;
      };
      Bytes pixels;
      EXPECT_EQ(decode_tiff(damaged(3), {0, 0, 64, 64}, pixels).code, DecodeCode::corrupt);
      EXPECT_EQ(decode_tiff(damaged(3), bottom, pixels).code, DecodeCode::corrupt);
      EXPECT_TRUE(decode_tiff(damaged(3), top, pixels).ok());
      EXPECT_EQ(pixels, rgb_of(kind, samples, top));
      EXPECT_TRUE(decode_tiff(damaged(3), middle, pixels).ok());
      EXPECT_EQ(decode_tiff(damaged(0), top, pixels).code, DecodeCode::corrupt);
      EXPECT_TRUE(decode_tiff(damaged(0), bottom, pixels).ok());
      EXPECT_EQ(pixels, rgb_of(kind, samples, bottom));
    }
  }
}

// The directory's entry for a tag. REQUIRES: it is there, and the file is make_tiff's.
Bytes::iterator entry_of(Bytes& file, uint16_t tag) {
  size_t at = file[4] + (size_t{file[5]} << 8) + 2;
  while ((file[at] | file[at + 1] << 8) != tag) at += 12;
  return file.begin() + static_cast<ptrdiff_t>(at);
}

// Packs the bytes in runs of `run`, one as it is and one repeated, whatever the lines are. Only the
// first byte of a repeated run is used.
Bytes packed(const Bytes& bytes, size_t run) {
  Bytes all;
  bool is_repeated = false;
  for (size_t at = 0; at < bytes.size(); at += run, is_repeated = !is_repeated) {
    const size_t count = std::min(run, bytes.size() - at);
    all.push_back(0x80);  // nothing
    all.push_back(static_cast<uint8_t>(is_repeated && count > 1 ? 257 - count : count - 1));
    const size_t given = is_repeated && count > 1 ? 1 : count;
    all.insert(all.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
               bytes.begin() + static_cast<ptrdiff_t>(at + given));
  }
  return all;
}

// A TIFF with PackBits whose strip has these bytes in the place of libtiff's.
Bytes with_packed(Bytes file, const Bytes& strip) {
  const Place place = place_of(file, 0, false);
  if (strip.size() > place.size) return {};
  std::copy(strip.begin(), strip.end(), file.begin() + static_cast<ptrdiff_t>(place.at));
  return file;
}

// Not all writers end the runs with each line, as the standard demands; Pillow reads them.
TEST(Tiff, RunsOfPackBitsGoOnInTheNextLine) {
  std::mt19937 random(12);
  for (const bool is_reversed : {false, true}) {
    TiffKind kind{.size = {61, 50}, .samples = 1, .compression = COMPRESSION_PACKBITS};
    kind.is_bit_reversed = is_reversed;
    for (const size_t run : {37, 128}) {
      std::vector<uint16_t> samples(61 * 50);
      for (size_t at = 0; at < samples.size(); ++at) {
        const bool is_repeated = at / run % 2 == 1 && at % run > 0;
        samples[at] = is_repeated ? samples[at - 1] : static_cast<uint16_t>(random() % 256);
      }
      Bytes strip = packed(Bytes(samples.begin(), samples.end()), run);
      if (is_reversed) std::transform(strip.begin(), strip.end(), strip.begin(), reversed_bits);
      // libtiff gets samples that do not compress, so that there is room.
      const std::vector<uint16_t> noise = [&] {
        std::vector<uint16_t> all(samples.size());
        for (uint16_t& sample : all) sample = static_cast<uint16_t>(random() % 256);
        return all;
      }();
      const Bytes file = with_packed(make_tiff(kind, noise), strip);
      ASSERT_FALSE(file.empty());
      Bytes pixels;
      for (int i = 0; i < 10; ++i) {
        const Box box = i == 0 ? Box{0, 0, 61, 50} : random_box(kind.size, random);
        const DecodeStatus status = decode_tiff(file, box, pixels);
        ASSERT_TRUE(status.ok()) << status.message;
        ASSERT_EQ(pixels, rgb_of(kind, samples, box)) << run << " reversed " << is_reversed;
      }
    }
  }
}

// libtiff, which makes RGB of YCbCr, does not read on within a run.
TEST(Tiff, RunsOfPackBitsGoOnInTheNextLineOfYcc) {
  std::mt19937 random(13);
  const TiffKind kind{.size = {40, 33}, .compression = COMPRESSION_PACKBITS};
  std::vector<uint16_t> samples(40 * 33 * 3);
  for (uint16_t& sample : samples) sample = static_cast<uint16_t>(random() % 256);
  Bytes file = make_tiff(kind, samples);
  Bytes strip;
  for (size_t at = 0; at < samples.size(); at += 128) {
    const size_t count = std::min<size_t>(128, samples.size() - at);
    strip.push_back(static_cast<uint8_t>(count - 1));
    strip.insert(strip.end(), samples.begin() + static_cast<ptrdiff_t>(at),
                 samples.begin() + static_cast<ptrdiff_t>(at + count));
  }
  file = with_packed(std::move(file), strip);
  ASSERT_FALSE(file.empty());
  constexpr uint8_t kYcc = 6;
  *(entry_of(file, TIFFTAG_PHOTOMETRIC) + 8) = kYcc;
  // The last entry says that pixels have all samples, as they do by default.
  const uint8_t full_size[] = {TIFFTAG_YCBCRSUBSAMPLING & 255,
                               TIFFTAG_YCBCRSUBSAMPLING >> 8,
                               TIFF_SHORT,
                               0,
                               2,
                               0,
                               0,
                               0,
                               1,
                               0,
                               1,
                               0};
  std::copy(std::begin(full_size), std::end(full_size), entry_of(file, TIFFTAG_PLANARCONFIG));
  Bytes whole, part;
  ASSERT_TRUE(decode_tiff(file, {0, 0, 40, 33}, whole).ok());
  for (int i = 0; i < 10; ++i) {
    const Box box = random_box(kind.size, random);
    const DecodeStatus status = decode_tiff(file, box, part);
    ASSERT_TRUE(status.ok()) << status.message;
    for (int y = 0; y < box.height; ++y) {
      const auto from = whole.begin() + 3 * ((box.y + y) * 40 + box.x);
      ASSERT_TRUE(std::equal(from, from + 3 * box.width, part.begin() + 3 * y * box.width));
    }
  }
}

// libtiff knows no predictor beside PackBits, and so neither does Pillow.
TEST(Tiff, PackBitsHaveNoDifferences) {
  std::vector<uint16_t> samples;
  const TiffKind kind{.size = {64, 64}, .compression = COMPRESSION_PACKBITS};
  Bytes file = make_tiff(kind, 15, samples), pixels;
  const uint8_t differences[] = {TIFFTAG_PREDICTOR & 255,
                                 TIFFTAG_PREDICTOR >> 8,
                                 TIFF_SHORT,
                                 0,
                                 1,
                                 0,
                                 0,
                                 0,
                                 PREDICTOR_HORIZONTAL,
                                 0,
                                 0,
                                 0};
  std::copy(std::begin(differences), std::end(differences), entry_of(file, TIFFTAG_PLANARCONFIG));
  EXPECT_TRUE(decode_tiff(file, {0, 0, 64, 64}, pixels).ok());
  EXPECT_EQ(pixels, rgb_of(kind, samples, {0, 0, 64, 64}));
}

TEST(Tiff, PackBitsThatDoNotFitAreDamage) {
  std::vector<uint16_t> samples;
  const TiffKind kind{.size = {64, 64}, .samples = 1, .compression = COMPRESSION_PACKBITS};
  const Bytes good = make_tiff(kind, 14, samples);
  Bytes pixels;
  const Box all{0, 0, 64, 64}, top{0, 0, 64, 63};
  constexpr uint8_t kRepeat128 = 0x81;
  const auto repeats = [](size_t runs) {
    Bytes strip;
    for (size_t i = 0; i < runs; ++i) strip.insert(strip.end(), {kRepeat128, 7});
    return strip;
  };
  EXPECT_TRUE(decode_tiff(with_packed(good, repeats(32)), all, pixels).ok());
  EXPECT_EQ(pixels, Bytes(3 * 64 * 64, 7));
  // One byte more than there are: those rows that do not need the last run are read.
  Bytes longer = repeats(32);
  longer.insert(longer.begin(), {0, 7});
  const DecodeStatus status = decode_tiff(with_packed(good, longer), all, pixels);
  EXPECT_EQ(status.code, DecodeCode::corrupt);
  EXPECT_EQ(status.message, "a strip or tile is no whole run of PackBits of its size");
  EXPECT_TRUE(decode_tiff(with_packed(good, longer), top, pixels).ok());
  // A strip that ends in a run, and between a code and its byte.
  const auto with_size = [&](Bytes file, size_t size) {
    const auto entry = entry_of(file, TIFFTAG_STRIPBYTECOUNTS);
    entry[8] = static_cast<uint8_t>(size);
    entry[9] = static_cast<uint8_t>(size >> 8);
    return file;
  };
  for (const size_t size : {63u, 62u, 1u, 0u}) {
    const Bytes file = with_size(with_packed(good, repeats(32)), size);
    EXPECT_EQ(decode_tiff(file, all, pixels).code, DecodeCode::corrupt) << size;
  }
  Bytes literal = repeats(31);
  literal.insert(literal.end(), {127, 1, 2, 3});
  EXPECT_EQ(decode_tiff(with_size(with_packed(good, literal), literal.size()), all, pixels).code,
            DecodeCode::corrupt);
}

// libtiff warns of damaged fax lines, and gives some pixels.
TEST(Tiff, WarningsAboutPixelsAreDamage) {
  std::vector<uint16_t> samples;
  for (const int compression : {COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4}) {
    const TiffKind kind{.size = {64, 64}, .samples = 1, .bits = 1, .compression = compression};
    Bytes file = make_tiff(kind, 10, samples), pixels;
    const Place place = place_of(file, 0, false);
    std::fill_n(file.begin() + static_cast<ptrdiff_t>(place.at + place.size / 2), 9, uint8_t{0x55});
    const DecodeStatus status = decode_tiff(file, {0, 0, 64, 64}, pixels);
    EXPECT_EQ(status.code, DecodeCode::corrupt) << compression;
    EXPECT_TRUE(status.message.starts_with("libtiff: ")) << status.message;
  }
}

// In one large strip nothing is decoded below the crop either, and in tiles nothing beside it.
TEST(Tiff, NothingBelowOrBesideTheCropIsDecoded) {
  std::vector<uint16_t> samples;
  Bytes pixels;
  for (const int compression : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
    for (const bool is_separate : {false, true}) {
      const TiffKind kind{.size = {64, 64}, .compression = compression, .is_separate = is_separate};
      Bytes file = make_tiff(kind, 6, samples);
      for (uint32_t plane = 0; plane < (is_separate ? 3u : 1u); ++plane) {
        const Place place = place_of(file, plane, false);
        const auto end = file.begin() + static_cast<ptrdiff_t>(place.at + place.size);
        std::fill(end - static_cast<ptrdiff_t>(place.size / 4), end, uint8_t{0xff});
      }
      EXPECT_EQ(decode_tiff(file, {0, 0, 64, 64}, pixels).code, DecodeCode::corrupt);
      EXPECT_TRUE(decode_tiff(file, {3, 2, 50, 30}, pixels).ok());
      EXPECT_EQ(pixels, rgb_of(kind, samples, {3, 2, 50, 30}));
    }
  }
  const TiffKind kind{.size = {64, 64}, .compression = COMPRESSION_LZW, .tile = {16, 64}};
  Bytes file = make_tiff(kind, 7, samples);
  const Place place = place_of(file, 2, true);
  std::fill_n(file.begin() + static_cast<ptrdiff_t>(place.at), place.size, uint8_t{0xff});
  EXPECT_FALSE(decode_tiff(file, {0, 0, 33, 64}, pixels).ok());
  EXPECT_TRUE(decode_tiff(file, {0, 0, 32, 64}, pixels).ok());
  EXPECT_TRUE(decode_tiff(file, {48, 0, 16, 64}, pixels).ok());
  EXPECT_EQ(pixels, rgb_of(kind, samples, {48, 0, 16, 64}));
}

int64_t growth_of_tiff(const Bytes& file, Size size, DecodeCode expected) {
  return growth_of_decoding(file, size, expected,
                            {.max_pixels = int64_t{size.width} * size.height});
}

// However few strips a file has, only some rows are held, and libtiff's copy of what is compressed.
TEST(Tiff, StripsAreStreamed) {
  if (kAddressSanitizer) GTEST_SKIP() << "images of 150 MB take too long";
  constexpr int64_t kRows = (int64_t{16} << 20) + kLittleGrowth;
  const Size size{20'000, 2'500};  // 150 MB as RGB, 50 MB as gray
  const std::vector<uint16_t> samples(static_cast<size_t>(size.width) * size.height);
  for (const int compression :
       {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS}) {
    for (const int strip : {0, 16}) {
      TiffKind kind{.size = size, .samples = 1, .bits = 1, .compression = compression};
      kind.rows_per_strip = strip;
      const Bytes file = make_tiff(kind, samples);
      const int64_t growth = growth_of_tiff(file, size, DecodeCode::ok);
      EXPECT_LE(growth, kRows) << compression;
      EXPECT_LE(growth, decode_scratch_bound({}, {224, 224}).streamed + kLittleGrowth);
    }
  }
}

// One row of tiles is held, or one strip of each plane.
TEST(Tiff, TilesAndPlanesAreHeldInParts) {
  const Size size{4'000, 4'000};
  const int64_t frame = int64_t{3} * size.width * size.height;
  for (const bool is_tiled : {false, true}) {
    TiffKind kind{.size = size, .compression = COMPRESSION_LZW, .rows_per_strip = 100};
    kind.is_separate = !is_tiled;
    if (is_tiled) kind.tile = {256, 256};
    const Bytes file =
        make_tiff(kind, std::vector<uint16_t>(static_cast<size_t>(size.width) * size.height * 3));
    EXPECT_LE(growth_of_tiff(file, size, DecodeCode::ok), frame / 3 + kLittleGrowth) << is_tiled;
  }
}

// A few bytes that promise many pixels. `parts`: the count of strips or tiles, all of which lie at
// the same place and have 64 bytes; the file ends behind them.
struct Promise {
  std::vector<std::pair<uint16_t, uint32_t>> tags;  // with one value each, of 32 bits
  uint32_t parts = 1;
  bool is_tiled = false;
  uint32_t offset = 0;  // of each part; 0: where the bytes lie
  uint32_t size = 64;
  uint32_t more_tags = 0;  // unknown ones, each of which claims the whole file
  Bytes pixels = Bytes(64, 0x55);
};

Bytes small_file(const Promise& promise) {
  std::vector<std::pair<uint16_t, uint32_t>> tags = promise.tags;
  const auto offsets = static_cast<uint16_t>(promise.is_tiled ? 324 : 273);
  const auto sizes = static_cast<uint16_t>(promise.is_tiled ? 325 : 279);
  tags.insert(tags.end(), {{offsets, 0}, {sizes, 0}});
  for (uint32_t i = 0; i < promise.more_tags; ++i)
    tags.push_back({static_cast<uint16_t>(40'000 + i), 0});
  std::sort(tags.begin(), tags.end());
  const auto arrays = static_cast<uint32_t>(8 + 2 + 12 * tags.size() + 4);
  const uint32_t pixels = arrays + 8 * promise.parts;
  const auto end = static_cast<uint32_t>(pixels + promise.pixels.size());
  Bytes file{'I', 'I', 42, 0, 8, 0, 0, 0};
  const auto add = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const uint32_t at = promise.offset == 0 ? pixels : promise.offset;
  add(tags.size(), 2);
  for (const auto& [tag, value] : tags) {
    const bool is_array = tag == offsets || tag == sizes;
    add(tag, 2);
    add(tag >= 40'000 ? 1 : 4, 2);
    add(tag >= 40'000 ? end : is_array ? promise.parts : 1, 4);
    const uint32_t one = tag == offsets ? at : promise.size;
    const uint32_t array = tag == offsets ? arrays : arrays + 4 * promise.parts;
    add(!is_array ? value : promise.parts == 1 ? one : array, 4);
  }
  add(0, 4);
  for (uint32_t i = 0; i < promise.parts; ++i) add(at, 4);
  for (uint32_t i = 0; i < promise.parts; ++i) add(promise.size, 4);
  file.insert(file.end(), promise.pixels.begin(), promise.pixels.end());
  return file;
}

std::vector<std::pair<uint16_t, uint32_t>> rgb_tags(Size size, uint32_t compression) {
  return {{256, size.width}, {257, size.height}, {258, 8}, {259, compression}, {262, 2}, {277, 3}};
}

// As Pillow, which turns by every type of integer but BYTE.
TEST(Tiff, TurnsByIntegersThatAreNoBytes) {
  Promise promise{.tags = rgb_tags({4, 5}, 1)};
  promise.tags.push_back({274, 6});
  for (const uint8_t type : {1, 2, 3, 4, 6, 7, 8, 9, 13}) {
    Bytes file = small_file(promise);
    entry_of(file, 274)[2] = type;
    ImageInfo info;
    ASSERT_TRUE(ImageDecoder({.exif = ExifPolicy::apply}).info(file, info).ok());
    const bool is_turned = type != 1 && type != 2 && type != 7;
    EXPECT_EQ(info.size, (is_turned ? Size{5, 4} : Size{4, 5})) << int{type};
    EXPECT_EQ(exif_orientation(file), is_turned ? 6 : 1) << int{type};
  }
}

// A stream that goes on after the pixels, or whose checksum is wrong, is damage.
TEST(Tiff, DeflatedPartsEndWithTheirPixels) {
  const Size size{8, 4};
  const auto status_of = [&](const Bytes& stream) {
    Promise promise{.tags = rgb_tags(size, COMPRESSION_ADOBE_DEFLATE)};
    promise.pixels = stream;
    promise.size = static_cast<uint32_t>(stream.size());
    Bytes pixels;
    return decode_tiff(small_file(promise), {0, 0, size.width, size.height}, pixels).code;
  };
  const Bytes rows(size_t{3} * size.width * size.height, 7);
  EXPECT_EQ(status_of(deflate(rows, 6, 0)), DecodeCode::ok);
  Bytes more = rows;
  more.push_back(7);
  EXPECT_EQ(status_of(deflate(more, 6, 0)), DecodeCode::corrupt);
  EXPECT_EQ(status_of(deflate({rows.begin(), rows.end() - 1}, 6, 0)), DecodeCode::corrupt);
  Bytes wrong = deflate(rows, 6, 0);
  wrong.back() ^= 1;
  EXPECT_EQ(status_of(wrong), DecodeCode::corrupt);
}

TEST(Tiff, BombsTakeNoMemory) {
  const Size size{13'000, 13'000};
  const auto tags = [&](uint32_t compression,
                        std::initializer_list<std::pair<uint16_t, uint32_t>> more) {
    auto all = rgb_tags(size, compression);
    all.insert(all.end(), more);
    return all;
  };
  struct Case {
    const char* what;
    Promise promise;
    DecodeCode expected;
  };
  const Case cases[] = {
      {"one strip, LZW", {.tags = tags(5, {})}, DecodeCode::corrupt},
      {"one strip, deflate", {.tags = tags(8, {})}, DecodeCode::corrupt},
      {"one strip, PackBits", {.tags = tags(32773, {})}, DecodeCode::corrupt},
      {"one strip, JPEG", {.tags = tags(7, {})}, DecodeCode::corrupt},
      {"one strip, raw", {.tags = tags(1, {})}, DecodeCode::truncated},
      {"strips of no rows", {.tags = tags(5, {{278, 0}})}, DecodeCode::corrupt},
      {"strips of too few rows", {.tags = tags(5, {{278, 12'000}})}, DecodeCode::corrupt},
      {"strips of 2^32 - 1 rows", {.tags = tags(5, {{278, ~0u}})}, DecodeCode::corrupt},
      {"a strip beyond the end", {.tags = tags(5, {}), .offset = 1 << 30}, DecodeCode::truncated},
      {"a strip of 4 GB", {.tags = tags(5, {}), .size = ~0u}, DecodeCode::truncated},
      {"tiles of 2^31 rows",
       {.tags = tags(5, {{322, 13'000}, {323, 0x7fffffff}}), .is_tiled = true},
       DecodeCode::corrupt},
      {"tiles of no columns",
       {.tags = tags(5, {{322, 0}, {323, 16}}), .is_tiled = true},
       DecodeCode::corrupt},
      {"20,000 tags that claim the whole file",
       {.tags = tags(5, {}), .more_tags = 20'000},
       DecodeCode::corrupt},
  };
  for (const Case& each : cases) {
    const Bytes file = small_file(each.promise);
    EXPECT_LE(growth_of_tiff(file, size, each.expected), kLittleGrowth) << each.what;
  }
  // A tile as large as the picture, and a plane, are held: the plan has them.
  const int64_t bound =
      decode_scratch_bound({.max_pixels = int64_t{size.width} * size.height}, {224, 224})
          .whole_frame;
  Promise tile{.tags = tags(5, {{322, 13'000}, {323, 13'000}}), .is_tiled = true};
  EXPECT_LE(growth_of_tiff(small_file(tile), size, DecodeCode::corrupt), bound);
  Promise planes{.tags = tags(5, {{284, 2}}), .parts = 3};
  EXPECT_LE(growth_of_tiff(small_file(planes), size, DecodeCode::corrupt), bound);
}

TEST(Tiff, ManyTinyTilesAreRefused) {
  const Size size{1'200, 1'000};
  Promise promise{.tags = rgb_tags(size, 5), .parts = 1'200'000, .is_tiled = true};
  promise.tags.insert(promise.tags.end(), {{322, 1}, {323, 1}});
  EXPECT_LE(growth_of_tiff(small_file(promise), size, DecodeCode::unsupported), kLittleGrowth);
  // Strips of one row each are not too many, however narrow the picture is.
  const TiffKind narrow{
      .size = {1, 60'000}, .compression = 5, .is_separate = true, .rows_per_strip = 1};
  std::vector<uint16_t> samples;
  const Bytes file = make_tiff(narrow, 8, samples);
  Bytes pixels;
  EXPECT_TRUE(decode_tiff(file, {0, 50'000, 1, 9}, pixels).ok());
  EXPECT_EQ(pixels, rgb_of(narrow, samples, {0, 50'000, 1, 9}));
}

TEST(Tiff, BigHeadersAreChecked) {
  std::vector<uint16_t> samples;
  Bytes pixels;
  for (const bool is_big_endian : {false, true}) {
    const TiffKind kind{.size = {9, 7}, .is_big = true, .is_big_endian = is_big_endian};
    const Bytes good = make_tiff(kind, 9, samples);
    const Box whole{0, 0, 9, 7};
    const auto put = [&](Bytes& file, size_t at, uint64_t value, size_t bytes) {
      for (size_t i = 0; i < bytes; ++i) {
        file[at + (is_big_endian ? bytes - 1 - i : i)] = static_cast<uint8_t>(value >> 8 * i);
      }
    };
    const auto number = [&](size_t at, size_t bytes) {
      uint64_t value = 0;
      for (size_t i = 0; i < bytes; ++i)
        value = value << 8 | good[at + (is_big_endian ? i : bytes - 1 - i)];
      return value;
    };
    const size_t directory = number(8, 8);
    const auto changed = [&](size_t at, uint64_t value, size_t bytes) {
      Bytes file = good;
      put(file, at, value, bytes);
      return decode_tiff(file, whole, pixels);
    };
    ASSERT_TRUE(decode_tiff(good, whole, pixels).ok());
    EXPECT_EQ(changed(4, 4, 2).code, DecodeCode::corrupt);                   // offsets of 4 bytes
    EXPECT_EQ(changed(6, 1, 2).code, DecodeCode::corrupt);                   // must be 0
    EXPECT_EQ(changed(8, ~uint64_t{0} - 4, 8).code, DecodeCode::truncated);  // the directory
    EXPECT_EQ(changed(directory, ~uint64_t{0}, 8).code, DecodeCode::truncated);  // its entries
    EXPECT_EQ(changed(directory, 0, 8).code, DecodeCode::corrupt);
    for (uint64_t i = 0; i < number(directory, 8); ++i) {
      const size_t entry = directory + 8 + 20 * i;
      EXPECT_FALSE(changed(entry + 4, ~uint64_t{0}, 8).ok() && number(entry, 2) == 273);
      if (number(entry, 2) == 273 || number(entry, 2) == 279) {  // where the strip is, its bytes
        EXPECT_EQ(changed(entry + 12, ~uint64_t{0}, 8).code, DecodeCode::truncated);
      }
      if (number(entry, 2) == 256) {
        Bytes file = good;
        put(file, entry + 2, 16, 2);  // a number of 64 bits
        put(file, entry + 12, kind.size.width, 8);
        EXPECT_TRUE(decode_tiff(file, whole, pixels).ok());
        put(file, entry + 12, uint64_t{1} << 33 | 9, 8);
        EXPECT_FALSE(decode_tiff(file, whole, pixels).ok());
      }
    }
  }
}

}  // namespace
}  // namespace stoker
