// Types for images and their pixels: sizes, boxes and views. Views own nothing. Every pixel buffer
// in stoker is (height, width, 3) uint8, RGB, row-major, with rows `stride_bytes` apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

struct Size {
  int width = 0;   // pixels
  int height = 0;  // pixels
  bool operator==(const Size&) const = default;
};

// A rectangle of pixels: columns [x, x + width), rows [y, y + height).
struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Box&) const = default;
};

// Returns true if the box has pixels and all of them are inside an image of this size.
inline bool lies_inside(Box box, Size size) {
  return box.width > 0 && box.height > 0 && box.x >= 0 && box.y >= 0 &&
         box.x <= size.width - box.width && box.y <= size.height - box.height;
}

struct ImageView {
  const uint8_t* data = nullptr;  // (height, width, 3) u8, RGB
  int width = 0;
  int height = 0;
  ptrdiff_t stride_bytes = 0;  // >= 3 * width
};

struct MutableImageView {
  uint8_t* data = nullptr;  // (height, width, 3) u8, RGB
  int width = 0;
  int height = 0;
  ptrdiff_t stride_bytes = 0;  // >= 3 * width
  operator ImageView() const { return {data, width, height, stride_bytes}; }
};

}  // namespace stoker
