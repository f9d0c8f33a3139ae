#include <optional>
#include <vector>

#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// A round takes a number for its overlap, and four for each of its trials.
enum IouCropDraw : uint32_t { kIouWidth = 1, kIouHeight, kIouLeft, kIouTop, kIouTrial = 4 };

// torchvision goes on until a round wants an overlap of 1 or more, which is the whole image.
// Without such an option, and where no crop does, it would never end.
constexpr uint32_t kIouRounds = 256;

struct IouCrop {
  std::array<double, 2> scale, aspect;
  std::vector<double> options;
  uint32_t trials;
};

// The share of a box and a crop in what both have together.
double overlap(const std::array<double, 4>& box, const Box& crop) {
  const auto [x0, y0, x1, y1] = box;
  const double width = std::min(x1, double(crop.x) + crop.width) - std::max(x0, double(crop.x));
  const double height = std::min(y1, double(crop.y) + crop.height) - std::max(y0, double(crop.y));
  const double both = std::max(width, 0.0) * std::max(height, 0.0);
  return both / ((x1 - x0) * (y1 - y0) + double(crop.width) * crop.height - both);
}

bool has_centre(const std::array<double, 4>& box, const Box& crop) {
  const double x = 0.5 * (box[0] + box[2]), y = 0.5 * (box[1] + box[3]);
  return crop.x < x && x < crop.x + crop.width && crop.y < y && y < crop.y + crop.height;
}

// Whether a box whose centre lies in the crop overlaps it enough.
bool shows_enough(std::span<const AnnotatedObject> objects, const Box& crop, double least) {
  return std::ranges::any_of(objects, [&](const AnnotatedObject& object) {
    return has_centre(object.box, crop) && overlap(object.box, crop) >= least;
  });
}

// One trial; nothing if its box is not of the shape that is wanted.
std::optional<Box> draw_iou_box(const IouCrop& rule, Size image, const RandomKey& key,
                                uint32_t first) {
  const auto share = [&](uint32_t number) {
    return key.uniform(first + number, rule.scale[0], rule.scale[1]);
  };
  const int width = static_cast<int>(image.width * share(kIouWidth));
  const int height = static_cast<int>(image.height * share(kIouHeight));
  if (width < 1 || height < 1) return {};
  const double aspect = static_cast<double>(width) / height;
  if (!(rule.aspect[0] <= aspect && aspect <= rule.aspect[1])) return {};
  return Box{static_cast<int>((image.width - width) * key.uniform(first + kIouLeft)),
             static_cast<int>((image.height - height) * key.uniform(first + kIouTop)), width,
             height};
}

// As torchvision's RandomIoUCrop.make_params. Nothing: the whole image.
std::optional<Box> find_iou_crop(const IouCrop& rule, Size image,
                                 std::span<const AnnotatedObject> objects, const RandomKey& key) {
  for (uint32_t round = 0; round < kIouRounds; ++round) {
    const uint32_t first = round * (1 + kIouTrial * rule.trials);
    const int64_t chosen = key.below(first, static_cast<int64_t>(rule.options.size()));
    const double least = rule.options[static_cast<size_t>(chosen)];
    if (least >= 1) return {};
    for (uint32_t trial = 0; trial < rule.trials; ++trial) {
      const std::optional<Box> crop = draw_iou_box(rule, image, key, first + kIouTrial * trial);
      if (crop && shows_enough(objects, *crop, least)) return crop;
    }
  }
  return {};
}

void draw_iou_crop(const IouCrop& rule, const RandomKey& key, Draws& draws) {
  if (!draws.has_objects()) return draws.fail("random_iou_crop: the data have no boxes");
  const std::span<const AnnotatedObject> objects = draws.boxes();
  if (objects.empty()) return;
  const std::optional<Box> crop = find_iou_crop(rule, draws.size(), objects, key);
  if (!crop) return;
  draws.add(kKeepCentersStep,
            {double(crop->x), double(crop->y), double(crop->width), double(crop->height)});
  add_crop(draws, *crop);
}

StageActions make_random_iou_crop(const Arguments& arguments) {
  const IouCrop rule{
      .scale = {arguments.real("min_scale"), arguments.real("max_scale")},
      .aspect = {arguments.real("min_aspect_ratio"), arguments.real("max_aspect_ratio")},
      .options = arguments.numbers("sampler_options"),
      .trials = static_cast<uint32_t>(arguments.whole("trials"))};
  if (rule.scale[0] > rule.scale[1]) arguments.refuse("max_scale", "min_scale or more");
  if (rule.aspect[0] > rule.aspect[1]) {
    arguments.refuse("max_aspect_ratio", "min_aspect_ratio or more");
  }
  if (rule.options.empty()) arguments.refuse("sampler_options", "one number or more");
  return {[=](const StageKey& stage, Draws& draws) { draw_iou_crop(rule, stage.key, draws); },
          no_one_size};
}

}  // namespace

const StageType kRandomIouCrop{
    .name = "random_iou_crop",
    .help = "A random box that shows the centre of an object, and enough of it; or the whole image",
    .details =
        "torchvision's RandomIoUCrop (Liu et al., \"SSD\", 2016). sampler_options: the overlaps\n"
        "(intersection over union with an object's box), one of which is chosen; 1 or more:\n"
        "the whole image. Boxes whose centre is not shown become empty: sanitize_boxes drops\n"
        "them. An image without objects stays whole.",
    .parameters = {{"min_scale", ArgumentKind::real, "0.3", 0, 1},
                   {"max_scale", ArgumentKind::real, "1", 0, 1},
                   {"min_aspect_ratio", ArgumentKind::real, "0.5", 0, 1e4},
                   {"max_aspect_ratio", ArgumentKind::real, "2", 0, 1e4},
                   {"sampler_options", ArgumentKind::reals, "(0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)", 0,
                    10},
                   {"trials", ArgumentKind::whole, "40", 1, 1e4}},
    .make = make_random_iou_crop};

}  // namespace stoker
