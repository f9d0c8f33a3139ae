#include "pipeline/loader_types.h"

namespace stoker {

void draw_row(const AugmentSpec& spec, uint64_t seed, int64_t epoch, const RowNote& note,
              Draws& draws) {
  if (note.pixels_of < 0) {
    draws.begin({1, 1}, spec.output, seed, epoch, note.pixels_of);
    return;
  }
  draw_augmentation(spec, note.source, appearance_seed(seed, note.appearance), epoch,
                    note.pixels_of, draws);
}

}  // namespace stoker
