#include "decode/crop_planes.h"

#include <algorithm>
#include <cstring>

#include "decode/idct_kernels.h"

namespace stoker {
namespace {

constexpr int kStripBlocks = kStripRows / 8;

int round_up(int value, int unit) { return (value + unit - 1) / unit; }

// A strip is resized as soon as it is whole. Only three rows of blocks may lie in two strips.
int strip_buffers(int blocks_down) { return kStripBlocks % blocks_down == 0 ? 1 : 2; }

}  // namespace

bool CropPlanes::plan_axis(const BaselineJpeg& jpeg, const CropSpec& spec, int c) {
  const JpegComponent& component = jpeg.components[c];
  const ComponentUpsampling upsampling = planes_[c].upsampling;
  for (int other = 0; other < c; ++other) {
    if (jpeg.components[other].across == component.across &&
        planes_[other].upsampling.across == upsampling.across) {
      planes_[c].axis = planes_[other].axis;
      return true;
    }
  }
  planes_[c].axis = c;
  const PlanarAxisKey across{spec.crop.x,
                             spec.crop.width,
                             spec.resized.width,
                             spec.window.x,
                             spec.window.width,
                             spec.flip,
                             jpeg.max_across / component.across,
                             upsampling.across,
                             component.size.width};
  return build_planar_axis(across, across_[c]);
}

bool CropPlanes::plan_rows(const BaselineJpeg& jpeg, const CropSpec& spec) {
  const PlanarAxisKey down{spec.crop.y,
                           spec.crop.height,
                           spec.resized.height,
                           spec.window.y,
                           spec.window.height,
                           false,
                           1,
                           Upsampling::replicate,
                           jpeg.size.height};
  const int first_column = spec.crop.x + spec.window.x + (spec.flip ? spec.window.width - 1 : 0);
  const bool is_unscaled = spec.crop.width == spec.resized.width;
  for (int y = 0; y < 2; ++y) {
    colours_.rounding[y] =
        is_unscaled ? chroma_rounding(planes_[count_ - 1].upsampling, first_column % 2 == 0, y)
                    : ChromaRounding{};
  }
  return build_planar_axis(down, down_);
}

void CropPlanes::find_mcus(const BaselineJpeg& jpeg) {
  int left = jpeg.mcus_across, right = 0, top = jpeg.mcus_down, bottom = 0;
  for (int c = 0; c < count_; ++c) {
    const Plane& plane = planes_[c];
    const PlanarAxis& across = across_[plane.axis];
    left = std::min(left, across.source_begin / (8 * plane.across));
    right = std::max(right, round_up(across.source_end, 8 * plane.across));
    top = std::min(top, colours_.planes[c].first_row(down_.source_begin) / (8 * plane.down));
    bottom =
        std::max(bottom, round_up(colours_.planes[c].end_row(down_.source_end), 8 * plane.down));
  }
  mcus_ = {left, top, right - left, bottom - top};
  // libjpeg's upsampling may look at the next row of samples, and it reads some files several MCU
  // rows at once.
  const int last_pixel = down_.last_pixel_end - 1;
  const int context =
      jpeg.max_down > 1 ? (last_pixel / jpeg.max_down + 1) * jpeg.max_down : last_pixel;
  const int read = std::max(context / jpeg.mcu_height() + 1, bottom);
  checked_rows_ = std::min(round_up(read, jpeg.rows_together) * jpeg.rows_together, jpeg.mcus_down);
}

void CropPlanes::lay_out() {
  coefficient_count_ = sample_count_ = row_count_ = 0;
  row_stride_ = padded_row(across_[0].padded_count);
  for (int c = 0; c < count_; ++c) {
    Plane& plane = planes_[c];
    plane.groups = round_up(mcus_.width * plane.across, kBlockGroup);
    plane.columns = plane.groups * kBlockGroup * 8 + across_[plane.axis].max_taps;
    plane.strips = round_up(mcus_.height * plane.down * 8, kStripRows);
    plane.first = {mcus_.x * plane.across * 8, mcus_.y * plane.down * 8};
    plane.coefficients = coefficient_count_;
    plane.samples = sample_count_;
    plane.rows = row_count_;
    coefficient_count_ += int64_t{plane.down} * plane.groups * kBlockGroup * kBlockSize;
    sample_count_ += int64_t{strip_buffers(plane.down)} * plane.columns * kStripRows;
    row_count_ += int64_t{plane.strips} * kStripRows * row_stride_;
  }
  pixel_count_ = int64_t{down_.source_end - down_.source_begin} * count_ * row_stride_;
}

// Buffers keep the size of the largest image that they met, which need not be the same one for all.
bool CropPlanes::reserve() {
  const int64_t need = 2 * coefficient_count_ + sample_count_ + 2 * row_count_ + pixel_count_;
  if (need > kMaxPlaneScratch) return false;
  const auto coefficients = static_cast<size_t>(coefficient_count_);
  const auto samples = static_cast<size_t>(sample_count_);
  const auto rows = static_cast<size_t>(row_count_);
  const auto pixels = static_cast<size_t>(pixel_count_);
  if (coefficients_.bytes_with(coefficients) + samples_.bytes_with(samples) +
          rows_.bytes_with(rows) + pixels_.bytes_with(pixels) >
      kMaxPlaneScratch) {
    coefficients_.release();
    samples_.release();
    rows_.release();
    pixels_.release();
  }
  coefficients_.grow(coefficients);
  samples_.grow(samples);
  rows_.grow(rows);
  pixels_.grow(pixels);
  return true;
}

bool CropPlanes::plan(const BaselineJpeg& jpeg, const CropSpec& spec) {
  jpeg_ = &jpeg;
  count_ = jpeg.component_count;
  for (int c = 0; c < count_; ++c) {
    const JpegComponent& component = jpeg.components[c];
    planes_[c] = {};
    planes_[c].across = component.across;
    planes_[c].down = component.down;
    planes_[c].quant = component.quant;
    planes_[c].upsampling = upsampling_of(jpeg, component);
    PlaneRows& rows = colours_.planes[c];
    rows.height = component.size.height;
    rows.factor = jpeg.max_down / component.down;
    rows.upsampling = planes_[c].upsampling.down;
    if (!plan_axis(jpeg, spec, c)) return false;
  }
  if (!plan_rows(jpeg, spec)) return false;
  find_mcus(jpeg);
  lay_out();
  return reserve();
}

void CropPlanes::begin_row(ScanReader& reader) {
  std::memset(coefficients_.data(), 0, static_cast<size_t>(coefficient_count_) * sizeof(int16_t));
  for (int c = 0; c < count_; ++c) {
    const Plane& plane = planes_[c];
    int16_t* to = coefficients_.data() + plane.coefficients;
    for (int r = 0; r < plane.down; ++r) {
      reader.set_coefficients(c, r, to);
      to += plane.groups * kBlockGroup * kBlockSize;
    }
  }
}

uint8_t* CropPlanes::strip_of(const Plane& plane, int block_row) {
  const int buffer = block_row / kStripBlocks % strip_buffers(plane.down);
  return samples_.data() + plane.samples + int64_t{buffer} * plane.columns * kStripRows;
}

void CropPlanes::finish_row(int row) {
  for (int c = 0; c < count_; ++c) {
    const Plane& plane = planes_[c];
    const int16_t* from = coefficients_.data() + plane.coefficients;
    for (int y = row * plane.down; y < (row + 1) * plane.down; ++y) {
      inverse_dct(from, plane.groups, jpeg_->quant[plane.quant],
                  strip_of(plane, y) + y % kStripBlocks * 8);
      from += plane.groups * kBlockGroup * kBlockSize;
    }
  }
}

void CropPlanes::begin(MutableImageView out) {
  out_ = out;
  finished_ = 0;
  pixels_end_ = down_.source_begin;
  colours_.plane_count = count_;
  colours_.count = row_stride_;
  for (int c = 0; c < count_; ++c) {
    PlaneRows& rows = colours_.planes[c];
    rows.rows = rows_.data() + planes_[c].rows;
    rows.stride = row_stride_;
    rows.first = planes_[c].first.height;
  }
}

// Returns how many rows of the plane are resized.
int CropPlanes::resize_strips(const Plane& plane, int row) {
  const int end = (row + 1) * plane.down;
  const bool is_last = row + 1 == mcus_.height;
  for (int y = row * plane.down; y < end; ++y) {
    if ((y + 1) % kStripBlocks != 0 && !(is_last && y + 1 == end)) continue;
    const int64_t first_row = int64_t{y / kStripBlocks} * kStripRows;
    resize_strip(strip_of(plane, y), plane.first.width, across_[plane.axis],
                 rows_.data() + plane.rows + first_row * row_stride_, row_stride_);
  }
  return is_last ? end * 8 : end / kStripBlocks * kStripRows;
}

void CropPlanes::resize(int row) {
  int pixels_end = down_.source_end;
  for (int c = 0; c < count_; ++c) {
    const int rows = resize_strips(planes_[c], row);
    if (row + 1 < mcus_.height) {
      pixels_end = std::min(pixels_end, colours_.planes[c].pixels_from(rows));
    }
  }
  if (pixels_end <= pixels_end_) return;
  const int64_t done = int64_t{pixels_end_ - down_.source_begin} * count_ * row_stride_;
  colour_rows(colours_, pixels_end_, pixels_end, pixels_.data() + done);
  pixels_end_ = pixels_end;
  const int first = finished_;
  while (finished_ < out_.height && down_.first[finished_] + down_.taps[finished_] <= pixels_end_) {
    ++finished_;
  }
  resize_rows(pixels_.data(), count_, row_stride_, down_, down_.source_begin, {first, finished_},
              out_);
}

int64_t CropPlanes::scratch_bytes() const {
  int64_t bytes = coefficients_.bytes() + samples_.bytes() + rows_.bytes() + pixels_.bytes() +
                  down_.scratch_bytes();
  for (const PlanarAxis& axis : across_) bytes += axis.scratch_bytes();
  return bytes;
}

}  // namespace stoker
