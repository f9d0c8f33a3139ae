#include <numeric>

#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

std::optional<Size> common_size(const std::vector<SharedStages>& lists, std::optional<Size> before,
                                Size output) {
  const std::optional<Size> first = lists[0]->size(before, output);
  bool same = true;
  for (const SharedStages& list : lists) same = list->size(before, output) == first && same;
  return same ? first : std::nullopt;
}

StageActions make_random_choice(const Arguments& arguments) {
  const std::vector<SharedStages> lists = arguments.stages("stages");
  std::vector<double> weights = arguments.numbers("weights");
  if (weights.empty()) weights.assign(lists.size(), 1);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (weights.size() != lists.size() || !(sum > 0)) {
    arguments.refuse("weights", "a number for each list, not all of them 0");
  }
  return {
      [=](const StageKey& stage, Draws& draws) {
        double left = stage.key.uniform(0) * sum;
        size_t chosen = 0;
        while (chosen + 1 < lists.size() && left >= weights[chosen]) left -= weights[chosen++];
        lists[chosen]->draw(draws);
      },
      [=](std::optional<Size> before, Size output) { return common_size(lists, before, output); }};
}

}  // namespace

const StageType kRandomChoice{
    .name = "random_choice",
    .help = "One of several lists of stages, by equal chances or by weights",
    .parameters = {{"stages", ArgumentKind::stages, nullptr},
                   {"weights", ArgumentKind::reals, "", 0, 1e9},
                   kProbability},
    .make = make_random_choice};

}  // namespace stoker
