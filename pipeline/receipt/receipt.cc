#include "pipeline/receipt/receipt.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/receipt/files.h"
#include "staging/mutex.h"

namespace stoker {
namespace {

using OrderedJson = nlohmann::ordered_json;

// If there are more steps, they are only in receipt_steps.bin, so that receipt.json stays readable.
constexpr size_t kStepsInJson = 20'000;

[[noreturn]] void fail_to(const std::string& what, const std::filesystem::path& path) {
  throw std::runtime_error("receipt: cannot " + what + " " + path.string() + ": " +
                           std::strerror(errno));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// An append-only file that is cut to a length when it is opened.
class AppendFile {
 public:
  AppendFile(const std::filesystem::path& path, uintmax_t bytes) : path_(path) {
    // A new file: a link that somebody has laid there is not followed.
    if (bytes == 0) std::remove(path.c_str());
    file_.reset(std::fopen(path.c_str(), bytes == 0 ? "wbxe" : "r+be"));
    if (!file_) fail_to("open", path);
    if (ftruncate(fileno(file_.get()), static_cast<off_t>(bytes)) != 0 ||
        std::fseek(file_.get(), 0, SEEK_END) != 0) {
      fail_to("cut", path);
    }
  }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void write(const void* data, size_t bytes) {
    if (bytes > 0 && std::fwrite(data, 1, bytes, file_.get()) != bytes) fail_to("write", path_);
  }
  void flush() {
    if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) fail_to("write", path_);
  }

 private:
  const std::filesystem::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

OrderedJson entries(const ReceiptInfo::Entries& list) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [name, value] : list) object[name] = value;
  return object;
}

// A step that not all devices have delivered yet. `rows` are in the order of the global batch.
struct PendingStep {
  int64_t epoch = 0;
  int devices_missing = 0;
  StepRecord record;
  std::vector<std::vector<RowRecord>> rows;  // per device; only rows that count
};

}  // namespace

struct Receipt::Impl {
  const ReceiptInfo info;
  const ReceiptPaths paths;
  const int64_t max_row_bytes;
  Step first_step = 0;
  mutable Mutex mutex;
  std::map<Step, PendingStep> pending GUARDED_BY(mutex);
  // Finished nodes, kept for reuse with their memory.
  std::vector<std::map<Step, PendingStep>::node_type> spare GUARDED_BY(mutex);
  std::vector<StepRecord> steps GUARDED_BY(mutex);
  std::vector<EpochDigest> epochs GUARDED_BY(mutex);
  int64_t rows_seen GUARDED_BY(mutex) = 0;
  int64_t rows_kept GUARDED_BY(mutex) = 0;
  std::unique_ptr<AppendFile> steps_file GUARDED_BY(mutex), rows_file GUARDED_BY(mutex);

  Impl(const std::string& directory, const ReceiptInfo& info_in, Step first, int64_t row_bytes)
      : info(info_in), paths(directory, info.rank), max_row_bytes(row_bytes), first_step(first) {
    std::filesystem::create_directories(directory);
    if (first > 0 && std::filesystem::exists(paths.json)) go_on(first);
    steps_file = std::make_unique<AppendFile>(paths.steps, steps.size() * sizeof(StepRecord));
    rows_file = std::make_unique<AppendFile>(paths.rows, rows_kept * sizeof(RowRecord));
    save();  // the three files agree from the start
  }

  void save() REQUIRES(mutex) {
    steps_file->flush();
    rows_file->flush();
    replace_file(paths.json, json().dump(1) + "\n");
  }

  void go_on(Step first) REQUIRES(mutex) {
    ReceiptData data = read_receipt_part(paths);
    const Step end = data.first_step + static_cast<Step>(data.steps.size());
    if (data.json.at("fingerprint") != hex64(info.fingerprint) ||
        data.json.at("global_batch") != info.global_batch()) {
      throw std::runtime_error(paths.json.string() +
                               " is of another run: fingerprint or global batch differ");
    }
    if (first < data.first_step || first > end) {
      throw std::runtime_error(paths.json.string() + " has steps " +
                               std::to_string(data.first_step) + " to " + std::to_string(end) +
                               ": a run cannot go on from step " + std::to_string(first));
    }
    first_step = data.first_step;
    data.steps.resize(static_cast<size_t>(first - first_step));
    steps = std::move(data.steps);
    epochs = sum_epochs(steps, info.steps_per_epoch);
    for (const StepRecord& step : steps) rows_seen += step.rows;
    rows_kept = std::min(static_cast<int64_t>(data.rows.size()), rows_seen);
  }

  PendingStep& pending_step(Step step, int64_t epoch) REQUIRES(mutex) {
    const auto found = pending.find(step);
    if (found != pending.end()) return found->second;
    if (spare.empty()) {
      PendingStep& made = pending[step];
      made.rows.resize(info.devices);
      start(made, epoch);
      return made;
    }
    auto node = std::move(spare.back());
    spare.pop_back();
    node.key() = step;
    PendingStep& reused = pending.insert(std::move(node)).position->second;
    start(reused, epoch);
    return reused;
  }
  void start(PendingStep& step, int64_t epoch) const {
    step.epoch = epoch;
    step.devices_missing = info.devices;
    step.record = {.epoch_sum = {}, .epoch = static_cast<uint32_t>(epoch)};
    for (auto& rows : step.rows) rows.clear();
  }

  void add(int device, const BatchHeader& header, std::span<const SampleId> ids,
           std::span<const RowNote> notes) {
    MutexLock lock(mutex);
    PendingStep& step = pending_step(header.step, header.epoch);
    const int64_t first_row = (int64_t{info.rank} * info.devices + device) * info.rows;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!notes[i].counts) continue;
      if (notes[i].digest == 0) {
        throw std::invalid_argument("a receipt needs LoaderOptions::digests: row " +
                                    std::to_string(i) + " of step " + std::to_string(header.step) +
                                    " has none");
      }
      step.record.add(ids[i], notes[i].digest, first_row + static_cast<int64_t>(i));
      step.rows[device].push_back({static_cast<uint32_t>(ids[i]),  //
                                   static_cast<uint32_t>(notes[i].digest)});
    }
    if (--step.devices_missing == 0) finish(header.step);
  }

  void finish(Step number) REQUIRES(mutex) {
    if (number != next_step()) {
      throw std::invalid_argument("receipt: step " + std::to_string(number) + " was added, " +
                                  std::to_string(next_step()) + " comes next");
    }
    auto node = pending.extract(number);
    const PendingStep& step = node.mapped();
    steps.push_back(step.record);
    add_step(epochs, step.record, info.steps_per_epoch);
    steps_file->write(&step.record, sizeof step.record);
    // Rows are kept from the beginning without gaps, because a diff looks for the first difference.
    const int64_t bytes = (rows_kept + step.record.rows) * int64_t{sizeof(RowRecord)};
    if (rows_kept == rows_seen && bytes <= max_row_bytes) {
      for (const auto& rows : step.rows) {
        rows_file->write(rows.data(), rows.size() * sizeof(RowRecord));
      }
      rows_kept += step.record.rows;
    }
    rows_seen += step.record.rows;
    spare.push_back(std::move(node));
  }

  Step next_step() const REQUIRES(mutex) { return first_step + static_cast<Step>(steps.size()); }

  OrderedJson json() const REQUIRES(mutex) {
    OrderedJson all = {{"stoker", info.version},
                       {"fingerprint", hex64(info.fingerprint)},
                       {"seed", info.seed},
                       {"global_batch", info.global_batch()},
                       {"batch_size", info.rows},
                       {"devices", info.devices},
                       {"rank", info.rank},
                       {"world", info.world},
                       {"steps_per_epoch", info.steps_per_epoch},
                       {"policies", entries(info.policies)},
                       {"options", entries(info.options)},
                       {"libraries", entries(info.libraries)},
                       {"first_step", first_step},
                       {"next_step", next_step()},
                       {"rows_kept", rows_kept}};
    OrderedJson& list = all["epochs"] = OrderedJson::array();
    size_t at = 0;
    for (const EpochDigest& epoch : epochs) {
      OrderedJson entry = {{"epoch", epoch.epoch},
                           {"steps", epoch.steps},
                           {"rows", epoch.rows},
                           {"complete", epoch.complete},
                           {"digest", to_string(epoch.digest)}};
      if (steps.size() <= kStepsInJson) {
        OrderedJson& digests = entry["step_digests"] = OrderedJson::array();
        for (int64_t i = 0; i < epoch.steps; ++i) digests.push_back(hex64(steps[at++].digest));
      }
      list.push_back(std::move(entry));
    }
    return all;
  }
};

void StepRecord::add(SampleId id, uint64_t digest_of_row, int64_t row) {
  const uint64_t words[] = {static_cast<uint64_t>(id), digest_of_row, static_cast<uint64_t>(row)};
  const Digest128 sample = digest128({words, 2});
  epoch_sum.low += sample.low;
  epoch_sum.high += sample.high;
  digest += digest128(words).low;
  ++rows;
}

Receipt::Receipt(const std::string& directory, const ReceiptInfo& info, Step first_step,
                 int64_t max_row_bytes)
    : impl_(std::make_unique<Impl>(directory, info, first_step, max_row_bytes)) {}

Receipt::~Receipt() = default;

void Receipt::add(int device, const DeviceBatch& batch) {
  const auto rows = static_cast<size_t>(batch.shape().rows);
  add(device, batch.header(), {batch.ids(), rows}, {row_notes(batch), rows});
}

void Receipt::add(int device, const BatchHeader& header, std::span<const SampleId> ids,
                  std::span<const RowNote> notes) {
  impl_->add(device, header, ids, notes);
}

void Receipt::save() {
  MutexLock lock(impl_->mutex);
  impl_->save();
}

std::vector<EpochDigest> Receipt::epochs() const {
  MutexLock lock(impl_->mutex);
  return impl_->epochs;
}

Step Receipt::next_step() const {
  MutexLock lock(impl_->mutex);
  return impl_->next_step();
}

}  // namespace stoker
