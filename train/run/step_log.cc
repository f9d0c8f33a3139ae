#include "train/run/step_log.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSpikeWindow = 25;  // steps on either side
constexpr uint16_t kRightBit = 0x8000;

[[noreturn]] void fail_on(const char* what, const std::string& path) {
  throw std::runtime_error(std::string("cannot ") + what + " " + path + ": " +
                           std::strerror(errno));
}

std::string steps_file(const std::string& folder) { return folder + "/steps.bin"; }
std::string row_losses_file(const std::string& folder) { return folder + "/row_losses.bin"; }

int64_t record_count(const std::string& path, int64_t record_bytes) {
  std::error_code missing;
  const uintmax_t bytes = fs::file_size(path, missing);
  return missing ? 0 : static_cast<int64_t>(bytes) / record_bytes;
}

// Records begin with their step, and lie in its order. Returns how many come before `step`.
int64_t records_before(std::ifstream& file, int64_t count, int64_t record_bytes, int64_t step) {
  int64_t low = 0;
  while (low < count) {
    const int64_t middle = low + (count - low) / 2;
    int64_t found = 0;
    file.seekg(middle * record_bytes);
    file.read(reinterpret_cast<char*>(&found), sizeof found);
    if (file && found < step) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

void cut_back(const std::string& path, int64_t record_bytes, int64_t first_step) {
  if (!fs::exists(fs::symlink_status(path))) return;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_on("read", path);
  const int64_t count = record_count(path, record_bytes);
  const int64_t kept = records_before(file, count, record_bytes, first_step);
  fs::resize_file(path, static_cast<uintmax_t>(kept * record_bytes));
}

int64_t bytes_of_rows(int64_t rows) {
  return static_cast<int64_t>(sizeof(int64_t)) + rows * static_cast<int64_t>(sizeof(RowLoss));
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns how many deviations a value lies above those around it.
double hampel_score(std::span<const double> values, size_t at) {
  if (!std::isfinite(values[at])) return std::numeric_limits<double>::infinity();
  const size_t first = at < kSpikeWindow ? 0 : at - kSpikeWindow;
  const size_t end = std::min(values.size(), at + kSpikeWindow + 1);
  std::vector<double> around;
  for (size_t i = first; i < end; ++i) {
    if (i != at && std::isfinite(values[i])) around.push_back(values[i]);
  }
  if (around.empty()) return 0;
  const double median = median_of(around);
  for (double& value : around) value = std::abs(value - median);
  const double deviation = std::max(1.4826 * median_of(around), std::abs(median) / 50);
  return deviation > 0 ? (values[at] - median) / deviation : 0;
}

}  // namespace

RowLoss to_row_loss(const RowResult& result) {
  const auto upper = static_cast<RowLoss>(std::bit_cast<uint32_t>(result.loss) >> 16 & 0x7fff);
  // A NaN must not turn into infinity, nor the mark of a row that does not count.
  const RowLoss kept = std::isnan(result.loss) ? RowLoss{0x7fc0} : upper;
  return result.top1 >= 0.5f ? static_cast<RowLoss>(kept | kRightBit) : kept;
}

std::optional<KeptRow> from_row_loss(RowLoss kept) {
  if (kept == kNoRowLoss) return std::nullopt;
  const uint32_t bits = static_cast<uint32_t>(kept & ~kRightBit) << 16;
  return KeptRow{std::bit_cast<float>(bits), (kept & kRightBit) != 0};
}

StepLog::StepLog(const std::string& folder, int64_t first_step, int64_t rows) {
  if (folder.empty()) return;
  const auto open = [&](const std::string& path, int64_t record_bytes, std::ofstream& file) {
    cut_back(path, record_bytes, first_step);
    file.open(path, std::ios::binary | std::ios::app);
    if (!file) fail_on("write", path);
    return path;
  };
  steps_path_ = open(steps_file(folder), sizeof(StepRow), steps_);
  if (rows > 0) rows_path_ = open(row_losses_file(folder), bytes_of_rows(rows), rows_);
}

void StepLog::write(std::ofstream& file, const std::string& path,
                    std::span<const std::byte> bytes) {
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file) fail_on("write", path);
}

void StepLog::add(const StepRow& row, std::span<const RowLoss> rows) {
  if (!steps_.is_open()) return;
  write(steps_, steps_path_, std::as_bytes(std::span(&row, 1)));
  if (!rows_.is_open()) return;
  write(rows_, rows_path_, std::as_bytes(std::span(&row.step, 1)));
  write(rows_, rows_path_, std::as_bytes(rows));
}

void StepLog::flush() {
  if (steps_.is_open() && !steps_.flush()) fail_on("write", steps_path_);
  if (rows_.is_open() && !rows_.flush()) fail_on("write", rows_path_);
}

std::vector<StepRow> read_steps(const std::string& folder) {
  const std::string path = steps_file(folder);
  std::vector<StepRow> rows(static_cast<size_t>(record_count(path, sizeof(StepRow))));
  if (rows.empty()) return rows;
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(rows.data()),
            static_cast<std::streamsize>(rows.size() * sizeof(StepRow)));
  if (!file) fail_on("read", path);
  return rows;
}

RowLossFile::RowLossFile(const std::string& folder, int64_t rows)
    : path_(row_losses_file(folder)), record_bytes_(bytes_of_rows(rows)) {
  count_ = record_count(path_, record_bytes_);
  if (count_ == 0) return;
  file_.open(path_, std::ios::binary);
  if (!file_) fail_on("read", path_);
}

int64_t RowLossFile::read(int64_t index, std::span<RowLoss> rows) {
  int64_t step = 0;
  file_.seekg(index * record_bytes_);
  file_.read(reinterpret_cast<char*>(&step), sizeof step);
  file_.read(reinterpret_cast<char*>(rows.data()), static_cast<std::streamsize>(rows.size_bytes()));
  if (!file_) fail_on("read", path_);
  return step;
}

bool RowLossFile::find(int64_t step, std::span<RowLoss> rows) {
  const int64_t index = records_before(file_, count_, record_bytes_, step);
  return index < count_ && read(index, rows) == step;
}

double Spike::score() const { return std::fmax(loss_score, norm_score); }

std::vector<Spike> find_spikes(std::span<const StepRow> steps, double threshold) {
  std::vector<double> losses, norms;
  for (const StepRow& row : steps) {
    losses.push_back(row.loss());
    norms.push_back(row.gradient_norm);
  }
  std::vector<Spike> spikes;
  for (size_t i = 0; i < steps.size(); ++i) {
    Spike spike{steps[i].step, losses[i], norms[i], hampel_score(losses, i),
                std::numeric_limits<double>::quiet_NaN()};
    if (!std::isnan(norms[i])) spike.norm_score = hampel_score(norms, i);
    if (spike.score() > threshold) spikes.push_back(spike);
  }
  std::ranges::stable_sort(spikes, std::greater<>(), &Spike::score);
  return spikes;
}

}  // namespace stoker
