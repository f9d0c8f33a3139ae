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

ReadStatus read_row_annotations(const Source& source, const RowNote& note, Annotations& out) {
  out.clear();
  if (note.pixels_of < 0) return {};
  ReadStatus status = source.read_annotations(note.pixels_of, {}, out);
  if (status.ok) return status;
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  status = source.read(note.pixels_of, buffer, bytes);
  if (!status.ok) return status;
  status = source.read_annotations(note.pixels_of, bytes, out);
  out.label_file = {};  // it may lie in the buffer
  return status;
}

std::string row_steps_text(const AugmentSpec& spec, uint64_t seed, int64_t epoch,
                           const RowNote& note, const Source* source) {
  std::string text;
  if (note.pixels_of < 0) return text;
  Draws draws;
  Annotations annotations;
  if (source && source->annotations().objects) {
    read_row_annotations(*source, note, annotations);
    draws.carry(&annotations, 0);
  }
  for (int view = 0; view < spec.views(); ++view) {
    draw_row(spec, seed, epoch, note, draws, view);
    text.append(view == 0 ? "" : "\n").append(steps_text(draws.steps()));
  }
  return text;
}

}  // namespace stoker
