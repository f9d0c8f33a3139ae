#include <algorithm>
#include <memory>
#include <span>

#include "pipeline/augment/erasing.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr int kErasingTries = 10;  // each takes four numbers, from draw 0 on

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

// A draw has the bits of this many bytes. Three draws have those of five pixels.
constexpr size_t kDrawBytes = 64 / kQuantileBits;

// Makes the bytes of whole pixels. There are 3 n draws, and as many bytes as they have.
void choose_bytes(const ErasingNoise& noise, std::span<const uint64_t> draws, uint8_t* bytes) {
  for (size_t first = 0; first < draws.size(); first += 3) {
    // The compiler unrolls both loops, so that no channel is computed.
    for (size_t i = 0; i < 3; ++i) {
      const uint64_t bits = draws[first + i];
      for (size_t k = 0; k < kDrawBytes; ++k, ++bytes) {
        *bytes = noise[(i * kDrawBytes + k) % 3][(bits >> (k * kQuantileBits)) % kQuantiles];
      }
    }
  }
}

// Writes bytes into a box line by line, from its upper left corner on.
class BoxWriter {
 public:
  BoxWriter(MutableImageView image, const Box& box) : image_(image), box_(box) {}

  void write(std::span<const uint8_t> bytes) {
    const size_t line_bytes = 3 * static_cast<size_t>(box_.width);
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), line_bytes - written_);
      uint8_t* line = image_.data + (box_.y + line_) * image_.stride_bytes + ptrdiff_t{3} * box_.x;
      std::copy_n(bytes.data(), count, line + written_);
      bytes = bytes.subspan(count);
      written_ += count;
      if (written_ < line_bytes) return;
      ++line_;
      written_ = 0;
    }
  }

 private:
  const MutableImageView image_;
  const Box box_;
  int line_ = 0;        // of the box
  size_t written_ = 0;  // bytes of this line
};

// Fills the box with noise, from so many draws at once that vectors make them.
void fill_noise(const PixelStep& step, MutableImageView image, PixelScratch&) {
  std::array<uint64_t, 192> draws;
  std::array<uint8_t, draws.size() * kDrawBytes> bytes;
  const Box box = crop_box(step);
  BoxWriter writer(image, box);
  size_t left = 3 * static_cast<size_t>(box.width) * static_cast<size_t>(box.height);
  for (uint32_t first = 0; left > 0; first += static_cast<uint32_t>(draws.size())) {
    const size_t count = std::min(left, bytes.size());
    const size_t triples = (count + 3 * kDrawBytes - 1) / (3 * kDrawBytes);
    const auto needed = std::span(draws).first(3 * triples);
    step.key.bits(first, needed);
    choose_bytes(*static_cast<const ErasingNoise*>(step.object), needed, bytes.data());
    writer.write(std::span(bytes).first(count));
    left -= count;
  }
}

const PixelKind kNoiseStep{
    .name = "noise", .values = {"x", "y", "width", "height"}, .change = fill_noise};

// As torchvision's RandomErasing: a box inside the image, or none after ten tries. (There, the
// whole image is then replaced by itself.)
Box random_erasing_box(std::array<double, 2> scale, std::array<double, 2> ratio, Size size,
                       const RandomKey& key) {
  const double area = static_cast<double>(size.width) * size.height;
  for (uint32_t attempt = 0; attempt < kErasingTries; ++attempt) {
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

StageActions make_random_erasing(const Arguments& arguments) {
  const auto scale = arguments.range("scale"), ratio = arguments.range("ratio");
  if (!(ratio[0] > 0)) arguments.refuse("ratio", "above 0");
  const Rgb colour = arguments.colour("value");
  const std::shared_ptr<const ErasingNoise> noise = noise_of(arguments);
  return {[=](const StageKey& stage, Draws& draws) {
    const Box box = random_erasing_box(scale, ratio, draws.size(), stage.key);
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
    .details = "torchvision's RandomErasing; mean and std are of pixels / 255.",
    .parameters = {{"p", ArgumentKind::real, "0.5", 0, 1},
                   {"scale", ArgumentKind::range, "(0.02, 0.33)", 0, 1},
                   {"ratio", ArgumentKind::range, "(0.3, 3.3)", 0, 1e4},
                   {"value", ArgumentKind::colour, "0", 0, 255},
                   {"noise", ArgumentKind::flag, "False"},
                   {"mean", ArgumentKind::reals, "(0.485, 0.456, 0.406)", 0, 1},
                   {"std", ArgumentKind::reals, "(0.229, 0.224, 0.225)", 0, 1}},
    .make = make_random_erasing};

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
