#include <stdexcept>

#include "pipeline/augment/stage/padding.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The numbers of the draws that shifted an image before there were lists.
enum CropDraw : uint32_t { kCropX = 67, kCropY };

struct Crop {
  std::optional<Size> size;
  std::array<int, 4> sides;
  Padding padding;
  Rgb fill;
  bool pad_if_needed;
};

std::string too_small(Size wanted, Size image) {
  return "random_crop: " + std::to_string(wanted.width) + " x " + std::to_string(wanted.height) +
         " pixels of an image of " + std::to_string(image.width) + " x " +
         std::to_string(image.height) + "; padding or pad_if_needed make it larger";
}

void add_checked_pad(const Crop& crop, const std::array<int, 4>& sides, Draws& draws) {
  // None is negative. A comparison of arrays is a call of memcmp(), for every row.
  if ((sides[0] | sides[1] | sides[2] | sides[3]) == 0) return;
  const std::string problem = padding_problem(draws.size(), sides, crop.padding);
  if (!problem.empty()) return draws.fail("random_crop: " + problem);
  add_pad(draws, sides, crop.padding, crop.fill);
}

// As torchvision's RandomCrop. It pads a too narrow image by what is missing, on both sides.
void draw_crop(const Crop& crop, const RandomKey& key, Draws& draws) {
  const Size size = crop.size.value_or(draws.output());
  add_checked_pad(crop, crop.sides, draws);
  if (crop.pad_if_needed && draws.failure().empty()) {
    const int wide = std::max(size.width - draws.size().width, 0);
    add_checked_pad(crop, {wide, 0, wide, 0}, draws);
    const int high = std::max(size.height - draws.size().height, 0);
    add_checked_pad(crop, {0, high, 0, high}, draws);
  }
  if (!draws.failure().empty()) return;
  const Size padded = draws.size();
  if (padded.width < size.width || padded.height < size.height) {
    return draws.fail(too_small(size, padded));
  }
  const auto x = static_cast<int>(key.below(kCropX, padded.width - size.width + 1));
  const auto y = static_cast<int>(key.below(kCropY, padded.height - size.height + 1));
  add_crop(draws, {x, y, size.width, size.height});
}

std::optional<Size> size_after(const Crop& crop, std::optional<Size> before, Size output) {
  const Size size = crop.size.value_or(output);
  if (!before) return size;
  const std::string problem = padding_problem(*before, crop.sides, crop.padding);
  if (!problem.empty()) throw std::invalid_argument("augment: random_crop: " + problem);
  const Size padded{before->width + crop.sides[0] + crop.sides[2],
                    before->height + crop.sides[1] + crop.sides[3]};
  const bool fits = padded.width >= size.width && padded.height >= size.height;
  if (!fits && !crop.pad_if_needed) {
    throw std::invalid_argument("augment: " + too_small(size, padded));
  }
  return size;
}

StageActions make_random_crop(const Arguments& arguments) {
  const Crop crop{arguments.size("size"), padding_sides(arguments, "padding"),
                  static_cast<Padding>(arguments.choice("mode")), arguments.colour("fill"),
                  arguments.flag("pad_if_needed")};
  return {
      [=](const StageKey& stage, Draws& draws) { draw_crop(crop, stage.key, draws); },
      [=](std::optional<Size> before, Size output) { return size_after(crop, before, output); }};
}

}  // namespace

const StageType kRandomCrop{
    .name = "random_crop",
    .help = "A box at a random place, after padding",
    .details = "torchvision's RandomCrop; the padding is that of pad.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"padding", ArgumentKind::reals, "0", 0, kMaxSide},
                   {"mode", ArgumentKind::choice, "constant", 0, 0, kPaddingNames},
                   {"fill", ArgumentKind::colour, "0", 0, 255},
                   {"pad_if_needed", ArgumentKind::flag, "False"}},
    .make = make_random_crop,
    .shares_key = true};

}  // namespace stoker
