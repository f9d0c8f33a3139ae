#include "python/core/batch_draws.h"

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

std::string row_text(const BatchDraws& batch, const RowNote& note) {
  std::string text = row_steps_text(*batch.augment, batch.seed, batch.epoch, note,
                                    batch.source.get(), batch.decode);
  if (note.mix.draw.kind == MixKind::none || note.mix.partner < 0) return text;
  return text.append(text.empty() ? "" : " | ").append(mix_text_of(note.mix));
}

}  // namespace

std::vector<std::string> BatchDraws::texts() const {
  std::vector<std::string> texts;
  for (const RowNote& note : notes) texts.push_back(row_text(*this, note));
  return texts;
}

std::shared_ptr<const BatchDraws> draws_of(std::shared_ptr<const AugmentSpec> augment,
                                           std::shared_ptr<const Source> source, uint64_t seed,
                                           const DecodeOptions& decode, const DeviceBatch& batch) {
  auto draws = std::make_shared<BatchDraws>();
  draws->augment = std::move(augment);
  if (source->annotations().any()) draws->source = std::move(source);
  draws->seed = seed;
  draws->decode = decode;
  draws->epoch = batch.header().epoch;
  const RowNote* notes = row_notes(batch);
  draws->notes.assign(notes, notes + batch.shape().rows);
  return draws;
}

}  // namespace stoker::python
