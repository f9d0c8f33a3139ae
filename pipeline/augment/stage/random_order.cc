#include <numeric>

#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

constexpr size_t kMaxStages = 16;

// Fisher and Yates.
void draw_in_random_order(const StageList& list, const RandomKey& key, Draws& draws) {
  std::array<uint8_t, kMaxStages> order;
  std::iota(order.begin(), order.end(), uint8_t{0});
  const std::span<const Stage> stages = list.stages();
  for (size_t left = stages.size(); left > 0; --left) {
    const auto chosen =
        static_cast<size_t>(key.below(static_cast<uint32_t>(left), static_cast<int64_t>(left)));
    stages[order[chosen]].draw(draws);
    order[chosen] = order[left - 1];
  }
}

StageActions make_random_order(const Arguments& arguments) {
  const SharedStages stages = arguments.stages("stages")[0];
  if (stages->stages().size() > kMaxStages) {
    arguments.refuse("stages", "at most " + std::to_string(kMaxStages) + " stages");
  }
  return {
      [=](const StageKey& stage, Draws& draws) { draw_in_random_order(*stages, stage.key, draws); },
      [=](std::optional<Size> before, Size output) -> std::optional<Size> {
        for (const Stage& stage : stages->stages()) {
          if (stage.size(before, output) != before) return {};
        }
        return before;
      }};
}

}  // namespace

const StageType kRandomOrder{
    .name = "random_order",
    .help = "A list of stages in a random order",
    .parameters = {{"stages", ArgumentKind::stages, nullptr, 1, 1}, kProbability},
    .make = make_random_order};

}  // namespace stoker
