#include "decode/jpeg/fast_pixels.h"

#include <algorithm>

namespace stoker {
namespace {

// A strip is resized as soon as it is complete. Only MCUs with three rows of blocks may span two
// strips.
int strips_kept(int blocks_down) { return kStripBlocks % blocks_down == 0 ? 1 : 2; }

}  // namespace

bool FastPixels::plan_axis(const JpegFrame& jpeg, const CropSpec& spec, int c) {
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

bool FastPixels::plan_rows(const JpegFrame& jpeg, const CropSpec& spec) {
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

void FastPixels::find_mcus(const JpegFrame& jpeg) {
  NeededSamples needed;
  for (int c = 0; c < count_; ++c) {
    const PlanarAxis& across = across_[planes_[c].axis];
    const PlaneRows& rows = colours_.planes[c];
    needed.across[c] = {across.source_begin, across.source_end};
    needed.down[c] = samples_of({down_.source_begin, down_.source_end}, rows.factor,
                                rows.upsampling, rows.height);
  }
  samples_.plan(jpeg, mcus_of(jpeg, needed));
  checked_rows_ = checked_mcu_rows(jpeg, down_.last_pixel_end - 1, mcus());
}

bool FastPixels::reserve(const JpegFrame& jpeg) {
  row_stride_ = padded_row(across_[0].padded_count);
  int64_t rows = 0;
  for (int c = 0; c < count_; ++c) {
    samples_.add_plane(across_[planes_[c].axis].max_taps, strips_kept(jpeg.components[c].down));
    planes_[c].rows = rows;
    rows += int64_t{samples_.plane(c).strips} * kStripRows * row_stride_;
  }
  const int64_t pixels = int64_t{down_.source_end - down_.source_begin} * count_ * row_stride_;
  return samples_.reserve(kMaxPlaneScratch, BufferNeed{&rows_, static_cast<size_t>(rows)},
                          BufferNeed{&pixels_, static_cast<size_t>(pixels)});
}

bool FastPixels::plan(const JpegFrame& jpeg, const CropSpec& spec) {
  count_ = jpeg.component_count;
  for (int c = 0; c < count_; ++c) {
    const JpegComponent& component = jpeg.components[c];
    planes_[c].upsampling = upsampling_of(jpeg, component);
    PlaneRows& rows = colours_.planes[c];
    rows.height = component.size.height;
    rows.factor = jpeg.max_down / component.down;
    rows.upsampling = planes_[c].upsampling.down;
    if (!plan_axis(jpeg, spec, c)) return false;
  }
  if (!plan_rows(jpeg, spec)) return false;
  find_mcus(jpeg);
  return reserve(jpeg);
}

// The sums of a picture's coefficients always fit; the pixels of other files are unspecified.
bool FastPixels::finish_row(int row, RowSlot slot) {
  samples_.finish_row(row, slot);
  return true;
}

void FastPixels::begin(MutableImageView out) {
  out_ = out;
  finished_ = 0;
  pixels_end_ = down_.source_begin;
  colours_.plane_count = count_;
  colours_.count = row_stride_;
  for (int c = 0; c < count_; ++c) {
    PlaneRows& rows = colours_.planes[c];
    rows.rows = rows_.data() + planes_[c].rows;
    rows.stride = row_stride_;
    rows.first = samples_.plane(c).first.height;
  }
}

// Returns how many rows of the plane are resized.
int FastPixels::resize_strips(int c, int row) {
  const SamplePlane& plane = samples_.plane(c);
  const int end = (row + 1) * plane.down;
  const bool is_last = row + 1 == mcus().height;
  for (int y = row * plane.down; y < end; ++y) {
    if ((y + 1) % kStripBlocks != 0 && !(is_last && y + 1 == end)) continue;
    const int strip = y / kStripBlocks;
    resize_strip(samples_.strip(c, strip), plane.first.width, across_[planes_[c].axis],
                 rows_.data() + planes_[c].rows + int64_t{strip} * kStripRows * row_stride_,
                 row_stride_);
  }
  return is_last ? end * 8 : end / kStripBlocks * kStripRows;
}

void FastPixels::resize(int row) {
  int pixels_end = down_.source_end;
  for (int c = 0; c < count_; ++c) {
    const int rows = resize_strips(c, row);
    if (row + 1 < mcus().height) {
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

void FastPixels::release() {
  samples_.release();
  rows_.release();
  pixels_.release();
}

int64_t FastPixels::scratch_bytes() const {
  int64_t bytes =
      samples_.scratch_bytes() + rows_.bytes() + pixels_.bytes() + down_.scratch_bytes();
  for (const PlanarAxis& axis : across_) bytes += axis.scratch_bytes();
  return bytes;
}

}  // namespace stoker
