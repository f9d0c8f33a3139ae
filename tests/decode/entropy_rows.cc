#include "tests/decode/entropy_rows.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "decode/jpeg/entropy_decoder.h"
#include "tests/decode/jpeg_maker.h"

namespace stoker {
namespace {

constexpr int kRowSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}};

}  // namespace

void expect_row(const BaselineJpeg& jpeg, RowBuffer& buffer, const Coefficients& expected, int row,
                int left, int width) {
  for (int c = 0; c < jpeg.component_count; ++c) {
    const JpegComponent& component = jpeg.components[c];
    for (int r = 0; r < component.down; ++r) {
      const size_t y = static_cast<size_t>(row * component.down + r);
      if (y >= expected[c].size()) continue;  // padding, which libjpeg does not keep
      for (int b = 0; b < width * component.across; ++b) {
        const size_t x = static_cast<size_t>(left * component.across + b);
        if (x >= expected[c][y].size()) continue;
        const int16_t* block = buffer.row(c, r) + coefficient_offset(static_cast<size_t>(b));
        for (int i = 0; i < kBlockSize; ++i) {
          ASSERT_EQ(block[i / 8 * 8 * kBlockGroup + i % 8], expected[c][y][x][i])
              << "component " << c << " block " << x << "," << y << " coefficient " << i;
        }
      }
    }
  }
}

void for_each_coding(const FileCheck& check) {
  uint32_t seed = 0;
  for (const auto& sampling : kRowSamplings) {
    for (const int quality : {15, 75, 95, 100}) {
      JpegKind kind{.quality = quality, .sampling_x = sampling[0], .sampling_y = sampling[1]};
      const Size size{40 + static_cast<int>(seed * 37 % 150),
                      24 + static_cast<int>(seed * 53 % 90)};
      const std::vector<uint8_t> file = make_jpeg(size, kind, ++seed);
      for (const int interval : {0, 1, 3, 100}) {
        SCOPED_TRACE(describe(kind) + " restart " + std::to_string(interval));
        check(recode_jpeg(file, {interval, seed % 2 == 0}), seed);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

std::vector<uint8_t> make_noise() {
  JpegKind kind{.quality = 100};
  std::vector<uint8_t> file = make_jpeg({120, 80}, kind, 3);
  Coefficients coefficients = read_coefficients(file);
  int full = 0;
  for (const auto& row : coefficients[0]) {
    for (const auto& block : row) full += block[63] != 0;
  }
  EXPECT_GT(full, 20);
  return file;
}

void for_each_real_file(const FileCheck& check) {
  const char* data = std::getenv("STOKER_DATA");
  if (data == nullptr) GTEST_SKIP() << "STOKER_DATA is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (!entry.is_regular_file() || files == 60) continue;
    const std::vector<uint8_t> file = read_file(entry.path());
    BaselineJpeg jpeg;
    if (!parse_baseline(file, jpeg)) continue;
    SCOPED_TRACE(entry.path());
    check(file, static_cast<uint32_t>(++files));
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(files, 0) << data << " holds no baseline JPEG";
}

}  // namespace stoker
