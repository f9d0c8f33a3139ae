#include "pipeline/loader_types.h"
#include "pipeline/row/combined_row.h"

namespace stoker {

void draw_row(const AugmentSpec& spec, uint64_t seed, int64_t epoch, const RowNote& note,
              Draws& draws, int view) {
  if (note.pixels_of < 0 || spec.combines()) {
    const Size source = note.pixels_of < 0 ? Size{1, 1} : note.source;
    draws.begin(source, note.size == Size{} ? spec.output : note.size, seed, epoch, note.pixels_of);
    return;
  }
  const bool is_further = spec.has_pictures() && view > 0;
  const Size source = is_further ? note.picture_sizes[static_cast<size_t>(view) - 1] : note.source;
  draw_augmentation(spec, source, repeat_seed(seed, note.repeat_index), epoch, note.pixels_of,
                    draws, view, note.size);
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

namespace {

std::string combined_steps_text(const AugmentSpec& spec, uint64_t seed, int64_t epoch,
                                const RowNote& note, const Source& source,
                                const DecodeOptions& decode) {
  SampleBytes own;
  std::vector<uint8_t> buffer;
  own.status = source.read(note.pixels_of, buffer, own.bytes);
  if (!own.status.ok) return own.status.message;
  Augmenter augmenter(spec, decode);
  CombinedRow row(source, spec, decode, {});
  const DecodeStatus status = row.draw_again(
      augmenter, {repeat_seed(seed, note.repeat_index), epoch, note.pixels_of}, own, note);
  return status.ok() ? row.describe() : status.message;
}

}  // namespace

std::string row_steps_text(const AugmentSpec& spec, uint64_t seed, int64_t epoch,
                           const RowNote& note, const Source* source, const DecodeOptions& decode) {
  std::string text;
  if (note.pixels_of < 0) return text;
  if (spec.combines()) {
    return source ? combined_steps_text(spec, seed, epoch, note, *source, decode) : text;
  }
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
