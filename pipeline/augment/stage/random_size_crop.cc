#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

enum SizeCropDraw : uint32_t { kSizeCropWidth, kSizeCropHeight, kSizeCropX, kSizeCropY };

StageActions make_random_size_crop(const Arguments& arguments) {
  const int least = arguments.whole("min_size"), most = arguments.whole("max_size");
  if (most < least) arguments.refuse("max_size", "min_size or more");
  return {[=](const StageKey& stage, Draws& draws) {
            const auto drawn_below = [&](SizeCropDraw draw, int bound) {
              return static_cast<int>(stage.key.below(draw, bound));
            };
            const auto side_of = [&](SizeCropDraw draw, int side) {
              const int shortest = std::min(least, side), longest = std::min(most, side);
              return shortest + drawn_below(draw, longest - shortest + 1);
            };
            const Size image = draws.size();
            const int width = side_of(kSizeCropWidth, image.width);
            const int height = side_of(kSizeCropHeight, image.height);
            add_crop(draws, {drawn_below(kSizeCropX, image.width - width + 1),
                             drawn_below(kSizeCropY, image.height - height + 1), width, height});
          },
          no_one_size};
}

}  // namespace

const StageType kRandomSizeCrop{
    .name = "random_size_crop",
    .help = "A box with sides of random lengths, at a random place",
    .details =
        "DETR's RandomSizeCrop: the width and the height are each min_size to max_size pixels,\n"
        "and at most the image's. An image whose side is shorter than min_size keeps that side;\n"
        "DETR's raises an error.",
    .parameters = {{"min_size", ArgumentKind::whole, nullptr, 1, kMaxSide},
                   {"max_size", ArgumentKind::whole, nullptr, 1, kMaxSide}},
    .make = make_random_size_crop};

}  // namespace stoker
