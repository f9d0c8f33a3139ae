// Walks over the bytes of an image whose place does not matter. Internal to decode/pixel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/image.h"

namespace stoker {

// Calls op(first, bytes) for every run of bytes without a gap: once for an image whose rows follow
// each other, else once per row. A run begins with a pixel's red.
template <class Op>
void for_each_run(ImageView image, const Op& op) {
  const size_t row_bytes = 3 * static_cast<size_t>(image.width);
  if (image.stride_bytes == static_cast<ptrdiff_t>(row_bytes)) {
    op(image.data, row_bytes * static_cast<size_t>(image.height));
    return;
  }
  for (int y = 0; y < image.height; ++y) op(image.data + y * image.stride_bytes, row_bytes);
}
template <class Op>
void for_each_run(MutableImageView image, const Op& op) {
  for_each_run(ImageView(image), [&](const uint8_t* bytes, size_t count) {
    // The view that was given may be written to.
    op(const_cast<uint8_t*>(bytes), count);
  });
}

}  // namespace stoker
