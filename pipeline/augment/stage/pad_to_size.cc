#include <stdexcept>
#include <string>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// Returns why an image cannot be padded to a size; "" if it can.
std::string larger_than(Size size, Size image) {
  if (image.width <= size.width && image.height <= size.height) return "";
  return "pad_to_size: an image of " + std::to_string(image.width) + " x " +
         std::to_string(image.height) + " pixels, the size is " + std::to_string(size.width) +
         " x " + std::to_string(size.height);
}

StageActions make_pad_to_size(const Arguments& arguments) {
  const std::optional<Size> given = arguments.size("size");
  const Rgb fill = arguments.colour("fill");
  return {[=](const StageKey&, Draws& draws) {
            const Size image = draws.size(), size = given.value_or(draws.output());
            if (image == size) return;
            const std::string problem = larger_than(size, image);
            if (!problem.empty()) return draws.fail(problem);
            add_pad(draws, {0, 0, size.width - image.width, size.height - image.height},
                    Padding::constant, fill);
          },
          [=](std::optional<Size> before, Size output) -> std::optional<Size> {
            const Size size = given.value_or(output);
            // The rows' size is not known yet, or the image's.
            if (size == Size{} || !before) return size;
            const std::string problem = larger_than(size, *before);
            if (!problem.empty()) throw std::invalid_argument("augment: " + problem);
            return size;
          }};
}

}  // namespace

const StageType kPadToSize{
    .name = "pad_to_size",
    .help = "Adds what is missing to a size, at the right and the bottom",
    .details =
        "How DETR and torchvision's detection nets make a batch of images of several sizes. A\n"
        "larger image is refused.",
    .parameters = {{"size", ArgumentKind::size, "", 1, kMaxSide},
                   {"fill", ArgumentKind::colour, "0", 0, 255}},
    .make = make_pad_to_size};

}  // namespace stoker
