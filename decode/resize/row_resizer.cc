#include "decode/resize/row_resizer.h"

#include <algorithm>
#include <cstring>

#include "decode/pixel_ops.h"
#include "decode/resize/resize_kernels.h"

namespace stoker {
namespace {

// Grows and never shrinks: a worker's buffers reach the size of the largest image that it met.
template <class Buffer>
void grow(Buffer& buffer, size_t count) {
  if (buffer.size() < count) buffer.resize(count);
}

uint8_t* aligned(ScratchVector<uint8_t>& buffer) {
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return buffer.data() + (kMaxVectorBytes - address % kMaxVectorBytes) % kMaxVectorBytes;
}

void copy_row(const uint8_t* from, int width, bool mirrored, uint8_t* to) {
  if (mirrored) {
    copy_mirrored(from, width, to);
  } else {
    std::memcpy(to, from, 3 * static_cast<size_t>(width));
  }
}

}  // namespace

bool is_sane(const CropSpec& spec) {
  return spec.crop.width > 0 && spec.crop.height > 0 && lies_inside(spec.window, spec.resized);
}

Box RowResizer::begin(const CropSpec& spec, MutableImageView out) {
  order_ = pass_order(policy_, spec);
  build_resample_tables(spec, across_, down_);
  resize_split_weights(true, across_);
  if (!is_vertical_first()) resize_split_weights(false, down_);
  out_ = out;
  received_ = emitted_ = summed_ = 0;
  const int source_width = across_.source_end - across_.source_begin;
  const int source_height = down_.source_end - down_.source_begin;
  if (!across_.identity) {
    grow(columns_, resize_scratch_bytes(source_width, out.width) + kMaxVectorBytes);
  }
  if (is_vertical_first()) {
    plan_vertical_first();
  } else if (!down_.identity) {
    plan_horizontal_first();
  }
  return {across_.source_begin, down_.source_begin, source_width, source_height};
}

void RowResizer::plan_horizontal_first() {
  ring_rows_ = std::min(down_.source_end - down_.source_begin, down_.max_taps + kMaxRowGroup - 1);
  ring_stride_ = 3 * static_cast<size_t>(out_.width) + kMaxVectorBytes;
  grow(ring_, ring_rows_ * ring_stride_);
  grow(taps_, static_cast<size_t>(down_.max_taps));
}

void RowResizer::plan_vertical_first() {
  wide_ = 3 * static_cast<size_t>(across_.source_end - across_.source_begin);
  open_ = 1;
  for (int first = 0, y = 0; y < out_.height; ++y) {
    while (down_.first[first] + down_.taps[first] <= down_.first[y]) ++first;
    open_ = std::max(open_, y - first + 1);
  }
  grow(sums_, open_ * wide_);
  grow(wide_rows_, kMaxRowGroup * wide_);
}

void RowResizer::rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) {
  const int most = across_.identity ? kMaxRowGroup : resize_row_group();
  const uint8_t* group_rows[kMaxRowGroup];
  while (count > 0) {
    const int n = std::min(count, most);
    for (int r = 0; r < n; ++r) group_rows[r] = first + r * stride_bytes;
    if (is_vertical_first()) {
      sum(group_rows, n);
    } else {
      across(group_rows, n);
    }
    first += n * stride_bytes;
    count -= n;
  }
}

uint8_t* RowResizer::resampled_row(int source_row) {
  if (down_.identity) return out_.data + source_row * out_.stride_bytes;
  return ring_.data() + static_cast<size_t>(source_row % ring_rows_) * ring_stride_;
}

void RowResizer::across(const uint8_t* const* rows, int count) {
  uint8_t* results[kMaxRowGroup];
  for (int r = 0; r < count; ++r) results[r] = resampled_row(received_ + r);
  if (across_.identity) {
    for (int r = 0; r < count; ++r) copy_row(rows[r], out_.width, across_.key.mirrored, results[r]);
  } else {
    resize_rows_horizontal(rows, count, across_, aligned(columns_), results);
  }
  received_ += count;
  if (!down_.identity) emit_finished_rows();
}

void RowResizer::emit_finished_rows() {
  for (; emitted_ < out_.height; ++emitted_) {
    const int first = down_.first[emitted_] - down_.source_begin;
    const int taps = down_.taps[emitted_];
    if (first + taps > received_) return;
    const uint8_t* row = resampled_row(first);
    const uint8_t* const end = ring_.data() + static_cast<size_t>(ring_rows_) * ring_stride_;
    for (int t = 0; t < taps; ++t, row += ring_stride_) {
      if (row == end) row = ring_.data();
      taps_[t] = row;
    }
    resize_row_vertical(taps_.data(), down_, emitted_, 3 * static_cast<size_t>(out_.width),
                        out_.data + emitted_ * out_.stride_bytes);
  }
}

// Adds the rows to the sums of all outputs that they belong to. It goes output by output, so that a
// sum is finished before another output uses its memory.
void RowResizer::sum(const uint8_t* const* rows, int count) {
  const int begin = down_.source_begin + received_;
  received_ += count;
  for (int y = summed_; y < out_.height && down_.first[y] < begin + count; ++y) {
    int32_t* sums = sums_.data() + y % open_ * wide_;
    const int first = down_.first[y], end = first + down_.taps[y];
    if (first >= begin) std::fill_n(sums, wide_, 1 << (kWeightBits - 1));
    const int from = std::max(first, begin), to = std::min(end, begin + count);
    const int32_t* weights = down_.weights.data() + static_cast<size_t>(y) * down_.max_taps;
    resize_add_rows(rows + (from - begin), weights + (from - first), to - from, wide_, sums);
    if (end <= begin + count) finish_sum();
  }
}

void RowResizer::finish_sum() {
  resize_finish_sums(sums_.data() + summed_ % open_ * wide_, wide_,
                     wide_rows_.data() + (summed_ - emitted_) * wide_);
  ++summed_;
  if (summed_ - emitted_ == resize_row_group() || summed_ == out_.height) emit_summed_rows();
}

void RowResizer::emit_summed_rows() {
  const uint8_t* rows[kMaxRowGroup];
  uint8_t* results[kMaxRowGroup];
  const int count = summed_ - emitted_;
  for (int r = 0; r < count; ++r) {
    rows[r] = wide_rows_.data() + r * wide_;
    results[r] = out_.data + (emitted_ + r) * out_.stride_bytes;
  }
  resize_rows_horizontal(rows, count, across_, aligned(columns_), results);
  emitted_ = summed_;
}

int64_t RowResizer::scratch_bytes() const {
  return across_.scratch_bytes() + down_.scratch_bytes() +
         static_cast<int64_t>(ring_.capacity() + columns_.capacity() + wide_rows_.capacity() +
                              taps_.capacity() * sizeof(taps_[0]) +
                              sums_.capacity() * sizeof(sums_[0]));
}

}  // namespace stoker
