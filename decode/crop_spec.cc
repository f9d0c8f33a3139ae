#include "decode/crop_spec.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

// The widest filter, Lanczos', takes three pixels at each side.
constexpr int kFilterReach = 3;

// Along one axis: pixels [begin, end) of the crop, for `count` pixels of the window from `first`
// on.
void reach(int crop, int resized, int first, int count, int& begin, int& end) {
  const double scale = static_cast<double>(crop) / resized;
  const double more = kFilterReach * std::max(scale, 1.0) + 1;
  begin = std::max(0, static_cast<int>(std::floor(first * scale - more)));
  end = static_cast<int>(std::min<double>(crop, std::ceil((first + count) * scale + more)));
}

}  // namespace

Box source_box(const CropSpec& spec) {
  const Box &crop = spec.crop, &window = spec.window;
  int left = 0, right = 0, top = 0, bottom = 0;
  reach(crop.width, spec.resized.width, window.x, window.width, left, right);
  reach(crop.height, spec.resized.height, window.y, window.height, top, bottom);
  return {crop.x + left, crop.y + top, right - left, bottom - top};
}

}  // namespace stoker
