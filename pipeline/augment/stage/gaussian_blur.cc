#include "decode/pixel/blur.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

void gaussian_blur_step(const PixelStep& step, ImageView image, MutableImageView out,
                        PixelScratch& scratch) {
  const auto kernel_x = static_cast<int>(step.values[0]),
             kernel_y = static_cast<int>(step.values[1]);
  const double sigma = step.values[2];
  gaussian_blur(image, kernel_x, kernel_y, sigma, sigma, out, scratch);
}

const PixelKind kGaussianBlurStep{.name = "gaussian_blur",
                                  .values = {"kernel_x", "kernel_y", "sigma"},
                                  .make = gaussian_blur_step};

// As torchvision's GaussianBlur.
StageActions make_gaussian_blur(const Arguments& arguments) {
  const std::optional<Size> kernel = arguments.size("kernel_size");
  if (kernel->width % 2 == 0 || kernel->height % 2 == 0) {
    arguments.refuse("kernel_size", "odd");
  }
  // clang 14 lets no lambda capture the names of a structured binding.
  const std::array<double, 2> range = arguments.range("sigma");
  const double least = range[0], most = range[1];
  if (!(least > 0)) arguments.refuse("sigma", "above 0");
  return {[=](const StageKey& stage, Draws& draws) {
    const double sigma = least == most ? least : stage.key.uniform(0, least, most);
    const Size size = draws.size();
    if (kernel->width / 2 >= size.width || kernel->height / 2 >= size.height) {
      return draws.fail("gaussian_blur: the kernel is too large for an image of " +
                        std::to_string(size.width) + " x " + std::to_string(size.height));
    }
    draws.add(kGaussianBlurStep, {double(kernel->width), double(kernel->height), sigma});
  }};
}

}  // namespace

const StageType kGaussianBlur{
    .name = "gaussian_blur",
    .help = "torchvision's blur: a kernel of some pixels, and a sigma drawn from a range",
    .details = "torchvision's GaussianBlur. kernel_size: odd; of a pair the height and the width.",
    .parameters = {{"kernel_size", ArgumentKind::size, nullptr, 1, 255},
                   {"sigma", ArgumentKind::range, "(0.1, 2)", 0, 1e3},
                   kProbability},
    .make = make_gaussian_blur};

}  // namespace stoker
