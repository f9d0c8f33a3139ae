#include <algorithm>
#include <cmath>

#include "pipeline/augment.h"

namespace stoker {
namespace {

constexpr int64_t kMaxResizedSide = 1 << 30;
constexpr int kTries = 10;  // of random_resized; each takes four numbers, from draw 0 on

// The use of each number of the sample's key. A change here changes the pixels of every run.
enum Draw : uint32_t {
  kFlip = 64,
  kCutoutX,
  kCutoutY,
  kShiftX,
  kShiftY,
  kJitterOrder,
  kJitterFactor,  // four of them
};

// Python's round(): halves go to the even neighbour, as in the default rounding mode.
int round_half_even(double value) { return static_cast<int>(std::lrint(value)); }

// As transforms.RandomResizedCrop.get_params of torchvision; only the random numbers differ (and a
// side has at least one pixel).
Box random_resized_crop(const AugmentSpec& spec, Size source, const RandomKey& key) {
  const double area = static_cast<double>(source.width) * source.height;
  const double log_ratio_min = std::log(spec.ratio_min), log_ratio_max = std::log(spec.ratio_max);
  for (uint32_t attempt = 0; attempt < kTries; ++attempt) {
    const uint32_t first = 4 * attempt;
    const double target_area = area * key.uniform(first, spec.scale_min, spec.scale_max);
    const double ratio = std::exp(key.uniform(first + 1, log_ratio_min, log_ratio_max));
    const int width = round_half_even(std::sqrt(target_area * ratio));
    const int height = round_half_even(std::sqrt(target_area / ratio));
    if (width > 0 && width <= source.width && height > 0 && height <= source.height) {
      const auto y = static_cast<int>(key.below(first + 2, source.height - height + 1));
      const auto x = static_cast<int>(key.below(first + 3, source.width - width + 1));
      return {x, y, width, height};
    }
  }
  Size size = source;
  const double ratio = static_cast<double>(source.width) / source.height;
  if (ratio < spec.ratio_min) {
    size.height = round_half_even(source.width / spec.ratio_min);
  } else if (ratio > spec.ratio_max) {
    size.width = round_half_even(source.height * spec.ratio_max);
  }
  size = {std::max(size.width, 1), std::max(size.height, 1)};
  return {(source.width - size.width) / 2, (source.height - size.height) / 2, size.width,
          size.height};
}

// Resize(short side): the long side is truncated to whole pixels, not rounded. (An image one pixel
// wide and millions of pixels long is shortened; torchvision would run out of memory.)
Size resized_by_short_side(const AugmentSpec& spec, Size source) {
  const auto [shorter, longer] = std::minmax(source.width, source.height);
  const int target = short_side(spec);
  const int64_t scaled = std::min(int64_t{target} * longer / shorter, kMaxResizedSide);
  const int other = static_cast<int>(scaled);
  return source.width <= source.height ? Size{target, other} : Size{other, target};
}

// CenterCrop: int(round((outer - inner) / 2.0)).
Box center_window(Size outer, Size inner) {
  return {round_half_even((outer.width - inner.width) / 2.0),
          round_half_even((outer.height - inner.height) / 2.0), inner.width, inner.height};
}

bool draw_flip(const AugmentSpec& spec, uint64_t seed, int64_t epoch, int64_t sample) {
  if (spec.flip == FlipMode::none) return false;
  if (spec.flip == FlipMode::random) return RandomKey(seed, epoch, sample).bits(kFlip) >> 63;
  const bool in_epoch_0 = RandomKey(seed, 0, sample).bits(kFlip) >> 63;
  return in_epoch_0 != (epoch % 2 != 0);
}

Box draw_cutout(const AugmentSpec& spec, const RandomKey& key) {
  if (spec.cutout == 0) return {};
  return {static_cast<int>(key.below(kCutoutX, spec.output.width - spec.cutout + 1)),
          static_cast<int>(key.below(kCutoutY, spec.output.height - spec.cutout + 1)), spec.cutout,
          spec.cutout};
}

// As transforms.ColorJitter.get_params.
void draw_jitter(const AugmentSpec& spec, const RandomKey& key, AugmentDraw& draw) {
  const double strength[4] = {spec.brightness, spec.contrast, spec.saturation, spec.hue};
  draw.jitter = *std::max_element(strength, strength + 4) > 0;
  if (!draw.jitter) return;
  int64_t permutation = key.below(kJitterOrder, 24);
  // Moves one of the `left` last entries to their front.
  for (int left = 4; left > 1; --left) {
    uint8_t* const first = draw.jitter_order + 4 - left;
    std::rotate(first, first + permutation % left, first + permutation % left + 1);
    permutation /= left;
  }
  for (uint32_t op = 0; op < 4; ++op) {
    const double low = op == 3 ? -strength[op] : std::max(0.0, 1 - strength[op]);
    const double high = op == 3 ? strength[op] : 1 + strength[op];
    if (strength[op] > 0) {
      draw.jitter_factor[op] = static_cast<float>(key.uniform(kJitterFactor + op, low, high));
    }
  }
}

}  // namespace

AugmentDraw draw_augmentation(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch,
                              int64_t sample) {
  const RandomKey key(seed, epoch, sample);
  AugmentDraw draw;
  draw.crop = {0, 0, source.width, source.height};
  draw.resized = spec.output;
  draw.window = {0, 0, spec.output.width, spec.output.height};
  switch (spec.crop) {
    case CropMode::random_resized:
      draw.crop = random_resized_crop(spec, source, key);
      break;
    case CropMode::resize_center:
      draw.resized = resized_by_short_side(spec, source);
      draw.window = center_window(draw.resized, spec.output);
      break;
    case CropMode::pad_random:
      draw.shift_x = static_cast<int>(key.below(kShiftX, 2 * spec.pad + 1)) - spec.pad;
      draw.shift_y = static_cast<int>(key.below(kShiftY, 2 * spec.pad + 1)) - spec.pad;
      break;
    case CropMode::whole:
      break;
  }
  draw.flip = draw_flip(spec, seed, epoch, sample);
  draw.cutout = draw_cutout(spec, key);
  draw_jitter(spec, key, draw);
  return draw;
}

}  // namespace stoker
