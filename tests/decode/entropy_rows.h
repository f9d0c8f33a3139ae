// Shared by the tests of the entropy decoder: their files, and the coefficients of a row of MCUs
// beside libjpeg's. Errors: as failures of the running test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "decode/aligned_buffer.h"
#include "decode/jpeg/scan_reader.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {

// The coefficients of one row of MCUs of every component.
class RowBuffer {
 public:
  RowBuffer(const BaselineJpeg& jpeg, int mcus) : jpeg_(jpeg) {
    for (int c = 0; c < jpeg.component_count; ++c) {
      const JpegComponent& component = jpeg.components[c];
      groups_[c] = (mcus * component.across + kBlockGroup - 1) / kBlockGroup;
      begins_[c] = size_;
      size_ += static_cast<size_t>(groups_[c]) * component.down * kBlockGroup * kBlockSize;
    }
    data_.grow(size_);
  }
  void attach(ScanReader& reader) {
    std::fill_n(data_.data(), size_, int16_t{0});
    for (int c = 0; c < jpeg_.component_count; ++c) {
      for (int r = 0; r < jpeg_.components[c].down; ++r) reader.set_coefficients(c, r, row(c, r));
    }
  }
  int16_t* row(int c, int r) {
    return data_.data() + begins_[c] +
           static_cast<size_t>(groups_[c]) * r * kBlockGroup * kBlockSize;
  }

 private:
  const BaselineJpeg& jpeg_;
  int groups_[3];
  size_t begins_[3];
  size_t size_ = 0;
  AlignedBuffer<int16_t> data_;
};

// Compares the MCUs [left, left + width) of a row.
void expect_row(const BaselineJpeg& jpeg, RowBuffer& buffer, const Coefficients& expected, int row,
                int left, int width);

using FileCheck = std::function<void(const std::vector<uint8_t>& file, uint32_t seed)>;

// Calls check() for files of all samplings, qualities, restart intervals and kinds of tables, until
// one fails.
void for_each_coding(const FileCheck& check);

// Returns a file of noise at quality 100: the last coefficient of many blocks is not zero, so
// blocks end without an end-of-block code, and values are long.
std::vector<uint8_t> make_noise();

// Calls check() for real files, until one fails. Skips the test without STOKER_DATA.
void for_each_real_file(const FileCheck& check);

}  // namespace stoker
