#include "pipeline/row/quarantine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/source/sample_checker.h"

namespace stoker {
namespace {

constexpr size_t kNamesInMessage = 5;
// Devices of one loader are at most a few steps apart, so records of older epochs are never used
// again, except with epochs of very few steps.
constexpr int64_t kEpochsKept = 64;

int64_t budget_of(const LoaderOptions& options, int64_t samples) {
  if (options.feed.on_bad_sample == OnBadSample::fail) return 0;
  const double limit =
      options.feed.max_bad >= 1 ? options.feed.max_bad : options.feed.max_bad * samples;
  return static_cast<int64_t>(std::min(limit, 9e18));
}

// A run that ran out of disk space leaves such a file.
bool ends_within_a_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

}  // namespace

Quarantine::Quarantine(const Source& source, const LoaderOptions& options)
    : source_(source),
      on_bad_sample_(options.feed.on_bad_sample),
      max_bad_(options.feed.max_bad),
      budget_(budget_of(options, source.size())),
      path_(options.quarantine_file) {
  if (path_.empty()) return;
  // Opening a pipe that nobody reads would wait for ever.
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw std::runtime_error("cannot use the quarantine file " + path_ + ": not a regular file");
  }
  file_.reset(std::fopen(path_.c_str(), "ae"));
  if (!file_) {
    throw std::runtime_error("cannot open the quarantine file " + path_ + ": " +
                             std::strerror(errno));
  }
  // Otherwise the next record would be lost.
  if (ends_within_a_line(path_)) std::fputc('\n', file_.get());
}

void Quarantine::report(BadSample sample) {
  MutexLock lock(mutex_);
  pending_.push_back(std::move(sample));
  pending_count_.fetch_add(1, std::memory_order_release);
}

void Quarantine::hand_out(int device, Step step) {
  if (pending_count_.load(std::memory_order_acquire) == 0) return;
  MutexLock lock(mutex_);
  const auto of_this_batch = std::partition(
      pending_.begin(), pending_.end(),
      [&](const BadSample& bad) { return bad.device != device || bad.step != step; });
  std::vector<BadSample> batch(std::make_move_iterator(of_this_batch),
                               std::make_move_iterator(pending_.end()));
  pending_.erase(of_this_batch, pending_.end());
  pending_count_.fetch_sub(static_cast<int64_t>(batch.size()), std::memory_order_relaxed);
  std::sort(batch.begin(), batch.end(),
            [](const BadSample& a, const BadSample& b) { return a.row < b.row; });
  for (const BadSample& bad : batch) record(bad);
  if (!batch.empty() && file_ && std::fflush(file_.get()) != 0) {
    throw std::runtime_error("cannot write the quarantine file " + path_ + ": " +
                             std::strerror(errno));
  }
  for (const BadSample& bad : batch) {
    const EpochRecord& epoch = epochs_[bad.epoch];
    if (static_cast<int64_t>(epoch.ids.size()) > budget_) fail(bad, epoch);
  }
}

void Quarantine::record(const BadSample& bad) {
  EpochRecord& epoch = epochs_[bad.epoch];
  const Finding& finding = bad.finding;
  if (!epoch.ids.insert(finding.id).second) return;  // `wrap` repeats samples within an epoch
  while (epochs_.begin()->first < bad.epoch - kEpochsKept) epochs_.erase(epochs_.begin());
  total_.fetch_add(1, std::memory_order_relaxed);
  if (epoch.first_names.size() < kNamesInMessage) {
    epoch.first_names.push_back(source_.name(finding.id) + " (" + finding.reason +
                                (finding.message.empty() ? "" : ": " + finding.message) + ")");
  }
  if (!file_) return;
  nlohmann::ordered_json line = to_json(source_, finding);
  line["epoch"] = bad.epoch;
  line["step"] = bad.step;
  line["row"] = bad.row;
  const std::string text = to_jsonl(line);
  std::fwrite(text.data(), 1, text.size(), file_.get());  // errors show in fflush
}

void Quarantine::fail(const BadSample& last, const EpochRecord& epoch) const {
  std::string text = "bad samples in epoch " + std::to_string(last.epoch) + ": " +
                     std::to_string(epoch.ids.size()) + " by step " + std::to_string(last.step);
  if (on_bad_sample_ == OnBadSample::fail) {
    text += ", and the first one was to end the run";
  } else {
    text += ", the budget is " + std::to_string(budget_) + " of " + std::to_string(source_.size()) +
            " (max_bad " + nlohmann::json(max_bad_).dump() + ")";
  }
  text += "; first: ";
  for (size_t i = 0; i < epoch.first_names.size(); ++i) {
    text += (i == 0 ? "" : ", ") + epoch.first_names[i];
  }
  if (epoch.ids.size() > epoch.first_names.size()) text += ", ...";
  text += path_.empty() ? "; `stoker check` lists all that the data have"
                        : "; all are listed in " + path_;
  throw std::runtime_error(text);
}

}  // namespace stoker
