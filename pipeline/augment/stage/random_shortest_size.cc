#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stage/rounding.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// As torchvision's RandomShortestSize.
Size by_shortest(Size image, int shortest, int longest) {
  const auto [shorter, longer] = std::minmax(image.width, image.height);
  double ratio = static_cast<double>(shortest) / shorter;
  if (longest > 0) ratio = std::min(ratio, static_cast<double>(longest) / longer);
  return {truncated_side(image.width * ratio), truncated_side(image.height * ratio)};
}

StageActions make_random_shortest_size(const Arguments& arguments) {
  std::vector<int> sizes;
  for (const double size : arguments.numbers("min_size")) {
    if (size != std::floor(size)) arguments.refuse("min_size", "whole numbers");
    sizes.push_back(static_cast<int>(size));
  }
  if (sizes.empty()) arguments.refuse("min_size", "one number or more");
  const int longest = arguments.whole("max_size");
  const auto filter = static_cast<Filter>(arguments.choice("filter"));
  return {[=](const StageKey& stage, Draws& draws) {
            const int64_t chosen = stage.key.below(0, static_cast<int64_t>(sizes.size()));
            const int shortest = sizes[static_cast<size_t>(chosen)];
            add_resize(draws, by_shortest(draws.size(), shortest, longest), filter);
          },
          [=](std::optional<Size> before, Size) -> std::optional<Size> {
            if (!before || sizes.size() > 1) return {};
            return by_shortest(*before, sizes.front(), longest);
          }};
}

}  // namespace

const StageType kRandomShortestSize{
    .name = "random_shortest_size",
    .help = "Resizes so that the short side has one of some lengths, at random",
    .details =
        "torchvision's RandomShortestSize. The long side has at most max_size (0: any); the\n"
        "other one is shorter then. A length that is there twice is chosen twice as often.",
    .parameters = {{"min_size", ArgumentKind::reals, nullptr, 1, kMaxSide},
                   {"max_size", ArgumentKind::whole, "0", 0, kMaxSide},
                   {"filter", ArgumentKind::choice, "bilinear", 0, 0, kFilterNames}},
    .make = make_random_shortest_size};

}  // namespace stoker
