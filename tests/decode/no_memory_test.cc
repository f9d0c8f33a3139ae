// A decoder keeps no state: its result for a file does not depend on the files before it. Every
// pair of formats occurs here; tests/fuzz/decoder_pair_fuzz.cc searches for pairs that nobody
// thought of.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <random>

#include "decode/image_decoder.h"
#include "tests/decode/odd_files.h"
#include "tests/decode/pixels.h"
#include "tests/decode/random_spec.h"

namespace stoker {
namespace {

struct MemoryAnswer {
  DecodeStatus status;
  std::vector<uint8_t> pixels;  // empty unless ok
};

// `fill` is the content of the output before, so that unwritten bytes are noticed.
MemoryAnswer decode_answer(ImageDecoder& decoder, const OddFile& file, const CropSpec& spec,
                           uint8_t fill) {
  Pixels out({spec.window.width, spec.window.height});
  std::fill_n(out.view().data, out.view().stride_bytes * out.size().height, fill);
  MemoryAnswer answer;
  answer.status = decoder.decode(file.bytes, spec, out.view());
  if (answer.status.ok()) answer.pixels = out.packed();
  return answer;
}

// Returns a spec for the whole image, or for a part that is resized.
CropSpec spec_of(ImageDecoder& decoder, const OddFile& file, bool whole) {
  ImageInfo info;
  if (!decoder.info(file.bytes, info).ok()) return {{0, 0, 9, 9}, {9, 9}, {0, 0, 9, 9}};
  const Size size = info.size;
  if (whole) return plain_crop({0, 0, size.width, size.height});
  const Box crop = {size.width / 5, size.height / 4, (size.width + 1) / 2, (size.height + 2) / 3};
  return {crop, {24, 24}, {0, 0, 24, 24}, true};
}

std::vector<OddFile> all_files() {
  std::vector<OddFile> files = jpegs_without_tables();
  uint32_t seed = 1;
  for (const OddFile& file : golden_images(STOKER_GOLDEN_DIR)) {
    files.push_back(file);
    const std::vector<OddFile> copies = damaged(file, 12, seed++);
    files.insert(files.end(), copies.begin(), copies.end());
  }
  return files;
}

class NoMemory : public ::testing::TestWithParam<std::tuple<PixelPolicy, ExifPolicy>> {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }  // some codecs print
  void TearDown() override {
    mallopt(M_PERTURB, 0);
    ::testing::internal::GetCapturedStderr();
  }
};

// Decodes in two orders. malloc fills its memory with other bytes in each, so that unwritten memory
// is noticed, too.
TEST_P(NoMemory, WhateverWasDecodedBefore) {
  const auto [pixels, exif] = GetParam();
  const DecodeOptions options{.pixels = pixels, .exif = exif, .max_pixels = 1 << 20};
  const std::vector<OddFile> files = all_files();
  std::vector<std::pair<size_t, bool>> order;
  std::vector<MemoryAnswer> fresh(2 * files.size());
  mallopt(M_PERTURB, 0x55);
  for (size_t i = 0; i < files.size(); ++i) {
    for (const bool whole : {false, true}) {
      ImageDecoder decoder(options);
      const CropSpec spec = spec_of(decoder, files[i], whole);
      fresh[2 * i + whole] = decode_answer(decoder, files[i], spec, 0x11);
      order.push_back({i, whole});
    }
  }
  EXPECT_GT(std::count_if(fresh.begin(), fresh.end(), [](auto& a) { return a.status.ok(); }), 200);
  ImageDecoder used(options);
  std::mt19937 random(3);
  for (const int perturb : {0xA3, 0x0F}) {
    mallopt(M_PERTURB, perturb);
    std::shuffle(order.begin(), order.end(), random);
    const OddFile* before = &files[0];
    for (const auto& [i, whole] : order) {
      SCOPED_TRACE(files[i].name + (whole ? " whole" : " a part") + " after " + before->name);
      const MemoryAnswer& expected = fresh[2 * i + whole];
      const MemoryAnswer found =
          decode_answer(used, files[i], spec_of(used, files[i], whole), 0xEE);
      EXPECT_EQ(to_string(found.status.code), to_string(expected.status.code))
          << found.status.message << "; alone: " << expected.status.message;
      EXPECT_EQ(found.status.message, expected.status.message);
      EXPECT_EQ(found.status.byte_offset, expected.status.byte_offset);
      EXPECT_TRUE(found.pixels == expected.pixels);
      before = &files[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, NoMemory,
    ::testing::Combine(::testing::Values(PixelPolicy::exact, PixelPolicy::exact_pillow12,
                                         PixelPolicy::fast),
                       ::testing::Values(ExifPolicy::ignore, ExifPolicy::apply)));

TEST(NoMemoryOfJpegTables, JpegsWithoutHuffmanTablesHaveTheStandards) {
  ImageDecoder decoder;
  std::vector<uint8_t> whole;
  int without = 0;
  for (const OddFile& file : jpegs_without_tables()) {
    if (file.name.find("progressive") != std::string::npos) continue;
    SCOPED_TRACE(file.name);
    const MemoryAnswer answer = decode_answer(decoder, file, plain_crop({0, 0, 45, 38}), 0);
    if (file.name.find("no_quantisation_tables") != std::string::npos) {
      EXPECT_EQ(answer.status.code, DecodeCode::corrupt);
      continue;
    }
    ASSERT_TRUE(answer.status.ok()) << answer.status.message;
    const bool is_whole =
        file.name.find("_no_") == std::string::npos && file.name.find("_own_") == std::string::npos;
    if (is_whole) {
      whole = answer.pixels;
    } else {
      EXPECT_TRUE(answer.pixels == whole);
      ++without;
    }
  }
  EXPECT_EQ(without, 12);
}

}  // namespace
}  // namespace stoker
