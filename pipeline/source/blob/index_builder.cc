#include "pipeline/source/blob/index_builder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/blob/index_writer.h"
#include "pipeline/source/blob/sample_collector.h"
#include "pipeline/source/blob/tar_prefetchers.h"
#include "staging/error_text.h"
#include "staging/mutex.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr std::chrono::milliseconds kBuildAskAfter{100};  // between two calls of go_on()

struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped while the index was made") {}
};

// Facts from all blobs so far. They are used in the order of the blobs.
class Merged {
 public:
  explicit Merged(const BlobIndexRequest& request) : request_(request) {
    table_.blobs = request.set.blobs;
    table_.class_names = request.class_names;
  }

  // Replaces the places of texts by numbers that are the same for all blobs.
  void relabel(size_t blob, SamplePiece& piece) {
    if (labels_ == LabelKind::unknown) {
      labels_ = piece.labels;
      first_blob_ = blob;
    }
    if (labels_ != piece.labels) {
      throw std::runtime_error(
          path_of(blob) +
          ": its labels are of another kind (numbers, text or none) than those "
          "of " +
          path_of(first_blob_));
    }
    if (labels_ != LabelKind::text) return;
    std::vector<int32_t> numbers;
    for (const std::string& text : piece.texts) {
      numbers.push_back(
          numbers_.try_emplace(text, static_cast<int32_t>(numbers_.size())).first->second);
    }
    for (BlobEntry& entry : piece.entries) entry.label = numbers[static_cast<size_t>(entry.label)];
  }

  void end_blob(size_t blob, const SampleCollector& samples) {
    if (const auto& names = samples.class_names(); !names.empty()) {
      if (table_.class_names.empty()) table_.class_names = names;
      if (table_.class_names != names) {
        throw std::runtime_error(path_of(blob) + ": it names other classes (" +
                                 std::to_string(names.size()) + ") than " + path_of(0) + " (" +
                                 std::to_string(table_.class_names.size()) + ")");
      }
    }
    object_kinds_.add(samples.object_kinds());
    if (const auto& names = samples.object_names(); !names.empty()) {
      if (object_names_.empty()) object_names_ = names;
      if (object_names_ != names) {
        throw std::runtime_error(path_of(blob) + ": it names other classes of objects (" +
                                 std::to_string(names.size()) + ") than others before it (" +
                                 std::to_string(object_names_.size()) + ")");
      }
    }
    const std::vector<VaryingCount>& counts = samples.varying_counts();
    varying_counts_.resize(std::max(varying_counts_.size(), counts.size()));
    for (size_t i = 0; i < counts.size(); ++i) {
      VaryingCount& all = varying_counts_[i];
      all.samples += counts[i].samples;
      if (all.problem.empty() && !counts[i].problem.empty()) {
        all.problem = path_of(blob) + ": " + counts[i].problem;
      }
    }
    if (samples.largest_label() > largest_label_) {
      largest_label_ = samples.largest_label();
      largest_label_sample_ = path_of(blob) + "#" + std::to_string(samples.largest_label_row());
    }
    if (packed_.samples == 0) first_packed_ = table_.blobs[blob];
    packed_.samples += samples.packed().samples;
    packed_.image_bytes += samples.packed().image_bytes;
    packed_.unpacked_bytes += samples.packed().unpacked_bytes;
    for (const auto& [reason, left_out] : samples.left_out()) {
      LeftOut& all = left_out_[reason];
      if (all.entries == 0) all.first = table_.blobs[blob] + "/" + left_out.first;
      all.entries += left_out.entries;
    }
  }

  // Completes class names and notes. Returns the final label of each number of a text; empty if
  // labels are numbers.
  std::vector<int32_t> finish() {
    // A field that nobody has is a mistake of whoever named it.
    for (const VaryingCount& count : varying_counts_) {
      if (count.samples > 0 || count.problem.empty()) continue;
      throw std::runtime_error(count.problem + ", and no sample has values there");
    }
    for (const auto& [reason, left_out] : left_out_) {
      const std::string name = printable_name(left_out.first);
      table_.notes.push_back({"left_out", left_out.entries, name,
                              std::to_string(left_out.entries) +
                                  (left_out.entries == 1 ? " entry is" : " entries are") +
                                  " left out (" + reason + "), as " + name});
    }
    note_packed();
    if (request_.fields.objects.is_wanted()) {
      table_.annotations = object_kinds_.info(object_names_);
    }
    if (labels_ == LabelKind::text) return sort_texts();
    if (labels_ == LabelKind::none) {
      table_.class_names.clear();
    } else if (table_.class_names.empty()) {
      for (int64_t i = 0; i <= largest_label_; ++i) table_.class_names.push_back(std::to_string(i));
    } else if (largest_label_ >= std::ssize(table_.class_names)) {
      throw std::runtime_error(largest_label_sample_ + ": its label is " +
                               std::to_string(largest_label_) + ", and there are " +
                               std::to_string(table_.class_names.size()) + " class names");
    }
    return {};
  }

  BlobTable& table() { return table_; }

  bool are_labels_final() const { return labels_ != LabelKind::text; }
  // Returns the table of an index of the first blobs, without stamps and targets. REQUIRES: labels
  // are final.
  BlobTable part(size_t blobs) const {
    BlobTable part;
    part.blobs.assign(table_.blobs.begin(), table_.blobs.begin() + static_cast<ptrdiff_t>(blobs));
    if (labels_ == LabelKind::none) return part;
    part.class_names = table_.class_names;
    for (int64_t i = std::ssize(part.class_names); i <= largest_label_; ++i) {
      part.class_names.push_back(std::to_string(i));
    }
    return part;
  }

 private:
  std::string path_of(size_t blob) const {
    return request_.set.location->path_of(request_.set.blobs[blob]);
  }

  // Pages that can only be unpacked from their beginning make each image cost many.
  void note_packed() {
    constexpr int64_t kTolerated = 3;
    if (packed_.unpacked_bytes <= kTolerated * packed_.image_bytes) return;
    const std::string name = printable_name(first_packed_);
    table_.notes.push_back({"slow", packed_.samples, name,
                            std::to_string(packed_.samples) +
                                " images lie in compressed pages: to read one of " +
                                std::to_string(packed_.image_bytes / packed_.samples) + " bytes, " +
                                std::to_string(packed_.unpacked_bytes / packed_.samples) +
                                " are unpacked on average, as in " + name +
                                "; `stoker pack --format parquet` writes "
                                "them without compression"});
  }

  std::vector<int32_t> sort_texts() {
    std::vector<int32_t> labels(numbers_.size());
    table_.class_names.clear();
    for (const auto& [text, number] : numbers_) {
      labels[static_cast<size_t>(number)] = static_cast<int32_t>(table_.class_names.size());
      table_.class_names.push_back(valid_text(text));
    }
    return labels;
  }

  const BlobIndexRequest& request_;
  BlobTable table_;
  LabelKind labels_ = LabelKind::unknown;
  size_t first_blob_ = 0;                   // the first one with samples
  std::map<std::string, int32_t> numbers_;  // of texts, by first appearance
  std::map<std::string, LeftOut> left_out_;
  PackedTotals packed_;
  std::vector<VaryingCount> varying_counts_;
  std::string first_packed_;
  RecordKinds object_kinds_;
  std::vector<std::string> object_names_;
  int64_t largest_label_ = -1;
  std::string largest_label_sample_;
};

// Scans the blobs on several threads; each hands on its samples when all blobs before its own have.
class Builder {
 public:
  Builder(const BlobIndexRequest& request, const std::vector<FileStamp>& stamps,
          BlobIndexWriter& writer)
      : request_(request), stamps_(stamps), merged_(request), writer_(writer) {
    for (const FileStamp& stamp : stamps) total_bytes_ += stamp.bytes;
  }

  void run() {
    const size_t count = request_.set.blobs.size();
    const auto at_once = static_cast<size_t>(request_.set.location->scans_at_once());
    const size_t thread_count = std::min(at_once, count);
    send_prefetchers();
    {
      const MutexLock lock(mutex_);
      running_ = thread_count;
    }
    std::vector<std::jthread> threads = start_threads(
        "reading shards", static_cast<int64_t>(thread_count), [this](int64_t) { work(); });
    watch();
    threads.clear();
    prefetchers_.reset();
    error_.rethrow();
  }

  // REQUIRES: run() has returned.
  Merged& merged() {
    const MutexLock lock(write_mutex_);
    return merged_;
  }
  // They are known with the first sample.
  std::vector<TargetColumn> targets() {
    const MutexLock lock(mutex_);
    return targets_;
  }

 private:
  // For tars in a store, which are many rounds each.
  void send_prefetchers() {
    const BlobLocation& location = *request_.set.location;
    const std::vector<std::string>& names = request_.set.blobs;
    if (request_.set.format != BlobFormat::tar || !location.read_at(names.front())) return;
    std::vector<PrefetchedTar> tars;
    for (size_t i = 0; i < names.size(); ++i) {
      tars.push_back({location.path_of(names[i]), stamps_[i].bytes, location.read_at(names[i])});
    }
    prefetchers_ = std::make_unique<TarPrefetchers>(
        std::move(tars), TarPrefetchers::Options{.prefetchers = location.scans_at_once()});
  }

  std::unique_ptr<BlobReader> open(size_t blob) {
    const BlobLocation& location = *request_.set.location;
    const std::string& name = request_.set.blobs[blob];
    if (!prefetchers_) return location.open(name);
    return std::make_unique<BlobReader>(
        location.path_of(name), stamps_[blob].bytes,
        [this, blob](int64_t offset, int64_t least, std::span<uint8_t> out) {
          return prefetchers_->read(blob, offset, least, out);
        });
  }

  void work() {
    try {
      for (size_t blob = next_++; blob < request_.set.blobs.size() && !stopped_; blob = next_++) {
        scan_blob(blob);
      }
    } catch (...) {
      error_.keep_current();
      stop();
    }
    const MutexLock lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  void scan_blob(size_t blob) {
    const std::string& name = request_.set.blobs[blob];
    const std::unique_ptr<BlobReader> opened = open(blob);
    BlobReader& reader = *opened;
    int64_t before = 0;
    reader.set_progress([&](int64_t offset) {
      if (stopped_) throw Stopped();
      if (offset > before) done_bytes_ += offset - std::exchange(before, offset);
    });
    const auto take = [&](SamplePiece& piece) {
      wait_for_turn(blob);
      const MutexLock lock(write_mutex_);
      merged_.relabel(blob, piece);
      writer_.add(static_cast<int64_t>(blob), piece.first_row, piece.entries, piece.names,
                  piece.values, {piece.objects, piece.object_ends},
                  {piece.varying, piece.varying_ends});
    };
    const auto agree = [&](std::vector<TargetColumn> columns) {
      return agree_on_targets(blob, std::move(columns));
    };
    SampleCollector samples(reader, take, {request_.fields.targets, agree},
                            request_.fields.objects.boxes);
    entry_of(request_.set.format).scan(reader, request_.fields, samples);
    samples.finish();
    if (prefetchers_) prefetchers_->end(blob);
    wait_for_turn(blob);
    if (request_.set.location->stamp(name) != stamps_[blob]) {
      throw std::runtime_error(reader.path() + ": it changed while its index was made");
    }
    end_blob(blob, samples);
    done_bytes_ += stamps_[blob].bytes - before;
    const MutexLock lock(mutex_);
    ++turn_;
    changed_.notify_all();
  }

  void end_blob(size_t blob, const SampleCollector& samples) {
    const MutexLock lock(write_mutex_);
    merged_.end_blob(blob, samples);
    ended_blobs_ = blob + 1;
    ended_samples_ = writer_.samples();
    offer_part();
  }

  // Whoever wants more samples than are known may ask at any time, and a blob may take long.
  void offer_part() REQUIRES(write_mutex_) {
    if (request_.parts == nullptr || ended_samples_ == 0) return;
    if (!merged_.are_labels_final()) return request_.parts->none();
    if (ended_blobs_ == request_.set.blobs.size() || !request_.parts->wants(ended_samples_)) return;
    BlobTable table = merged_.part(ended_blobs_);
    table.stamps.assign(stamps_.begin(), stamps_.begin() + static_cast<ptrdiff_t>(ended_blobs_));
    table.targets = targets();
    const std::string path = request_.parts->new_path();
    writer_.write_part(path, ended_samples_, std::move(table));
    request_.parts->take(path);
  }

  // The first sample of all decides. A blob knows that its own is the first when those before it
  // have ended without one.
  std::vector<TargetColumn> agree_on_targets(size_t blob, std::vector<TargetColumn> columns) {
    MutexLock lock(mutex_);
    while (targets_.empty() && turn_ != blob && !stopped_) changed_.wait(lock);
    if (stopped_) throw Stopped();
    if (targets_.empty()) {
      targets_ = std::move(columns);
      changed_.notify_all();
    }
    return targets_;
  }

  void wait_for_turn(size_t blob) {
    MutexLock lock(mutex_);
    while (turn_ != blob && !stopped_) changed_.wait(lock);
    if (stopped_) throw Stopped();
  }

  void stop() {
    if (prefetchers_) prefetchers_->stop();
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  // Runs on the caller's thread until the others have ended.
  void watch() {
    do {
      try {
        if (request_.go_on && !request_.go_on(done_bytes_, total_bytes_)) throw Stopped();
        const MutexLock lock(write_mutex_);
        offer_part();
      } catch (...) {
        error_.keep_current();
        stop();
      }
    } while (wait_a_while());
  }

  // Returns false when the others have ended.
  bool wait_a_while() {
    MutexLock lock(mutex_);
    if (running_ > 0) changed_.wait_until(lock, std::chrono::steady_clock::now() + kBuildAskAfter);
    return running_ > 0;
  }

  const BlobIndexRequest& request_;
  const std::vector<FileStamp>& stamps_;
  // State of the thread whose turn it is, and of watch().
  Mutex write_mutex_;
  Merged merged_ GUARDED_BY(write_mutex_);
  BlobIndexWriter& writer_ GUARDED_BY(write_mutex_);
  size_t ended_blobs_ GUARDED_BY(write_mutex_) = 0;
  int64_t ended_samples_ GUARDED_BY(write_mutex_) = 0;  // of these
  std::unique_ptr<TarPrefetchers> prefetchers_;
  int64_t total_bytes_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_bytes_ = 0;
  std::atomic<bool> stopped_ = false;
  FirstError error_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<TargetColumn> targets_ GUARDED_BY(mutex_);
  size_t turn_ GUARDED_BY(mutex_) = 0;
  size_t running_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::vector<FileStamp> stamps_of(const BlobSet& set) { return set.location->stamps(set.blobs); }

void build_index(const BlobIndexRequest& request, const std::vector<FileStamp>& stamps,
                 const std::string& key, const std::string& path) {
  BlobIndexWriter writer(path);
  Builder builder(request, stamps, writer);
  builder.run();
  if (writer.samples() == 0) {
    throw std::runtime_error(request.set.location->path_of(request.set.blobs.front()) +
                             (request.set.blobs.size() == 1
                                  ? ": it has no samples"
                                  : " and " + std::to_string(request.set.blobs.size() - 1) +
                                        " more files have no samples"));
  }
  const std::vector<int32_t> new_labels = builder.merged().finish();
  BlobTable& table = builder.merged().table();
  table.targets = builder.targets();
  table.stamps = stamps;
  table.key = key;
  writer.finish(std::move(table), new_labels);
}

}  // namespace stoker
