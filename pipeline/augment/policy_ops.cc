#include "pipeline/augment/policy_ops.h"

#include <cmath>

#include "decode/pixel/warp_matrix.h"
#include "pipeline/augment/pixel_steps.h"

namespace stoker {
namespace {

// torch.linspace in float32: from both ends to the middle.
double linspace(double first, double last, int bin, int bins) {
  const auto begin = static_cast<float>(first), end = static_cast<float>(last);
  if (bins == 1) return begin;
  const float step = (end - begin) / static_cast<float>(bins - 1);
  if (bin < bins / 2) return std::fma(step, static_cast<float>(bin), begin);
  return std::fma(-step, static_cast<float>(bins - 1 - bin), end);
}

double posterize_bits(const PolicyLimits& limits, int bin, int bins) {
  if (bins == 1) return limits.posterize_first;
  const auto per_bit = static_cast<float>((bins - 1) / static_cast<double>(limits.posterize_less));
  return std::nearbyint(static_cast<float>(limits.posterize_first) -
                        static_cast<float>(bin) / per_bit);
}

double translation(const PolicyLimits& limits, int side) {
  return limits.translate_shares ? limits.translate * side : limits.translate;
}

// torchvision's affine() about the upper left corner, and about the middle.
void add_shear(Draws& draws, Point shear, const WarpOptions& options) {
  add_affine(draws, affine_matrix({0, 0}, {.shear = shear}), options);
}

void add_translation(Draws& draws, Point translate, const WarpOptions& options) {
  const Point center{draws.size().width * 0.5, draws.size().height * 0.5};
  add_affine(draws, affine_matrix(center, {.translate = translate}), options);
}

double shear_degrees(double magnitude) {
  return std::atan(magnitude) * (180.0 / 3.141592653589793238462643383279502884);
}

}  // namespace

double policy_magnitude(const PolicyLimits& limits, PolicyOp op, int bin, int bins, Size size) {
  switch (op) {
    case PolicyOp::shear_x:
    case PolicyOp::shear_y:
      return linspace(0, limits.shear, bin, bins);
    case PolicyOp::translate_x:
      return linspace(0, translation(limits, size.width), bin, bins);
    case PolicyOp::translate_y:
      return linspace(0, translation(limits, size.height), bin, bins);
    case PolicyOp::rotate:
      return linspace(0, limits.rotate, bin, bins);
    case PolicyOp::brightness:
    case PolicyOp::color:
    case PolicyOp::contrast:
    case PolicyOp::sharpness:
      return linspace(0, limits.factor, bin, bins);
    case PolicyOp::posterize:
      return posterize_bits(limits, bin, bins);
    case PolicyOp::solarize:
      return linspace(1, 0, bin, bins);
    default:
      return 0;
  }
}

bool is_signed(PolicyOp op) { return op >= PolicyOp::shear_x && op <= PolicyOp::sharpness; }

void add_policy_op(Draws& draws, PolicyOp op, double magnitude, const WarpOptions& options) {
  switch (op) {
    case PolicyOp::identity:
      return;
    case PolicyOp::shear_x:
      return add_shear(draws, {shear_degrees(magnitude), 0}, options);
    case PolicyOp::shear_y:
      return add_shear(draws, {0, shear_degrees(magnitude)}, options);
    case PolicyOp::translate_x:
      return add_translation(draws, {std::trunc(magnitude), 0}, options);
    case PolicyOp::translate_y:
      return add_translation(draws, {0, std::trunc(magnitude)}, options);
    case PolicyOp::rotate:
      return add_rotation(draws, magnitude, options);
    case PolicyOp::brightness:
      draws.add(kBrightnessStep, {1 + magnitude});
      return;
    case PolicyOp::color:
      draws.add(kSaturationStep, {1 + magnitude});
      return;
    case PolicyOp::contrast:
      draws.add(kContrastStep, {1 + magnitude});
      return;
    case PolicyOp::sharpness:
      draws.add(kSharpnessStep, {1 + magnitude});
      return;
    case PolicyOp::posterize:
      draws.add(kPosterizeStep, {magnitude});
      return;
    case PolicyOp::solarize:
      draws.add(kSolarizeStep, {255 * magnitude});
      return;
    case PolicyOp::auto_contrast:
      draws.add(kAutocontrastStep);
      return;
    case PolicyOp::equalize:
      draws.add(kEqualizeStep);
      return;
    case PolicyOp::invert:
      draws.add(kInvertStep);
      return;
  }
}

void draw_policy_op(Draws& draws, const RandomKey& key, uint32_t sign, const PolicyLimits& limits,
                    PolicyOp op, int bin, int bins, const WarpOptions& options) {
  double magnitude = policy_magnitude(limits, op, bin, bins, draws.size());
  if (is_signed(op) && key.bits(sign) >> 63) magnitude = -magnitude;
  add_policy_op(draws, op, magnitude, options);
}

WarpOptions warp_options(const Arguments& arguments) {
  return {static_cast<Interpolation>(arguments.choice("interpolation")), arguments.colour("fill")};
}

}  // namespace stoker
