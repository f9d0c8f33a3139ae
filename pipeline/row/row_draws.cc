#include "pipeline/loader_types.h"

namespace stoker {

void draw_row(const AugmentSpec& spec, uint64_t seed, int64_t epoch, const RowNote& note,
              Draws& draws, int view) {
  if (note.pixels_of < 0) {
    draws.begin({1, 1}, spec.output, seed, epoch, note.pixels_of);
    return;
  }
  draw_augmentation(spec, note.source, repeat_seed(seed, note.repeat_index), epoch, note.pixels_of,
                    draws, view);
}

std::string row_steps_text(const AugmentSpec& spec, uint64_t seed, int64_t epoch,
                           const RowNote& note) {
  std::string text;
  if (note.pixels_of < 0) return text;
  Draws draws;
  for (int view = 0; view < spec.views(); ++view) {
    draw_row(spec, seed, epoch, note, draws, view);
    text.append(view == 0 ? "" : "\n").append(steps_text(draws.steps()));
  }
  return text;
}

}  // namespace stoker
