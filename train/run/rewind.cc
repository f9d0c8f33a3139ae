#include "train/run/rewind.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/receipt/files.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

LoaderOptions loader_options_of(const TrainOptions& options, const RunPlace& place, int64_t step) {
  LoaderOptions feed = feed_of(options);
  feed.first_step = step - place.more_steps;
  feed.grid = place.grid;
  feed.digests = true;
  feed.ring_depth = 1;
  feed.slots = 0;
  feed.feed.max_bad = std::numeric_limits<int32_t>::max();  // the run went on, too
  feed.feed.cache = nullptr;
  return feed;
}

// Returns the step at which a run last went on with another batch; 0: it never did.
int64_t last_change(const std::string& run) {
  const std::string prefix = fs::path(aside_folder(run, 0)).filename().string().substr(0, 12);
  int64_t last = 0;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(run, missing)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    int64_t step = 0;
    const char* const end = name.data() + name.size();
    if (std::from_chars(name.data() + prefix.size(), end, step).ptr == end) {
      last = std::max(last, step);
    }
  }
  return last;
}

// Returns the rows of a receipt's step, or nothing if it has not kept them.
std::span<const RowRecord> rows_of(const ReceiptData& receipt, size_t step) {
  size_t first = 0;
  for (size_t i = 0; i < step; ++i) first += receipt.steps[i].rows;
  const size_t count = receipt.steps[step].rows;
  if (first + count > receipt.rows.size()) return {};
  return std::span(receipt.rows).subspan(first, count);
}

// The rows that count, in the order of the receipt's.
std::vector<int> changed_rows(const FedStep& step, std::span<const RowRecord> kept) {
  std::vector<int> changed;
  size_t at = 0;
  for (int row = 0; row < step.rows(); ++row) {
    const RowNote& note = row_notes(step.batch())[row];
    if (!note.counts) continue;
    const RowRecord now{static_cast<uint32_t>(step.batch().ids()[row]),
                        static_cast<uint32_t>(note.digest)};
    if (at >= kept.size() || kept[at] != now) changed.push_back(row);
    ++at;
  }
  return changed;
}

}  // namespace

RunPlace place_of_run(const std::string& run) {
  auto progress = newest_progress(checkpoint_folder(run));
  if (!progress) progress = newest_progress(checkpoint_folder(run, 0));
  if (!progress) return {};
  return {progress->step - progress->loader.next_step, progress->loader.grid, last_change(run)};
}

Sampler sampler_of(const TrainOptions& options, const RunPlace& place, int64_t samples) {
  return Sampler({.samples = samples,
                  .rows = options.recipe.batch,
                  .seed = options.seed,
                  .last_batch = options.recipe.last_batch,
                  .grid = place.grid,
                  .order = options.order});
}

FedStep::FedStep(const Source& source, const TrainOptions& options, const RunPlace& place,
                 int64_t step)
    : train_(source, options.limit_train),
      device_(make_host_device()),
      stream_(device_->make_stream()) {
  if (step >= 0 && step < place.first_step) {
    throw std::invalid_argument(fmt::format(
        "step {} is of another batch: from step {} on the run has a global batch of {}, and only "
        "those steps can be rewound",
        step, place.first_step, options.recipe.batch));
  }
  const int64_t steps_per_epoch = sampler_of(options, place, train_.size()).steps_per_epoch();
  const int64_t end = steps_of(options.recipe.epochs, steps_per_epoch) + place.more_steps;
  if (step < 0 || step >= end) {
    throw std::invalid_argument(
        fmt::format("step {}: the run's recipe has steps 0 to {}", step, end - 1));
  }
  loader_ = std::make_unique<Loader>(train_, options.recipe.train, std::vector{device_.get()},
                                     loader_options_of(options, place, step));
  batch_ = loader_->next(0, *stream_);
  batch_.synchronize();
}

StepRecord FedStep::record() const {
  StepRecord record{.epoch_sum = {}, .epoch = static_cast<uint32_t>(batch_.header().epoch)};
  for (int row = 0; row < rows(); ++row) {
    const RowNote& note = row_notes(batch_)[row];
    if (note.counts) record.add(batch_.ids()[row], note.digest, row);
  }
  return record;
}

ReceiptCheck check_receipt(const std::string& run, const FedStep& step, int64_t feed_step) {
  if (!std::filesystem::exists(run + "/receipt.json")) {
    return {.text = "the run has no receipt: whether the pixels are the same cannot be told"};
  }
  const ReceiptData receipt = read_receipt(run);
  const std::string other =
      receipt.json.at("fingerprint") == hex64(step.fingerprint())
          ? ""
          : "; labels, augmentation, order or policies are not those of the run";
  const int64_t index = feed_step - receipt.first_step;
  if (index < 0 || index >= std::ssize(receipt.steps)) {
    return {.text =
                "the receipt, which is saved with checkpoints, does not have this step: whether "
                "the pixels are the same cannot be told" +
                other};
  }
  const auto at = static_cast<size_t>(index);
  ReceiptCheck check{.kept = true};
  check.same = receipt.steps[at].digest == step.record().digest;
  check.text = "the pixels are those of the receipt";
  if (check.same) return check;
  check.text = "the pixels are NOT those of the receipt" + other;
  const std::span<const RowRecord> kept = rows_of(receipt, at);
  if (kept.empty()) return check;
  check.changed = changed_rows(step, kept);
  check.text += fmt::format("; {} of {} rows have changed", check.changed.size(), step.rows());
  return check;
}

}  // namespace stoker
