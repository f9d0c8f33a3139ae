// The SIMD kernels of the policy `exact`: every instruction set gives the bytes of the plain twins,
// for any samples.

// So that the list of instruction sets has the one with AVX-512 VNNI, which exact_resize.cc uses.
#define HWY_WANT_AVX3_DL

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "decode/aligned_buffer.h"
#include "decode/jpeg/exact_colours.h"
#include "decode/resize/exact_resize.h"
#include "tests/decode/every_target.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

using ExactKernels = EveryTarget;

void fill_random(AlignedBuffer<uint8_t>& buffer, size_t count, int extremes, std::mt19937& random) {
  buffer.grow(count);
  for (size_t i = 0; i < count; ++i) {
    buffer.data()[i] = static_cast<uint8_t>(extremes != 0 ? random() % 2 * 255 : random());
  }
}

TEST_P(ExactKernels, ColoursAreThePlainTwins) {
  std::mt19937 random(1);
  constexpr int kMax = 40;
  AlignedBuffer<uint8_t> luma, chroma[2], out;
  AlignedBuffer<int16_t> scratch;
  constexpr size_t kColumn = kStripRows;
  for (int trial = 0; trial < 240; ++trial) {
    ColourStrip strip;
    strip.samples = 1 + static_cast<int>(random() % kMax);
    strip.halves_across = trial % 2 != 0;
    strip.halves_down = trial / 2 % 2 != 0;
    strip.has_left = random() % 2 != 0;
    strip.has_right = random() % 2 != 0;
    fill_random(luma, 2 * kMax * kColumn, trial % 5 == 0, random);
    strip.luma = luma.data();
    for (int c = 0; c < 2; ++c) {
      // Two strips: the rows above and below are in the other halves.
      const size_t one = (kMax + 2) * kColumn;
      fill_random(chroma[c], 2 * one, trial % 5 == 0, random);
      const uint8_t* first = chroma[c].data() + kColumn;
      strip.chroma[c].near = first;
      if (!strip.halves_down) continue;
      const bool is_lower = random() % 2 != 0;
      strip.chroma[c].near = first + (is_lower ? 16 : 0);
      strip.chroma[c].above = is_lower ? first : first + one + 16;
      strip.chroma[c].below = is_lower ? first + one : first + 16;
    }
    const size_t bytes = static_cast<size_t>(strip.pixels()) * 3 * kColumn;
    std::vector<uint8_t> expected(bytes);
    out.grow(bytes);
    scratch.grow(colour_scratch(strip.samples));
    exact_colours(strip, scratch.data(), out.data());
    exact_colours_reference(strip, expected.data());
    ASSERT_EQ(std::vector<uint8_t>(out.data(), out.data() + bytes), expected) << trial;
  }
}

ResampleTable random_table(bool may_flip, std::mt19937& random) {
  ResampleKey key;
  key.source = 1 + static_cast<int>(random() % 200);
  key.resized = random() % 4 == 0 ? key.source : 1 + static_cast<int>(random() % 120);
  key.count = 1 + static_cast<int>(random() % static_cast<unsigned>(key.resized));
  key.begin = static_cast<int>(random() % static_cast<unsigned>(key.resized - key.count + 1));
  key.mirrored = may_flip && random() % 2 != 0;
  key.filter = static_cast<Filter>(random() % kFilterCount);
  ResampleTable table;
  build_resample_table(key, table);
  return table;
}

TEST_P(ExactKernels, AcrossIsThePlainTwin) {
  std::mt19937 random(2);
  AlignedBuffer<uint8_t> columns, rows, plain;
  for (int trial = 0; trial < 200; ++trial) {
    const ResampleTable table = random_table(true, random);
    const int planes = trial % 3 == 0 ? 1 : 3;
    const int first = table.source_begin - static_cast<int>(random() % 3);
    const size_t width = static_cast<size_t>(table.source_end - first);
    fill_random(columns, width * static_cast<size_t>(planes) * kStripRows, trial % 5 == 0, random);
    const ptrdiff_t stride =
        (table.key.count + kExactRowPadding - 1) / kExactRowPadding * kExactRowPadding;
    const size_t bytes = static_cast<size_t>(stride) * planes * kStripRows;
    rows.grow(bytes);
    plain.grow(bytes);
    exact_across(columns.data(), planes, first, table, rows.data(), stride);
    exact_across_reference(columns.data(), planes, first, table, plain.data(), stride);
    for (ptrdiff_t r = 0; r < ptrdiff_t{planes} * kStripRows; ++r) {
      const uint8_t* got = rows.data() + r * stride;
      const uint8_t* expected = plain.data() + r * stride;
      ASSERT_EQ(std::vector<uint8_t>(got, got + table.key.count),
                std::vector<uint8_t>(expected, expected + table.key.count))
          << "trial " << trial << " row " << r;
    }
  }
}

// Each weight of a box is 2^22 / 20919, rounded up by nearly a half: white sums to 256.
TEST_P(ExactKernels, ClipsTheRoundingsOfManyTaps) {
  constexpr int kSource = 2 * 20'919;
  ResampleTable table;
  build_resample_table({kSource, 2, 0, 2, false, Filter::box}, table);
  AlignedBuffer<uint8_t> columns, rows;
  columns.grow(size_t{kSource} * kStripRows);
  std::fill_n(columns.data(), size_t{kSource} * kStripRows, uint8_t{255});
  rows.grow(size_t{kExactRowPadding} * kStripRows);
  exact_across(columns.data(), 1, 0, table, rows.data(), kExactRowPadding);
  for (int r = 0; r < kStripRows; ++r) {
    EXPECT_EQ(rows.data()[r * kExactRowPadding], 255);
    EXPECT_EQ(rows.data()[r * kExactRowPadding + 1], 255);
  }
}

// A vertical pass, and where its rows begin.
struct DownCase {
  ResampleTable table;
  int planes, first, width;
  ptrdiff_t stride;
};

DownCase random_rows(int trial, AlignedBuffer<uint8_t>& rows, std::mt19937& random) {
  DownCase down{random_table(false, random), trial % 3 == 0 ? 1 : 3, 0, 0, 0};
  down.first = down.table.source_begin - static_cast<int>(random() % 3);
  down.width = 1 + static_cast<int>(random() % 90);
  down.stride = (down.width + kExactRowPadding - 1) / kExactRowPadding * kExactRowPadding;
  const size_t height = static_cast<size_t>(down.table.source_end - down.first);
  fill_random(rows, height * static_cast<size_t>(down.planes * down.stride), trial % 5 == 0,
              random);
  return down;
}

TEST_P(ExactKernels, DownIsThePlainTwin) {
  std::mt19937 random(3);
  AlignedBuffer<uint8_t> rows;
  for (int trial = 0; trial < 200; ++trial) {
    const auto [table, planes, first, width, stride] = random_rows(trial, rows, random);
    Pixels got({width, table.key.count}, 5), expected = got;
    const int half = table.key.count / 2;
    const auto ranges = {IndexRange{0, half}, IndexRange{half, table.key.count}};
    for (const IndexRange range : ranges) {
      exact_down(rows.data(), planes, stride, first, table, range, got.view());
    }
    exact_down_reference(rows.data(), planes, stride, first, table, {0, table.key.count},
                         expected.view());
    ASSERT_EQ(got.packed(), expected.packed()) << trial;
    ASSERT_TRUE(got.gaps_intact());
  }
}

TEST_P(ExactKernels, DownToStripIsThePlainTwin) {
  std::mt19937 random(4);
  AlignedBuffer<uint8_t> rows, strip, plain;
  for (int trial = 0; trial < 200; ++trial) {
    const auto [table, planes, first, width, stride] = random_rows(trial, rows, random);
    if (table.identity) continue;
    strip.grow(static_cast<size_t>(planes * stride) * kStripRows);
    plain.grow(static_cast<size_t>(planes * stride) * kStripRows);
    const int begin = static_cast<int>(random() % static_cast<unsigned>(table.key.count));
    const IndexRange outputs{begin, std::min(begin + kStripOutputs, table.key.count)};
    // The lower half of a strip must not touch the upper one.
    for (const int half : {0, kStripRows / 2}) {
      exact_down_to_strip(rows.data(), planes, stride, width, first, table, outputs,
                          strip.data() + half);
      exact_down_to_strip_reference(rows.data(), planes, stride, width, first, table, outputs,
                                    plain.data() + half);
    }
    for (int column = 0; column < planes * width; ++column) {
      for (const int half : {0, kStripRows / 2}) {
        const ptrdiff_t at = ptrdiff_t{column} * kStripRows + half;
        const int count = outputs.end - outputs.begin;
        ASSERT_TRUE(std::equal(strip.data() + at, strip.data() + at + count, plain.data() + at))
            << "trial " << trial << " column " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ExactKernels, every_target(), target_name);

}  // namespace
}  // namespace stoker
