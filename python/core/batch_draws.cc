#include "python/core/batch_draws.h"

#include "pipeline/random_key.h"

namespace stoker::python {
namespace {

std::string mix_text_of(const RowMix& mix) {
  std::string text = mix.draw.kind == MixKind::mixup ? "mixup(" : "cutmix(";
  if (mix.draw.kind == MixKind::cutmix) {
    const auto [x, y, width, height] = mix.draw.box;
    text += "x=" + std::to_string(x) + ", y=" + std::to_string(y) +
            ", width=" + std::to_string(width) + ", height=" + std::to_string(height) + ", ";
  }
  return text + "own_share=" + number_text(double{mix.draw.own_share}) +
         ", partner=" + std::to_string(mix.partner) + ")";
}

std::string row_text(const BatchDraws& batch, const RowNote& note, Draws& draws) {
  if (note.pixels_of < 0) return "";
  draw_row(*batch.augment, batch.seed, batch.epoch, note, draws);
  std::string text = steps_text(draws.steps());
  // Other views differ from the first only in which list is drawn.
  const uint64_t seed = appearance_seed(batch.seed, note.appearance);
  for (int view = 1; view < batch.augment->views(); ++view) {
    draw_augmentation(*batch.augment, note.source, seed, batch.epoch, note.pixels_of, draws, view);
    text.append("\n").append(steps_text(draws.steps()));
  }
  if (note.mix.draw.kind == MixKind::none || note.mix.partner < 0) return text;
  return text.append(text.empty() ? "" : " | ").append(mix_text_of(note.mix));
}

}  // namespace

std::vector<std::string> BatchDraws::texts() const {
  std::vector<std::string> texts;
  Draws draws;
  for (const RowNote& note : notes) texts.push_back(row_text(*this, note, draws));
  return texts;
}

std::shared_ptr<const BatchDraws> draws_of(std::shared_ptr<const AugmentSpec> augment,
                                           uint64_t seed, const DeviceBatch& batch) {
  auto draws = std::make_shared<BatchDraws>();
  draws->augment = std::move(augment);
  draws->seed = seed;
  draws->epoch = batch.header().epoch;
  const RowNote* notes = row_notes(batch);
  draws->notes.assign(notes, notes + batch.shape().rows);
  return draws;
}

}  // namespace stoker::python
