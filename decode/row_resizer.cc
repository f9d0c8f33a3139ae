#include "decode/row_resizer.h"

#include <algorithm>
#include <cstring>

#include "decode/pixel_ops.h"
#include "decode/resize_kernels.h"

namespace stoker {
namespace {

// Grows, never shrinks: a worker's buffers settle at the largest image that it met.
template <class T>
void grow(std::vector<T>& buffer, size_t count) {
  if (buffer.size() < count) buffer.resize(count);
}

uint8_t* aligned(std::vector<uint8_t>& buffer) {
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
  build_resample_tables(spec, across_, down_);
  out_ = out;
  received_ = emitted_ = 0;
  const int source_width = across_.source_end - across_.source_begin;
  const int source_height = down_.source_end - down_.source_begin;
  if (!across_.identity) {
    grow(columns_, resize_scratch_bytes(source_width, out.width) + kMaxVectorBytes);
  }
  if (!down_.identity) {
    ring_rows_ = std::min(source_height, down_.max_taps + kMaxRowGroup - 1);
    ring_stride_ = 3 * static_cast<size_t>(out.width) + kMaxVectorBytes;
    grow(ring_, ring_rows_ * ring_stride_);
    grow(taps_, static_cast<size_t>(down_.max_taps));
  }
  return {across_.source_begin, down_.source_begin, source_width, source_height};
}

void RowResizer::rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) {
  const int most = across_.identity ? kMaxRowGroup : resize_row_group();
  const uint8_t* group_rows[kMaxRowGroup];
  while (count > 0) {
    const int n = std::min(count, most);
    for (int r = 0; r < n; ++r) group_rows[r] = first + r * stride_bytes;
    group(group_rows, n);
    first += n * stride_bytes;
    count -= n;
  }
}

uint8_t* RowResizer::resampled_row(int source_row) {
  if (down_.identity) return out_.data + source_row * out_.stride_bytes;
  return ring_.data() + static_cast<size_t>(source_row % ring_rows_) * ring_stride_;
}

void RowResizer::group(const uint8_t* const* rows, int count) {
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
    for (int t = 0; t < taps; ++t) taps_[t] = resampled_row(first + t);
    resize_row_vertical(taps_.data(), down_, emitted_, 3 * static_cast<size_t>(out_.width),
                        out_.data + emitted_ * out_.stride_bytes);
  }
}

int64_t RowResizer::scratch_bytes() const {
  return across_.scratch_bytes() + down_.scratch_bytes() +
         static_cast<int64_t>(ring_.capacity() + columns_.capacity() +
                              taps_.capacity() * sizeof(taps_[0]));
}

}  // namespace stoker
