#include "decode/jpeg/crop_samples.h"

#include <algorithm>
#include <cstring>

namespace stoker {

Box mcus_of(const JpegFrame& jpeg, const NeededSamples& needed) {
  int left = jpeg.mcus_across, right = 0, top = jpeg.mcus_down, bottom = 0;
  for (int c = 0; c < jpeg.component_count; ++c) {
    const JpegComponent& component = jpeg.components[c];
    left = std::min(left, needed.across[c].begin / (8 * component.across));
    right = std::max(right, units_of(needed.across[c].end, 8 * component.across));
    top = std::min(top, needed.down[c].begin / (8 * component.down));
    bottom = std::max(bottom, units_of(needed.down[c].end, 8 * component.down));
  }
  return {left, top, right - left, bottom - top};
}

int checked_mcu_rows(const JpegFrame& jpeg, int last_pixel, const Box& mcus) {
  const int context =
      jpeg.max_down > 1 ? (last_pixel / jpeg.max_down + 1) * jpeg.max_down : last_pixel;
  const int read = std::max(context / jpeg.mcu_height() + 1, mcus.y + mcus.height);
  return std::min(units_of(read, jpeg.rows_together) * jpeg.rows_together, jpeg.mcus_down);
}

void CropSamples::plan(const JpegFrame& jpeg, const Box& mcus) {
  jpeg_ = &jpeg;
  mcus_ = mcus;
  count_ = 0;
  coefficient_count_ = sample_count_ = 0;
}

void CropSamples::add_plane(int spare_columns, int strips_kept) {
  const JpegComponent& component = jpeg_->components[count_];
  SamplePlane& plane = planes_[count_++];
  plane.across = component.across;
  plane.down = component.down;
  plane.quant = component.quant;
  plane.groups = units_of(mcus_.width * plane.across, kBlockGroup);
  plane.columns = plane.groups * kBlockGroup * 8 + spare_columns;
  plane.strips = units_of(mcus_.height * plane.down * 8, kStripRows);
  plane.buffers = strips_kept;
  plane.first = {mcus_.x * plane.across * 8, mcus_.y * plane.down * 8};
  plane.coefficients = static_cast<int64_t>(coefficient_count_);
  plane.samples = static_cast<int64_t>(sample_count_);
  coefficient_count_ += static_cast<size_t>(plane.down) * plane.groups * kBlockGroup * kBlockSize;
  sample_count_ += static_cast<size_t>(strips_kept) * plane.columns * kStripRows;
}

void CropSamples::begin_row(ScanReader& reader, RowSlot slot) {
  std::memset(coefficients(slot), 0, coefficient_count_ * sizeof(int16_t));
  for (int c = 0; c < count_; ++c) {
    const SamplePlane& plane = planes_[c];
    int16_t* to = coefficients(slot) + plane.coefficients;
    rows_[static_cast<int>(slot)][c] = to;
    for (int r = 0; r < plane.down; ++r) {
      reader.set_coefficients(c, r, to);
      to += plane.groups * kBlockGroup * kBlockSize;
    }
  }
}

void CropSamples::begin_row(CropCoefficients& complete, int row) {
  for (int c = 0; c < count_; ++c) {
    rows_[static_cast<int>(RowSlot::first)][c] = complete.row(c, row * planes_[c].down);
  }
}

bool CropSamples::finish_row(int row, RowSlot slot) {
  bool is_of_picture = true;
  for (int c = 0; c < count_; ++c) {
    const SamplePlane& plane = planes_[c];
    const int16_t* from = rows_[static_cast<int>(slot)][c];
    for (int y = row * plane.down; y < (row + 1) * plane.down; ++y) {
      is_of_picture &= inverse_dct(from, plane.groups, jpeg_->quant[plane.quant],
                                   strip(c, y / kStripBlocks) + y % kStripBlocks * 8);
      from += plane.groups * kBlockGroup * kBlockSize;
    }
  }
  return is_of_picture;
}

}  // namespace stoker
