#include <algorithm>
#include <memory>

#include "pipeline/augment/colour_steps.h"
#include "pipeline/augment/core_steps.h"
#include "pipeline/augment/erasing.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr int kTries = 10;  // each takes four numbers, from draw 0 on

constexpr int kQuantileBits = 12, kQuantiles = 1 << kQuantileBits;
static_assert(std::tuple_size_v<ErasingNoise::value_type> == kQuantiles);

// The number below which a normal number lies with this probability; by bisection.
double normal_quantile(double probability) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return low;
}

std::shared_ptr<const ErasingNoise> make_noise(const std::vector<double>& mean,
                                               const std::vector<double>& deviation) {
  auto noise = std::make_shared<ErasingNoise>();
  for (int i = 0; i < kQuantiles; ++i) {
    const double normal = normal_quantile((i + 0.5) / kQuantiles);
    for (size_t c = 0; c < 3; ++c) {
      const double byte = 255 * (mean[c] + deviation[c] * normal);
      (*noise)[c][static_cast<size_t>(i)] =
          static_cast<uint8_t>(std::lrint(std::clamp(byte, 0.0, 255.0)));
    }
  }
  return noise;
}

// Fills the box with noise. A draw gives five bytes.
void fill_noise(const PixelStep& step, MutableImageView image, PixelScratch&) {
  const auto& noise = *static_cast<const ErasingNoise*>(step.object);
  const auto [left, top, width, height] = crop_box(step);
  uint32_t draw = 0;
  uint64_t bits = 0;
  int left_in_bits = 0;
  for (int y = top; y < top + height; ++y) {
    uint8_t* byte = image.data + y * image.stride_bytes + ptrdiff_t{3} * left;
    for (int i = 0; i < 3 * width; ++i) {
      if (left_in_bits == 0) {
        bits = step.key.bits(draw++);
        left_in_bits = 64 / kQuantileBits;
      }
      byte[i] = noise[static_cast<size_t>(i % 3)][bits % kQuantiles];
      bits >>= kQuantileBits;
      --left_in_bits;
    }
  }
}

const PixelKind kNoiseStep{
    .name = "noise", .values = {"x", "y", "width", "height"}, .change = fill_noise};

// As torchvision's RandomErasing: a box inside the image, or none after ten tries. (There, the
// whole image is then replaced by itself.)
Box random_box(std::array<double, 2> scale, std::array<double, 2> ratio, Size size,
               const RandomKey& key) {
  const double area = static_cast<double>(size.width) * size.height;
  for (uint32_t attempt = 0; attempt < kTries; ++attempt) {
    const uint32_t first = 4 * attempt;
    const double erased = area * key.uniform(first, scale[0], scale[1]);
    const double aspect = std::exp(key.uniform(first + 1, std::log(ratio[0]), std::log(ratio[1])));
    const int height = round_half_even(std::sqrt(erased * aspect));
    const int width = round_half_even(std::sqrt(erased / aspect));
    if (height < size.height && width < size.width) {
      const auto y = static_cast<int>(key.below(first + 2, size.height - height + 1));
      const auto x = static_cast<int>(key.below(first + 3, size.width - width + 1));
      return {x, y, width, height};
    }
  }
  return {};
}

std::vector<double> three(const Arguments& arguments, const char* name) {
  std::vector<double> numbers = arguments.numbers(name);
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  if (numbers.size() != 3) arguments.refuse(name, "1 or 3 numbers");
  return numbers;
}

// Null: the box has a colour.
std::shared_ptr<const ErasingNoise> noise_of(const Arguments& arguments) {
  const std::vector<double> mean = three(arguments, "mean"), deviation = three(arguments, "std");
  if (!arguments.flag("noise")) return nullptr;
  return make_noise(mean, deviation);
}

StageActions make(const Arguments& arguments) {
  const auto scale = arguments.range("scale"), ratio = arguments.range("ratio");
  if (!(ratio[0] > 0)) arguments.refuse("ratio", "above 0");
  const Rgb colour = arguments.colour("value");
  const std::shared_ptr<const ErasingNoise> noise = noise_of(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    const Box box = random_box(scale, ratio, draws.size(), stage.key);
    if (box.width < 1 || box.height < 1) return;
    if (!noise) return add_fill(draws, box, colour);
    PixelStep& step = draws.add(
        kNoiseStep, {double(box.x), double(box.y), double(box.width), double(box.height)});
    step.object = noise.get();
    // The box takes the first numbers of the stage's key, and the noise has a key of its own.
    step.key = draws.key(stage.salt ^ 0x6E6F697365ull);
  }};
}

}  // namespace

const StageType kRandomErasing{
    .name = "random_erasing",
    .help = "A box at a random place filled with a colour, or with noise of a mean and deviation",
    .parameters = {{"p", ArgumentKind::real, "0.5", 0, 1},
                   {"scale", ArgumentKind::range, "(0.02, 0.33)", 0, 1},
                   {"ratio", ArgumentKind::range, "(0.3, 3.3)", 0, 1e4},
                   {"value", ArgumentKind::colour, "0", 0, 255},
                   {"noise", ArgumentKind::flag, "False"},
                   {"mean", ArgumentKind::reals, "(0.485, 0.456, 0.406)", 0, 1},
                   {"std", ArgumentKind::reals, "(0.229, 0.224, 0.225)", 0, 1}},
    .make = make};

const Stage* last_erasing(const StageList& stages) {
  if (stages.stages().empty()) return nullptr;
  const Stage& last = stages.stages().back();
  return last.type() == &kRandomErasing ? &last : nullptr;
}

std::optional<Erasing> draw_erasing(const Stage& stage, Size row, uint64_t seed, int64_t epoch,
                                    int64_t sample, Draws& draws) {
  draws.begin(row, row, seed, epoch, sample);
  stage.draw(draws);
  if (draws.steps().empty()) return {};
  const PixelStep& step = draws.steps().front();
  Erasing erasing{.box = crop_box(step), .colour = step.fill};
  if (step.kind == &kNoiseStep) erasing.noise = step.key;
  return erasing;
}

std::shared_ptr<const ErasingNoise> erasing_noise(const Stage& stage) {
  return noise_of(read_arguments(kRandomErasing, parse_stages(stage.describe())[0]));
}

}  // namespace stoker
