#include "decode/pixel_policy.h"

namespace stoker {

const char* to_string(PixelPolicy policy) {
  switch (policy) {
    case PixelPolicy::exact_pillow12:
      return "exact-pillow12";
    case PixelPolicy::fast:
      return "fast";
    case PixelPolicy::exact:
      return "exact";
  }
  return "?";
}

// This is what Pillow 13 does, found by experiment (tests/golden/decode/check_pass_order.py): the
// vertical pass is first where the height loses more than twice the pixels that the width loses.
PassOrder pass_order(PixelPolicy policy, const CropSpec& spec) {
  const int lost_width = spec.crop.width - spec.resized.width;
  const int lost_height = spec.crop.height - spec.resized.height;
  if (spec.filter == Filter::nearest) return PassOrder::horizontal_first;
  const bool is_vertical = policy == PixelPolicy::exact && lost_width != 0 && lost_height > 0 &&
                           lost_height > 2 * lost_width;
  return is_vertical ? PassOrder::vertical_first : PassOrder::horizontal_first;
}

}  // namespace stoker
