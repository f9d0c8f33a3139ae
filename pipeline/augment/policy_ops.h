// The choices of the policies: torchvision's operations and their magnitudes (transforms/v2/
// _auto_augment.py), with the numbers that it computes in 32-bit floats.
#pragma once

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage.h"

namespace stoker {

enum class PolicyOp : uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
  invert
};

// The choices of RandAugment and TrivialAugment.
inline constexpr PolicyOp kPolicyOps[] = {
    PolicyOp::identity,      PolicyOp::shear_x,   PolicyOp::shear_y,    PolicyOp::translate_x,
    PolicyOp::translate_y,   PolicyOp::rotate,    PolicyOp::brightness, PolicyOp::color,
    PolicyOp::contrast,      PolicyOp::sharpness, PolicyOp::posterize,  PolicyOp::solarize,
    PolicyOp::auto_contrast, PolicyOp::equalize};

// How far the operations of a policy go at the largest magnitude.
struct PolicyLimits {
  double shear;           // pixels per pixel
  double translate;       // pixels, or a share of the side
  bool translate_shares;  // which of the two it is
  double rotate;          // degrees
  double factor;          // of colours, around 1
  int posterize_first;    // bits at magnitude 0
  int posterize_less;     // bits fewer at the largest
};

// The limits of RandAugment and AutoAugment, of TrivialAugment, and of AugMix.
inline constexpr PolicyLimits kRandomAugmentLimits{.shear = 0.3,
                                                   .translate = 150.0 / 331.0,
                                                   .translate_shares = true,
                                                   .rotate = 30,
                                                   .factor = 0.9,
                                                   .posterize_first = 8,
                                                   .posterize_less = 4};
inline constexpr PolicyLimits kTrivialAugmentLimits{.shear = 0.99,
                                                    .translate = 32,
                                                    .translate_shares = false,
                                                    .rotate = 135,
                                                    .factor = 0.99,
                                                    .posterize_first = 8,
                                                    .posterize_less = 6};
inline constexpr PolicyLimits kAugMixLimits{.shear = 0.3,
                                            .translate = 1.0 / 3.0,
                                            .translate_shares = true,
                                            .rotate = 30,
                                            .factor = 0.9,
                                            .posterize_first = 4,
                                            .posterize_less = 4};

// Returns magnitude `bin` of `bins` for an image of this size: what torchvision's table holds.
double policy_magnitude(const PolicyLimits& limits, PolicyOp op, int bin, int bins, Size size);
// Whether the magnitude may be turned around.
bool is_signed(PolicyOp op);
// Appends what the operation does with this magnitude.
void add_policy_op(Draws& draws, PolicyOp op, double magnitude, const WarpOptions& options);

// Draws sign and magnitude as torchvision does, and appends the operation. `sign`: number of the
// draw that turns the magnitude around.
void draw_policy_op(Draws& draws, const RandomKey& key, uint32_t sign, const PolicyLimits& limits,
                    PolicyOp op, int bin, int bins, const WarpOptions& options);

// The parameters that every policy ends with, and their values.
inline constexpr Parameter kPolicyInterpolation{
    "interpolation", ArgumentKind::choice, "nearest", 0, 0, kInterpolationNames};
// Where torchvision's default is bilinear, in AugMix and perspectives.
inline constexpr Parameter kBilinearParameter{
    "interpolation", ArgumentKind::choice, "bilinear", 0, 0, kInterpolationNames};
inline constexpr Parameter kFillParameter{"fill", ArgumentKind::colour, "0", 0, 255};
WarpOptions warp_options(const Arguments& arguments);

}  // namespace stoker
