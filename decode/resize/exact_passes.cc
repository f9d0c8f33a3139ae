#include "decode/resize/exact_passes.h"

#include <algorithm>
#include <cstring>

#include "decode/jpeg/idct_kernels.h"
#include "decode/resize/exact_resize.h"

namespace stoker {
namespace {

ptrdiff_t exact_row_stride(int width) {
  return (width + kExactRowPadding - 1) / kExactRowPadding * kExactRowPadding;
}

int length_of(IndexRange span) { return span.end - span.begin; }

}  // namespace

void ExactPasses::plan(const CropSpec& spec) {
  order_ = pass_order(policy_, spec);
  build_resample_tables(spec, across_, down_);
  if (!is_vertical_first()) return;
  const auto alike = [](int size, int begin, int count, ResampleTable& table) {
    build_resample_table({.source = size, .resized = size, .begin = begin, .count = count}, table);
  };
  alike(spec.crop.width, columns().begin, length_of(columns()), columns_alike_);
  alike(spec.window.height, 0, spec.window.height, outputs_alike_);
}

// Returns the most source rows that the outputs of one step need.
int ExactPasses::longest_reach() const {
  const int together = is_vertical_first() ? kStripOutputs : 1;
  int longest = 0;
  for (int begin = 0; begin < down_.key.count; begin += together) {
    const int last = std::min(begin + together, down_.key.count) - 1;
    longest = std::max(longest, down_.first[last] + down_.taps[last] - down_.first[begin]);
  }
  return longest;
}

std::array<BufferNeed<uint8_t>, 3> ExactPasses::needs(int planes) {
  planes_ = planes;
  const int width = is_vertical_first() ? length_of(columns()) : across_.key.count;
  stride_ = exact_row_stride(width);
  const size_t rows = static_cast<size_t>(longest_reach()) + kStripRows;
  const size_t strip = static_cast<size_t>(planes * stride_) * kStripRows;
  const size_t narrow =
      static_cast<size_t>(planes * exact_row_stride(across_.key.count)) * kStripRows;
  return {BufferNeed{&rows_, rows * static_cast<size_t>(planes * stride_)},
          BufferNeed{&strip_, is_vertical_first() ? strip : 0},
          BufferNeed{&narrow_, is_vertical_first() ? narrow : 0}};
}

void ExactPasses::begin(int first_row, MutableImageView out) {
  out_ = out;
  first_ = first_row;
  count_ = finished_ = 0;
}

bool ExactPasses::is_whole(int output) const {
  return down_.first[output] + down_.taps[output] <= first_ + count_;
}

// Drops the rows before those that the next output needs.
void ExactPasses::drop_rows() {
  const int needed = finished_ < out_.height ? down_.first[finished_] : first_ + count_;
  const int dropped = std::clamp(needed - first_, 0, count_);
  if (dropped == 0) return;
  first_ += dropped;
  count_ -= dropped;
  const ptrdiff_t row = planes_ * stride_;
  std::memmove(rows_.data(), rows_.data() + dropped * row, static_cast<size_t>(count_ * row));
}

void ExactPasses::strip(const uint8_t* columns, int first_column) {
  drop_rows();
  exact_across(columns, planes_, first_column, is_vertical_first() ? columns_alike_ : across_,
               rows_.data() + ptrdiff_t{count_} * planes_ * stride_, stride_);
  count_ += kStripRows;
  if (is_vertical_first()) {
    finish_strips();
  } else {
    finish_rows();
  }
}

void ExactPasses::finish_rows() {
  const int begin = finished_;
  while (finished_ < out_.height && is_whole(finished_)) ++finished_;
  exact_down(rows_.data(), planes_, stride_, first_, down_, {begin, finished_}, out_);
}

void ExactPasses::finish_strips() {
  while (finished_ < out_.height) {
    const int end = std::min(finished_ + kStripOutputs, out_.height);
    if (!is_whole(end - 1)) return;
    exact_down_to_strip(rows_.data(), planes_, stride_, length_of(columns()), first_, down_,
                        {finished_, end}, strip_.data() + finished_ % kStripRows);
    finished_ = end;
    if (end % kStripRows != 0 && end < out_.height) continue;
    const int begin = (end - 1) / kStripRows * kStripRows;
    const ptrdiff_t stride = exact_row_stride(across_.key.count);
    exact_across(strip_.data(), planes_, columns().begin, across_, narrow_.data(), stride);
    exact_down(narrow_.data(), planes_, stride, begin, outputs_alike_, {begin, end}, out_);
  }
}

void ExactPasses::release() {
  rows_.release();
  strip_.release();
  narrow_.release();
}

int64_t ExactPasses::scratch_bytes() const {
  return rows_.bytes() + strip_.bytes() + narrow_.bytes() + across_.scratch_bytes() +
         down_.scratch_bytes() + columns_alike_.scratch_bytes() + outputs_alike_.scratch_bytes();
}

}  // namespace stoker
