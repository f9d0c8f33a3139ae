#include "staging/batch_layout.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "staging/row_edits.h"

namespace stoker {
namespace {

// A larger slab is a mistake in the options; below this limit no product overflows.
constexpr size_t kMaxSlabBytes = size_t{1} << 40;

size_t align(size_t bytes) {
  return (bytes + BatchLayout::kAlignment - 1) / BatchLayout::kAlignment * BatchLayout::kAlignment;
}

// Returns a * b, or a number above kMaxSlabBytes if the product is larger.
size_t multiply(size_t a, size_t b) {
  if (a != 0 && b > kMaxSlabBytes / a) return kMaxSlabBytes + 1;
  return a * b;
}

void check_shape(const BatchShape& shape) {
  std::string numbers = std::to_string(shape.rows) + " rows of " + std::to_string(shape.height) +
                        " x " + std::to_string(shape.width) + " pixels, " +
                        std::to_string(shape.note_bytes_per_row) + " note bytes per row";
  size_t target_bytes = 0;
  bool empty_target = false;
  for (const int bytes : shape.target_bytes) {
    numbers += ", a target of " + std::to_string(bytes) + " bytes per row";
    empty_target = empty_target || bytes < 1;
    target_bytes += static_cast<size_t>(std::max(bytes, 0));
  }
  for (const size_t column : shape.host_targets) {
    empty_target = empty_target || column >= shape.target_bytes.size();
  }
  if (empty_target || shape.rows < 1 || shape.height < 1 || shape.width < 1 ||
      shape.note_bytes_per_row < 0 || shape.value_bytes < 1 || shape.value_bytes > 8) {
    throw std::invalid_argument("BatchLayout: sizes must be positive: " + numbers);
  }
  size_t row_bytes =
      multiply(multiply(static_cast<size_t>(shape.height), static_cast<size_t>(shape.width)),
               static_cast<size_t>(BatchShape::kChannels * shape.value_bytes)) +
      static_cast<size_t>(shape.note_bytes_per_row) + sizeof(SampleId) + sizeof(int32_t) +
      sizeof(float) + target_bytes + (shape.edits ? sizeof(RowEdit) : 0);
  if (multiply(row_bytes, static_cast<size_t>(shape.rows)) > kMaxSlabBytes) {
    throw std::invalid_argument("BatchLayout: a batch would need more than 1 TiB: " + numbers);
  }
}

}  // namespace

BatchLayout::BatchLayout(const BatchShape& shape) : shape_(shape) { check_shape(shape); }

size_t BatchLayout::image_bytes() const {
  return static_cast<size_t>(shape_.height) * static_cast<size_t>(shape_.width) *
         static_cast<size_t>(BatchShape::kChannels * shape_.value_bytes);
}

size_t BatchLayout::images_bytes(const BatchHeader& header) const {
  const auto rows = static_cast<size_t>(shape_.rows);
  if (header.height == 0) return rows * image_bytes();
  return rows * static_cast<size_t>(header.height) * static_cast<size_t>(header.width) *
         static_cast<size_t>(BatchShape::kChannels * shape_.value_bytes);
}

size_t BatchLayout::labels_offset() const {
  return align(static_cast<size_t>(shape_.rows) * image_bytes());
}

size_t BatchLayout::weights_offset() const {
  return align(labels_offset() + static_cast<size_t>(shape_.rows) * sizeof(int32_t));
}

bool BatchLayout::is_on_host(size_t column) const {
  return std::ranges::binary_search(shape_.host_targets, column);
}

size_t BatchLayout::target_bytes(size_t column) const {
  return static_cast<size_t>(shape_.rows) * static_cast<size_t>(shape_.target_bytes[column]);
}

size_t BatchLayout::target_offset(size_t column) const {
  const bool on_host = column < shape_.target_bytes.size() && is_on_host(column);
  size_t offset =
      align(on_host ? header_offset() + sizeof(BatchHeader)
                    : weights_offset() + static_cast<size_t>(shape_.rows) * sizeof(float));
  for (size_t before = 0; before < column; ++before) {
    if (is_on_host(before) == on_host) offset = align(offset + target_bytes(before));
  }
  return offset;
}

size_t BatchLayout::edits_offset() const { return target_offset(shape_.target_bytes.size()); }

size_t BatchLayout::device_bytes() const {
  const size_t bytes = shape_.edits ? static_cast<size_t>(shape_.rows) * sizeof(RowEdit) : 0;
  return align(edits_offset() + bytes);
}

size_t BatchLayout::ids_offset() const { return device_bytes(); }

size_t BatchLayout::notes_offset() const {
  return align(ids_offset() + static_cast<size_t>(shape_.rows) * sizeof(SampleId));
}

size_t BatchLayout::header_offset() const {
  return align(notes_offset() +
               static_cast<size_t>(shape_.rows) * static_cast<size_t>(shape_.note_bytes_per_row));
}

size_t BatchLayout::slab_bytes() const {
  if (shape_.host_targets.empty()) return align(header_offset() + sizeof(BatchHeader));
  const size_t last = shape_.host_targets.back();
  return align(target_offset(last) + target_bytes(last));
}

}  // namespace stoker
