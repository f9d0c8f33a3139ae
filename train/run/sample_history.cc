#include "train/run/sample_history.h"

#include <optional>
#include <stdexcept>

#include "train/run/step_log.h"

namespace stoker {
namespace {

void add_row(const KeptRow& row, SampleHistory& history) {
  ++history.seen;
  history.loss_sum += row.loss;
  if (row.right) {
    ++history.right;
  } else if (history.was_right) {
    ++history.forgotten;
  }
  history.was_right = row.right;
}

}  // namespace

std::vector<SampleHistory> sample_histories(const std::string& run, const TrainOptions& options,
                                            const RunPlace& place, int64_t samples) {
  const int batch = options.recipe.batch;
  RowLossFile file(run, batch);
  if (file.count() == 0) {
    throw std::runtime_error(run + " has no row_losses.bin: train --row-losses keeps them");
  }
  const Sampler sampler = sampler_of(options, place, samples);
  std::vector<SampleHistory> histories(static_cast<size_t>(samples));
  std::vector<RowLoss> rows(static_cast<size_t>(batch));
  std::optional<EpochKey> key;
  int64_t epoch_of_key = -1;
  for (int64_t i = 0; i < file.count(); ++i) {
    const int64_t fed = file.read(i, rows) - place.more_steps;
    if (fed < 0) throw std::runtime_error(run + "/row_losses.bin is not of this run's steps");
    const int64_t epoch = fed / sampler.steps_per_epoch();
    if (epoch != epoch_of_key) key = sampler.key(epoch_of_key = epoch);
    for (int row = 0; row < batch; ++row) {
      const auto kept = from_row_loss(rows[static_cast<size_t>(row)]);
      if (!kept) continue;
      const SampleId id = sampler.row(*key, fed % sampler.steps_per_epoch(), 0, row).id;
      add_row(*kept, histories[static_cast<size_t>(id)]);
    }
  }
  return histories;
}

}  // namespace stoker
