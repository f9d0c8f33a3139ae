// PNG against libpng: every kind of pixels, whole and in part, intact and damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/png_reference.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

struct PngAnswer {
  DecodeStatus status;
  Bytes pixels;
};

PngAnswer decode_png(ImageDecoder& decoder, const Bytes& file, Box crop) {
  Pixels out({crop.width, crop.height}, 5);
  PngAnswer answer;
  answer.status = decoder.decode(file, plain_crop(crop), out.view());
  answer.pixels = out.packed();
  EXPECT_TRUE(out.gaps_intact());
  return answer;
}

Bytes png_part(const Bytes& pixels, Size size, Box crop) {
  Bytes part;
  for (int y = crop.y; y < crop.y + crop.height; ++y) {
    const uint8_t* row = pixels.data() + 3 * (static_cast<size_t>(y) * size.width + crop.x);
    part.insert(part.end(), row, row + 3 * static_cast<size_t>(crop.width));
  }
  return part;
}

PngKind random_kind(std::mt19937& random) {
  struct Depths {
    int colours;
    std::vector<int> bits;
  };
  static const Depths kDepths[] = {
      {0, {1, 2, 4, 8, 16}}, {2, {8, 16}}, {3, {1, 2, 4, 8}}, {4, {8, 16}}, {6, {8, 16}}};
  const Depths& depths = kDepths[random() % 5];
  PngKind kind;
  kind.size = {1 + static_cast<int>(random() % 50), 1 + static_cast<int>(random() % 50)};
  kind.colours = depths.colours;
  kind.bits = depths.bits[random() % depths.bits.size()];
  kind.is_interlaced = random() % 3 == 0;
  kind.level = static_cast<int>(random() % 10);
  kind.strategy = static_cast<int>(random() % 5);
  kind.piece = random() % 3 == 0 ? 0 : 1 + random() % 300;
  kind.filter = static_cast<int>(random() % 8) - 3;
  if (kind.filter < 0) kind.filter = -1;
  if (kind.colours == 3 && random() % 2 == 0) kind.palette = 1 + static_cast<int>(random() % 256);
  kind.is_smooth = random() % 4 != 0;
  return kind;
}

TEST(Png, KindsOfPixelsAreLibpngs) {
  std::mt19937 random(1);
  ImageDecoder decoder;
  for (uint32_t round = 0; round < 1'500; ++round) {
    const PngKind kind = random_kind(random);
    SCOPED_TRACE(::testing::Message()
                 << round << ": colours " << kind.colours << ", bits " << kind.bits << ", "
                 << kind.size.width << "x" << kind.size.height << ", interlaced "
                 << kind.is_interlaced << ", filter " << kind.filter);
    const Bytes file = make_png(kind, round);
    const PngReference expected = read_png_reference(file);
    ASSERT_TRUE(expected.is_read) << expected.problem;
    const Box whole{0, 0, kind.size.width, kind.size.height};
    for (const Box& crop : {whole, random_box(kind.size, random), random_box(kind.size, random)}) {
      const PngAnswer found = decode_png(decoder, file, crop);
      ASSERT_TRUE(found.status.ok()) << found.status.message;
      ASSERT_EQ(found.pixels, png_part(expected.pixels, kind.size, crop));
    }
  }
}

// Changes the chunks in ways that leave all ends right.
void damage_chunk(std::vector<PngChunk>& chunks, std::mt19937& random) {
  PngChunk& chunk = chunks[random() % chunks.size()];
  switch (random() % 9) {
    case 0:
    case 1:
    case 2:
      if (!chunk.data.empty()) {
        chunk.data[random() % chunk.data.size()] ^= static_cast<uint8_t>(1u << random() % 8);
      }
      break;
    case 3:
      if (!chunk.data.empty()) chunk.data.resize(random() % chunk.data.size());
      break;
    case 4:
      chunk.data.insert(chunk.data.end(), 1 + random() % 9, static_cast<uint8_t>(random()));
      break;
    case 5:
      std::swap(chunk, chunks[random() % chunks.size()]);
      break;
    case 6: {
      static const char* const kNames[] = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA",
                                           "CgBI", "ABCD", "abcd", "ab1d", "eXIf"};
      chunk.name = kNames[random() % std::size(kNames)];
      break;
    }
    case 7: {
      const PngChunk copy = chunk;
      chunks.insert(chunks.begin() + static_cast<ptrdiff_t>(random() % chunks.size()), copy);
      break;
    }
    default:
      chunks.erase(chunks.begin() + static_cast<ptrdiff_t>(random() % chunks.size()));
      break;
  }
}

// Files that we accept libpng accepts with the same pixels. Those that it accepts we accept, but
// for an end of the data that is not right: libpng sees that or not, depending on where the chunks
// end.
TEST(Png, DamagedFilesGetLibpngsVerdict) {
  std::mt19937 random(2);
  ImageDecoder decoder({.max_pixels = 1'000'000});
  int accepted = 0, refused = 0, ends = 0;
  for (uint32_t round = 0; round < 8'000; ++round) {
    PngKind kind = random_kind(random);
    if (round % 2 == 0) kind.piece = 0;
    std::vector<PngChunk> chunks = split_png(make_png(kind, round));
    for (int times = 1 + static_cast<int>(random() % 2); times > 0 && !chunks.empty(); --times) {
      damage_chunk(chunks, random);
    }
    const Bytes file = join_png(chunks);
    ImageInfo info;
    if (!decoder.info(file, info).ok()) continue;
    const PngAnswer found = decode_png(decoder, file, {0, 0, info.size.width, info.size.height});
    if (found.status.code == DecodeCode::truncated) continue;  // without its end; libpng reads it
    const PngReference expected = read_png_reference(file);
    if (found.status.ok()) {
      ASSERT_TRUE(expected.is_read) << round << ": libpng says " << expected.problem;
      ASSERT_EQ(found.pixels, expected.pixels) << round;
      ++accepted;
    } else if (expected.is_read) {
      ASSERT_EQ(found.status.message, "a PNG whose data end badly or have a wrong checksum")
          << round;
      ++ends;
    } else {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1'200);
  EXPECT_GT(refused, 1'500);
  EXPECT_LT(ends, 400);
}

// Files with a wrong header are refused before anything is allocated, and libpng refuses them, too.
TEST(Png, BadHeaders) {
  const Bytes good = make_png({}, 1);
  constexpr std::pair<size_t, uint8_t> kBad[] = {{8, 3},  {8, 7},  {9, 1}, {9, 5},
                                                 {10, 1}, {11, 1}, {12, 2}};
  for (const auto& [at, value] : kBad) {
    std::vector<PngChunk> chunks = split_png(good);
    chunks[0].data[at] = value;
    const Bytes file = join_png(chunks);
    ImageInfo info;
    EXPECT_EQ(ImageDecoder().info(file, info).code, DecodeCode::corrupt) << at;
    EXPECT_FALSE(read_png_reference(file).is_read) << at;
  }
}

// The data below a crop are not looked at; a crop that needs them sees the damage.
TEST(Png, RowsBelowTheCropAreNotDecoded) {
  PngKind kind{.size = {300, 400}, .piece = 500};
  std::vector<PngChunk> chunks = split_png(make_png(kind, 3));
  const Bytes intact = join_png(chunks);
  for (size_t i = chunks.size() * 6 / 10; i + 1 < chunks.size(); ++i) {
    std::fill(chunks[i].data.begin(), chunks[i].data.end(), 0xff);
  }
  const Bytes broken = join_png(chunks);
  ImageDecoder decoder;
  const Box upper{10, 20, 100, 160};
  const PngAnswer expected = decode_png(decoder, intact, upper),
                  found = decode_png(decoder, broken, upper);
  ASSERT_TRUE(found.status.ok()) << found.status.message;
  EXPECT_EQ(found.pixels, expected.pixels);
  EXPECT_EQ(decode_png(decoder, broken, {10, 300, 10, 10}).status.code, DecodeCode::corrupt);
}

// A checksum that is wrong is seen where all rows are read.
TEST(Png, ChecksumOfThePixels) {
  std::vector<PngChunk> chunks = split_png(make_png({.size = {30, 30}}, 4));
  chunks[1].data.back() ^= 1;
  const Bytes file = join_png(chunks);
  ImageDecoder decoder;
  EXPECT_EQ(decode_png(decoder, file, {0, 0, 30, 30}).status.code, DecodeCode::corrupt);
  EXPECT_TRUE(decode_png(decoder, file, {0, 0, 30, 29}).status.ok());
}

// A few bytes that would become many: they are read in small memory, or there are too many pixels.
TEST(Png, Bombs) {
  const PngKind kind{.size = {20'000, 8'000}, .colours = 0, .bits = 1, .level = 9, .filter = 0};
  std::vector<PngChunk> chunks =
      split_png(make_png({.size = kind.size, .colours = 0, .bits = 1}, 1));
  chunks[1].data = deflate(Bytes(8'000 * 2'501), 9, 0);
  const Bytes file = join_png(chunks);
  ASSERT_LT(file.size(), 30'000u);
  ImageDecoder small({.max_pixels = 1'000'000});
  EXPECT_EQ(decode_png(small, file, {0, 0, 10, 10}).status.code, DecodeCode::too_large);
  ImageDecoder decoder;
  Pixels out({20, 20});
  ASSERT_TRUE(
      decoder.decode(file, {{0, 0, 20'000, 8'000}, {20, 20}, {0, 0, 20, 20}}, out.view()).ok());
  EXPECT_EQ(out.packed(), Bytes(1'200, 0));
  EXPECT_LT(decoder.scratch_bytes(), 10'000'000);
}

}  // namespace
}  // namespace stoker
