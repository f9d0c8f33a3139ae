#include <algorithm>
#include <string>

#include "pipeline/augment/dropped_text.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

// The pixels stay: who makes the row asks drops_text().
StageActions make_drop_text(const Arguments&) {
  return {[](const StageKey&, Draws&) {}};
}

bool is_drop_text(const Stage& stage) { return stage.type() == &kDropText; }

bool mentions_drop_text(const Stage& stage) {
  return stage.describe().find(kDropText.name) != std::string::npos;
}

}  // namespace

const StageType kDropText{
    .name = "drop_text",
    .help = "The sample's texts become empty, the pixels stay",
    .details =
        "Caption dropout, for classifier-free guidance. It stands in the list itself, not "
        "inside of\nanother stage or a view.",
    .parameters = {{"p", ArgumentKind::real, "0.1", 0, 1}},
    .make = make_drop_text};

bool drops_text(const StageList& stages, uint64_t seed, int64_t epoch, int64_t sample) {
  return std::ranges::any_of(stages.stages(), [&](const Stage& stage) {
    return is_drop_text(stage) && stage.is_applied(seed, epoch, sample);
  });
}

bool has_drop_text(const StageList& stages) {
  return std::ranges::any_of(stages.stages(), is_drop_text);
}

bool hides_drop_text(const StageList& stages) {
  return std::ranges::any_of(stages.stages(), [](const Stage& stage) {
    return !is_drop_text(stage) && mentions_drop_text(stage);
  });
}

}  // namespace stoker
