#include "tests/support/blur_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "decode/pixel/gaussian_kernel.h"

namespace stoker {
namespace {

int reflected_index(int i, int size) { return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i; }

// One box filter along a line of `count` bytes that are `step` apart.
void box_line(uint8_t* line, ptrdiff_t step, int count, float radius) {
  const auto whole = static_cast<int>(radius);
  const auto weight = static_cast<uint32_t>(16777216.0f / (radius * 2 + 1));
  const uint32_t end_weight = (16777216u - (2u * whole + 1) * weight) / 2;
  std::vector<uint8_t> old;
  for (int i = 0; i < count; ++i) old.push_back(line[i * step]);
  const auto at = [&](int i) -> uint32_t { return old[std::clamp(i, 0, count - 1)]; };
  for (int i = 0; i < count; ++i) {
    uint32_t sum = 0;
    for (int t = -whole; t <= whole; ++t) sum += at(i + t);
    const uint32_t ends = at(i - whole - 1) + at(i + whole + 1);
    line[i * step] = static_cast<uint8_t>((sum * weight + ends * end_weight + (1u << 23)) >> 24);
  }
}

}  // namespace

void gaussian_blur_reference(ImageView in, int kernel_x, int kernel_y, double sigma_x,
                             double sigma_y, MutableImageView out) {
  std::vector<float> across(kernel_x), down(kernel_y);
  make_gaussian_kernel(kernel_x, sigma_x, across.data());
  make_gaussian_kernel(kernel_y, sigma_y, down.data());
  for (int y = 0; y < in.height; ++y) {
    for (int i = 0; i < 3 * in.width; ++i) {
      float sum = 0;
      for (int dy = -(kernel_y / 2); dy <= kernel_y / 2; ++dy) {
        const uint8_t* row = in.data + reflected_index(y + dy, in.height) * in.stride_bytes;
        for (int dx = -(kernel_x / 2); dx <= kernel_x / 2; ++dx) {
          const float value = row[3 * reflected_index(i / 3 + dx, in.width) + i % 3];
          sum = std::fma(value, down[std::abs(dy)] * across[std::abs(dx)], sum);
        }
      }
      out.data[y * out.stride_bytes + i] = static_cast<uint8_t>(std::nearbyint(sum));
    }
  }
}

void pillow_gaussian_blur_reference(ImageView in, double radius, MutableImageView out) {
  const auto given = static_cast<float>(radius);
  const float variance = given * given / 3;
  const float length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const float whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float rest = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  rest /= 6 * (variance - (whole + 1) * (whole + 1));
  for (int y = 0; y < in.height; ++y) {
    std::copy_n(in.data + y * in.stride_bytes, 3 * in.width, out.data + y * out.stride_bytes);
  }
  for (int pass = 0; pass < 3; ++pass) {
    for (int y = 0; y < in.height; ++y) {
      for (int c = 0; c < 3; ++c) {
        box_line(out.data + y * out.stride_bytes + c, 3, in.width, whole + rest);
      }
    }
  }
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < 3 * in.width; ++i) {
      box_line(out.data + i, out.stride_bytes, in.height, whole + rest);
    }
  }
}

}  // namespace stoker
