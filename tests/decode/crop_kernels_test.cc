// The SIMD kernels of CropDecoder: every instruction set gives the bytes of the plain twins, for
// any input; and the inverse DCT gives libjpeg's samples.
#include <gtest/gtest.h>

#include <random>

#include "decode/aligned_buffer.h"
#include "decode/jpeg/idct_kernels.h"
#include "decode/resize/planar_resize.h"
#include "tests/decode/every_target.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

using CropKernels = EveryTarget;

TEST_P(CropKernels, InverseDctIsThePlainTwins) {
  constexpr int kGroups = 5;
  constexpr size_t kCount = size_t{kGroups} * kBlockGroup * kBlockSize;
  AlignedBuffer<int16_t> coefficients, quant;
  coefficients.grow(kCount);
  quant.grow(kBlockSize);
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    // From coefficients of pictures to those that only a malicious file has.
    const int range = 1 << (trial % 17);
    const auto draw = [&] { return static_cast<int>(random() % (2 * range)) - range; };
    for (size_t i = 0; i < kCount; ++i) {
      coefficients.data()[i] = random() % 3 == 0 ? static_cast<int16_t>(draw()) : int16_t{0};
    }
    for (int i = 0; i < kBlockSize; ++i) {
      quant.data()[i] = static_cast<int16_t>(random() % (trial % 2 != 0 ? 65536 : 64));
    }
    std::vector<uint8_t> fast(size_t{kGroups} * kBlockGroup * 8 * kStripRows, 0xA5), plain = fast;
    const bool fits = inverse_dct(coefficients.data(), kGroups, quant.data(), fast.data());
    ASSERT_EQ(fits,
              inverse_dct_reference(coefficients.data(), kGroups, quant.data(), plain.data()));
    ASSERT_EQ(fast, plain) << trial;
  }
}

TEST_P(CropKernels, InverseDctIsLibjpegs) {
  JpegKind kind;
  for (const int quality : {10, 50, 90, 100}) {
    kind.quality = quality;
    const std::vector<uint8_t> file = make_jpeg({61, 35}, kind, static_cast<uint32_t>(quality));
    const Coefficients blocks = read_coefficients(file);
    const Samples samples = read_samples(file);
    BaselineJpeg jpeg;
    ASSERT_TRUE(parse_baseline(file, jpeg));
    for (size_t c = 0; c < 3; ++c) {
      for (size_t row = 0; row < blocks[c].size(); ++row) {
        const size_t count = blocks[c][row].size();
        const size_t groups = (count + kBlockGroup - 1) / kBlockGroup;
        AlignedBuffer<int16_t> in;
        in.grow(groups * kBlockGroup * kBlockSize);
        for (size_t b = 0; b < count; ++b) {
          for (size_t i = 0; i < kBlockSize; ++i) {
            in.data()[coefficient_offset(b) + i / 8 * 8 * kBlockGroup + i % 8] =
                blocks[c][row][b][i];
          }
        }
        std::vector<uint8_t> out(groups * kBlockGroup * 8 * kStripRows);
        EXPECT_TRUE(inverse_dct(in.data(), static_cast<int>(groups),
                                jpeg.quant[jpeg.components[c].quant], out.data()));
        for (size_t x = 0; x < 8 * count; ++x) {
          for (size_t y = 0; y < 8; ++y) {
            ASSERT_EQ(out[x * kStripRows + y], samples[c][8 * row + y][x])
                << "quality " << quality << " component " << c << " at " << x << "," << y;
          }
        }
      }
    }
  }
}

TEST_P(CropKernels, ResizeOfStripsIsThePlainTwins) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 120; ++trial) {
    PlanarAxisKey key;
    key.crop_begin = static_cast<int>(random() % 50);
    key.crop_size = 1 + static_cast<int>(random() % 500);
    key.resized = 1 + static_cast<int>(random() % 300);
    key.window_count = 1 + static_cast<int>(random() % key.resized);
    key.window_begin = static_cast<int>(random() % (key.resized - key.window_count + 1));
    key.mirrored = random() % 2 != 0;
    key.factor = 1 << random() % 3;
    key.upsampling = key.factor == 2 ? Upsampling::triangle : Upsampling::replicate;
    key.plane_size = (key.crop_begin + key.crop_size + key.factor - 1) / key.factor + 2;
    PlanarAxis axis;
    if (!build_planar_axis(key, axis)) continue;
    const int first = axis.source_begin / 8 * 8;
    const size_t columns = static_cast<size_t>(axis.source_end - first + axis.max_taps);
    std::vector<uint8_t> strip(columns * kStripRows);
    for (uint8_t& sample : strip) {
      sample = trial % 4 == 0 ? uint8_t{255} : static_cast<uint8_t>(random());
    }
    const int stride = padded_row(axis.padded_count);
    std::vector<int16_t> fast(static_cast<size_t>(stride) * kStripRows, 77), plain = fast;
    resize_strip(strip.data(), first, axis, fast.data(), stride);
    resize_strip_reference(strip.data(), first, axis, plain.data(), stride);
    ASSERT_EQ(fast, plain) << trial;
  }
}

TEST_P(CropKernels, ColouredRowsAreThePlainTwins) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    constexpr int kRows = 6;
    ColourPlanes planes;
    planes.plane_count = trial % 3 == 0 ? 1 : 3;
    planes.count = kRowPadding * (1 + trial % 4);
    std::vector<int16_t> rows(static_cast<size_t>(planes.count) * kRows * 3);
    for (int16_t& value : rows) {
      value = static_cast<int16_t>(trial % 5 == 0 ? random() % 2 * 32640 : random() % 32641);
    }
    for (int c = 0; c < planes.plane_count; ++c) {
      const int factor = c == 0 ? 1 + trial % 2 : 1 << random() % 3;
      planes.planes[c] = {rows.data() + c * kRows * planes.count,
                          planes.count,
                          10 / factor,
                          12,
                          factor,
                          factor == 2 ? Upsampling::triangle : Upsampling::replicate};
    }
    if (trial % 4 == 1) planes.rounding[0] = planes.rounding[1] = chroma_rounding({}, true, 0);
    if (trial % 4 == 2) {
      for (const int y : {0, 1}) {
        planes.rounding[y] = chroma_rounding({Upsampling::triangle}, trial % 8 == 2, y);
      }
    }
    const int begin = 12, end = 12 + 3;
    std::vector<uint8_t> fast(9 * static_cast<size_t>(planes.count), 0xA5), plain = fast;
    colour_rows(planes, begin, end, fast.data());
    colour_rows_reference(planes, begin, end, plain.data());
    ASSERT_EQ(fast, plain) << trial;
  }
}

TEST_P(CropKernels, ResizedRowsAreThePlainTwins) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    PlanarAxisKey key;
    key.crop_begin = static_cast<int>(random() % 50);
    key.crop_size = 1 + static_cast<int>(random() % 90);
    key.resized = trial % 5 == 0 ? key.crop_size : 1 + static_cast<int>(random() % 90);
    key.window_count = key.resized;
    key.plane_size = key.crop_begin + key.crop_size;
    PlanarAxis down;
    ASSERT_TRUE(build_planar_axis(key, down));
    const int width = 1 + static_cast<int>(random() % 100);
    const int planes = trial % 2 == 0 ? 1 : 3;
    const int count = padded_row(width);
    const int begin = down.source_begin;
    std::vector<uint8_t> rows(static_cast<size_t>(down.source_end - begin) * planes * count);
    for (uint8_t& value : rows) {
      value = static_cast<uint8_t>(trial % 3 == 0 ? random() % 2 * 255 : random());
    }
    Pixels fast({width, key.window_count}, 5), plain({width, key.window_count}, 5);
    const int height = fast.view().height, part = height / 3;
    resize_rows(rows.data(), planes, count, down, begin, {part, height}, fast.view());
    resize_rows(rows.data(), planes, count, down, begin, {0, part}, fast.view());
    resize_rows_reference(rows.data(), planes, count, down, begin, {0, height}, plain.view());
    ASSERT_TRUE(fast.gaps_intact());
    ASSERT_EQ(fast.packed(), plain.packed()) << trial;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, CropKernels, every_target(), target_name);

}  // namespace
}  // namespace stoker
