#include <stdexcept>

#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr int kMaxViews = 64;

StageActions make_views(const Arguments&) {
  throw std::invalid_argument("augment: views must stand alone: views(LIST, LIST, counts=(2, 8))");
}

}  // namespace

const StageType kViews{
    .name = "views",
    .help = "Several rows of each sample, of one decoding: so many of each list. Stands alone",
    .details =
        "counts: 1 of each, if not given. As DINO and SimCLR need them:\n"
        "  views(random_resized_crop(224) | flip, random_resized_crop(96) | flip, counts=(2, 8))\n"
        "In Python, Batch.views has them.",
    .parameters = {{"stages", ArgumentKind::stages, nullptr},
                   {"counts", ArgumentKind::reals, "", 1, kMaxViews}},
    .make = make_views};

std::vector<AugmentView> views_of(const StageText& text) {
  const Arguments arguments = read_arguments(kViews, text);
  const std::vector<SharedStages>& lists = arguments.stages("stages");
  std::vector<double> counts = arguments.numbers("counts");
  if (counts.empty()) counts.assign(lists.size(), 1);
  if (counts.size() != lists.size()) arguments.refuse("counts", "a number for each list");
  std::vector<AugmentView> views;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (counts[i] != static_cast<int>(counts[i])) arguments.refuse("counts", "whole numbers");
    const Size size = lists[i]->size({}, {}).value_or(Size{});
    views.insert(views.end(), static_cast<size_t>(counts[i]), {size, *lists[i]});
  }
  if (views.size() > kMaxViews) {
    arguments.refuse("counts", "at most " + std::to_string(kMaxViews) + " in all");
  }
  return views;
}

}  // namespace stoker
