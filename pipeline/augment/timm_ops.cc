#include "pipeline/augment/timm_ops.h"

#include <algorithm>
#include <cmath>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/pillow_blur.h"

namespace stoker {
namespace {

// Which of an operation's numbers is which.
enum Draw : uint32_t { kMagnitude, kSign, kInterpolation, kRadius };

// Bytes below 128 become lighter.
void solarize_add(const PixelStep& step, ByteTable& table) {
  const auto add = static_cast<int>(step.values[0]);
  for (int i = 0; i < 256; ++i) {
    table[static_cast<size_t>(i)] = static_cast<uint8_t>(i < 128 ? std::min(i + add, 255) : i);
  }
}

const PixelKind kSolarizeAddStep{.name = "solarize_add", .values = {"add"}, .table = solarize_add};

double drawn(const TimmMagnitude& magnitude, const RandomKey& key, uint32_t draw) {
  double value = magnitude.mean;
  if (std::isinf(magnitude.deviation)) {
    value = key.uniform(draw, 0, magnitude.mean);
  } else if (magnitude.deviation > 0) {
    value += magnitude.deviation * key.normal(draw);
  }
  return std::clamp(value, 0.0, magnitude.most);
}

// A share of 1 of `most`, as a whole number.
int part_of(double share, int most) { return static_cast<int>(share * most); }

void add_posterize(Draws& draws, int bits) {
  if (bits < 8) draws.add(kPosterizeStep, {double(std::max(bits, 0))});
}

// One operation with a drawn magnitude.
class Applied {
 public:
  Applied(Draws& draws, const RandomKey& key, uint32_t first, const TimmOptions& options,
          double magnitude)
      : draws_(draws), key_(key), first_(first), options_(options), share_(magnitude / 10) {}

  void colour(TimmOp op) {
    const int solarized = std::min(part_of(share_, 256), 256);
    switch (op) {
      case TimmOp::auto_contrast:
        draws_.add(kAutocontrastStep);
        return;
      case TimmOp::equalize:
        draws_.add(kEqualizeStep);
        return;
      case TimmOp::invert:
        draws_.add(kInvertStep);
        return;
      case TimmOp::posterize:
        return add_posterize(draws_, part_of(share_, 4));
      case TimmOp::posterize_increasing:
        return add_posterize(draws_, 4 - part_of(share_, 4));
      case TimmOp::posterize_original:
        return add_posterize(draws_, 4 + part_of(share_, 4));
      case TimmOp::solarize:
        draws_.add(kSolarizeStep, {double(solarized)});
        return;
      case TimmOp::solarize_increasing:
        draws_.add(kSolarizeStep, {double(256 - solarized)});
        return;
      case TimmOp::solarize_add:
        draws_.add(kSolarizeAddStep, {double(std::min(part_of(share_, 110), 128))});
        return;
      case TimmOp::desaturate:
        draws_.add(kSaturationStep, {1 - between(0.5, 1)});
        return;
      case TimmOp::gaussian_blur:
        draws_.add(kPillowBlurStep, {between(0.1, 2)});
        return;
      case TimmOp::gaussian_blur_random:
        return random_blur();
      default:
        return factor(op);
    }
  }

  void warp(TimmOp op) {
    const Size size = draws_.size();
    const double side = turned_around(share_ * options_.translate);
    switch (op) {
      case TimmOp::rotate:
        return add_rotation(draws_, turned_around(share_ * 30), warp_options());
      case TimmOp::shear_x:
        return add_affine(draws_, {1, turned_around(share_ * 0.3), 0, 0, 1, 0}, warp_options());
      case TimmOp::shear_y:
        return add_affine(draws_, {1, 0, 0, turned_around(share_ * 0.3), 1, 0}, warp_options());
      case TimmOp::translate_x:
        return add_affine(draws_, {1, 0, side * size.width, 0, 1, 0}, warp_options());
      case TimmOp::translate_y:
        return add_affine(draws_, {1, 0, 0, 0, 1, side * size.height}, warp_options());
      default:
        return;
    }
  }

 private:
  void factor(TimmOp op) {
    // In the order of the operations, each of which stands before its increasing twin.
    const PixelKind* const kinds[] = {&kSaturationStep, &kContrastStep, &kBrightnessStep,
                                      &kSharpnessStep};
    const int place = static_cast<int>(op) - static_cast<int>(TimmOp::color);
    const double increasing = std::max(0.1, 1.0 + turned_around(share_ * 0.9));
    draws_.add(*kinds[place / 2], {place % 2 ? increasing : share_ * 1.8 + 0.1});
  }

  void random_blur() {
    const double most = 2 * between(0, 1);
    draws_.add(kPillowBlurStep, {0.1 + (most - 0.1) * key_.uniform(first_ + kRadius)});
  }

  double between(double least, double most) const {
    return std::clamp(least + (most - least) * share_, least, most);
  }
  double turned_around(double value) const {
    return key_.bits(first_ + kSign) >> 63 ? -value : value;
  }
  WarpOptions warp_options() const {
    WarpOptions warp = options_.warp;
    if (options_.either) {
      const bool cubic = key_.bits(first_ + kInterpolation) >> 63;
      warp.interpolation = cubic ? Interpolation::bicubic : Interpolation::bilinear;
    }
    return warp;
  }

  Draws& draws_;
  const RandomKey& key_;
  const uint32_t first_;
  const TimmOptions& options_;
  const double share_;  // of magnitude 10
};

bool is_warp(TimmOp op) {
  return op == TimmOp::rotate || (op >= TimmOp::shear_x && op <= TimmOp::translate_y);
}

}  // namespace

void draw_timm_op(Draws& draws, const RandomKey& key, uint32_t first, TimmOp op,
                  const TimmMagnitude& magnitude, const TimmOptions& options) {
  Applied applied(draws, key, first, options, drawn(magnitude, key, first + kMagnitude));
  is_warp(op) ? applied.warp(op) : applied.colour(op);
}

}  // namespace stoker
