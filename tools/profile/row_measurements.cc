#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tools/profile/measurement_parts.h"

namespace stoker {
namespace {

constexpr size_t kSlowFiles = 10;
// The model gets at most this many samples of each service time.
constexpr size_t kMaxSamples = 20000;

// The rows that were read and filled. On a track, a row's pixel work follows its decoding, and its
// decoding follows its read from memory, if there was one. A chunk of raw samples has only pixel
// work.
class RowTally {
 public:
  void add(const TrackedSpan& span) {
    const double cpu_s = static_cast<double>(span.cpu_ns) * kNanosecond;
    if (span.kind == SpanKind::read) {
      add_read(span, cpu_s);
    } else if (span.kind == SpanKind::cached_read) {
      add_work(span, cpu_s);
      ++cached_reads_;
      read_of_[span.sample] = seconds_of(span);
      cached_cpu_s_[span.track] = cpu_s;
    } else if (span.kind == SpanKind::decode) {
      add_work(span, cpu_s);
      finish_row(decoded_[span.track]);
      const double sample_cpu_s = cpu_s + std::exchange(cached_cpu_s_[span.track], 0);
      decoded_[span.track] = {{span.sample, span.step, 0, seconds_of(span)}, sample_cpu_s};
    } else if (span.kind == SpanKind::pixels) {
      add_work(span, cpu_s);
      pixels_cpu_s_ += cpu_s;
      add_pixels(span, cpu_s);
    }
  }

  void report(RunMeasurements& result) {
    for (auto& [track, row] : decoded_) finish_row(row);
    const double seconds = std::max(result.seconds, 1e-9);
    result.busy_workers = work_s_ / seconds;
    result.busy_readers = reading_s_ / seconds;
    result.worker_cpu_speed = work_s_ > 0 ? std::clamp(work_cpu_s_ / work_s_, 0.01, 1.0) : 1;
    result.pixels_share = work_cpu_s_ > 0 ? pixels_cpu_s_ / work_cpu_s_ : 0;
    if (!read_s_.empty()) result.read_cpu_s = read_cpu_s_ / static_cast<double>(read_s_.size());
    const auto reads = static_cast<double>(cached_reads_ + std::ssize(read_s_));
    result.cached_share = reads > 0 ? static_cast<double>(cached_reads_) / reads : 0;
    report_files(result);
    result.read_s = thinned(read_s_);
    result.fill_cpu_s = thinned(fill_cpu_s_);
  }

 private:
  struct Row {
    SlowFile file;
    double cpu_s = 0;
  };

  void add_read(const Span& span, double cpu_s) {
    read_s_.push_back(seconds_of(span));
    read_of_[span.sample] = seconds_of(span);
    reading_s_ += seconds_of(span);
    read_cpu_s_ += cpu_s;
  }
  void add_work(const Span& span, double cpu_s) {
    work_s_ += seconds_of(span);
    work_cpu_s_ += cpu_s;
  }
  void add_pixels(const TrackedSpan& span, double cpu_s) {
    if (span.sample < 0) {
      fill_cpu_s_.push_back(cpu_s / static_cast<double>(std::max<int64_t>(span.items, 1)));
      return;
    }
    std::optional<Row>& row = decoded_[span.track];
    if (!row) return;
    row->file.fill += seconds_of(span);
    row->cpu_s += cpu_s;
    finish_row(row);
  }
  void finish_row(std::optional<Row>& row) {
    if (!row) return;
    files_.push_back(row->file);
    fill_cpu_s_.push_back(row->cpu_s);
    row.reset();
  }

  void report_files(RunMeasurements& result) {
    for (SlowFile& file : files_) {
      const auto read = read_of_.find(file.sample);
      if (read != read_of_.end()) file.read = read->second;
    }
    std::sort(files_.begin(), files_.end(), [](const SlowFile& a, const SlowFile& b) {
      return a.read + a.fill > b.read + b.fill;
    });
    double all = 0, slow = 0;
    for (size_t i = 0; i < files_.size(); ++i) {
      all += files_[i].read + files_[i].fill;
      if (i < files_.size() / 100 + 1) slow += files_[i].read + files_[i].fill;
    }
    result.slow_share = all > 0 ? slow / all : 0;
    files_.resize(std::min(files_.size(), kSlowFiles));
    result.slowest = files_;
  }

  // Picks values of a long list at even distances.
  static std::vector<double> thinned(const std::vector<double>& values) {
    if (values.size() <= kMaxSamples) return values;
    std::vector<double> kept;
    for (size_t i = 0; i < kMaxSamples; ++i) {
      kept.push_back(values[i * values.size() / kMaxSamples]);
    }
    return kept;
  }

  std::map<int, std::optional<Row>> decoded_;  // by track: the row whose pixel work is to come
  std::map<int, double> cached_cpu_s_;         // by track: CPU time of reading the row to come
  std::map<SampleId, double> read_of_;         // by sample: seconds
  std::vector<SlowFile> files_;
  std::vector<double> read_s_, fill_cpu_s_;
  int64_t cached_reads_ = 0;
  double work_s_ = 0, work_cpu_s_ = 0, pixels_cpu_s_ = 0, reading_s_ = 0, read_cpu_s_ = 0;
};

}  // namespace

void measure_rows(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                  RunMeasurements& result) {
  RowTally tally;
  for (const TrackedSpan& span : run.spans) {
    if (ends_inside(span, windows)) tally.add(span);
  }
  tally.report(result);
}

}  // namespace stoker
