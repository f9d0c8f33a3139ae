#include "decode/jpeg/crop_coefficients.h"

#include <algorithm>
#include <cstring>

#include "decode/jpeg/entropy_decoder.h"

namespace stoker {

bool CropCoefficients::begin(const JpegFrame& jpeg, const Box& mcus, int64_t limit) {
  int64_t coefficients = 0, masks = 0;
  for (int c = 0; c < jpeg.component_count; ++c) {
    const JpegComponent& component = jpeg.components[c];
    Plane& plane = planes_[c];
    plane.blocks = {units_of(component.size.width, 8), units_of(component.size.height, 8)};
    const int left = mcus.x * component.across, top = mcus.y * component.down;
    const int width = mcus.width * component.across, height = mcus.height * component.down;
    plane.kept = {left, top, std::min(width, plane.blocks.width - left),
                  std::min(height, plane.blocks.height - top)};
    plane.row_size = int64_t{units_of(width, kBlockGroup)} * kBlockGroup * kBlockSize;
    plane.coefficients = coefficients;
    plane.nonzero = masks;
    coefficients += height * plane.row_size;
    masks += int64_t{plane.blocks.width} * plane.blocks.height;
  }
  const auto size = static_cast<size_t>(coefficients), count = static_cast<size_t>(masks);
  if (!grow_within(limit, BufferNeed{&coefficients_, size}, BufferNeed{&nonzero_, count})) {
    return false;
  }
  std::memset(coefficients_.data(), 0, size * sizeof(int16_t));
  std::memset(nonzero_.data(), 0, count * sizeof(uint64_t));
  return true;
}

void CropCoefficients::release() {
  coefficients_.release();
  nonzero_.release();
}

}  // namespace stoker
