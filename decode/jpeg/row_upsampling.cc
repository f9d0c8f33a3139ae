#include "decode/jpeg/row_upsampling.h"

#include <algorithm>

namespace stoker {

ComponentUpsampling upsampling_of(const JpegFrame& jpeg, const JpegComponent& component) {
  const int across = jpeg.max_across / component.across;
  const int down = jpeg.max_down / component.down;
  const bool is_wide = component.size.width > 2;
  const bool halves_across = across == 2 && down <= 2 && is_wide;
  const bool halves_down = down == 2 && (across == 1 || (across == 2 && is_wide));
  return {halves_across ? Upsampling::triangle : Upsampling::replicate,
          halves_down ? Upsampling::triangle : Upsampling::replicate};
}

IndexRange samples_of(IndexRange pixels, int factor, Upsampling upsampling, int size) {
  const auto reach = [&](int pixel) {
    return upsampling == Upsampling::triangle && pixel % 2 == 0 ? 1 : 0;
  };
  return {std::max(0, pixels.begin / factor - reach(pixels.begin)),
          std::min(size, (pixels.end - 1) / factor + 1 + reach(pixels.end))};
}

int PlaneRows::pixels_from(int count) const {
  return (first + count) * factor - (upsampling == Upsampling::triangle ? 1 : 0);
}

// jdsample.c: with a triangle across, (3 a + b + 1) / 4 at even columns, + 2 at odd ones; if also
// down, sixteenths + 8 and + 7; down alone, quarters + 1 at even rows, + 2 at odd ones.
ChromaRounding chroma_rounding(const ComponentUpsampling& upsampling, bool even_is_even, int y) {
  constexpr int32_t kHalfUp = 64, kHalfDown = 63;
  constexpr int32_t kWholeNumbers = static_cast<int32_t>(0xFF80FF80);
  const bool across = upsampling.across == Upsampling::triangle;
  const bool down = upsampling.down == Upsampling::triangle;
  if (!across) {
    const int32_t bias = down && y % 2 == 0 ? kHalfDown : kHalfUp;
    return {bias * 0x10001, kWholeNumbers};
  }
  const bool even_lanes_up = down == even_is_even;
  return {even_lanes_up ? kHalfUp | kHalfDown << 16 : kHalfDown | kHalfUp << 16, kWholeNumbers};
}

}  // namespace stoker
