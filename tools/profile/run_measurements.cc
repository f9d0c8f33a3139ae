#include "tools/profile/run_measurements.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace stoker {
namespace {

// The time in which the run saved and evaluated between two steps; it belongs to neither of them.
class Interludes {
 public:
  explicit Interludes(const ProfiledRun& run) {
    for (const TrackedSpan& span : run.spans) {
      if (span.kind == SpanKind::evaluate || span.kind == SpanKind::checkpoint) {
        spans_.push_back(&span);
      }
    }
  }
  double seconds(int64_t begin_ns, int64_t end_ns) const {
    double sum = 0;
    for (const Span* span : spans_) sum += overlap_seconds(begin_ns, end_ns, span);
    return sum;
  }

 private:
  std::vector<const Span*> spans_;
};

void add(StepSplit& sum, const StepSplit& one) {
  sum.step += one.step;
  sum.compute += one.compute;
  sum.input_wait += one.input_wait;
  sum.copy_wait += one.copy_wait;
  sum.gradient_wait += one.gradient_wait;
  sum.launch_wait += one.launch_wait;
  sum.update += one.update;
  sum.other += one.other;
}

void divide(StepSplit& sum, double by) {
  for (double* part : {&sum.step, &sum.compute, &sum.input_wait, &sum.copy_wait, &sum.gradient_wait,
                       &sum.launch_wait, &sum.update, &sum.other}) {
    *part /= by;
  }
}

// Returns how even the pace is, over eight parts of the steps.
double spread_of(const std::vector<double>& lengths) {
  constexpr size_t kParts = 8;
  if (lengths.size() < 2 * kParts) return -1;
  std::vector<double> paces;
  for (size_t part = 0; part < kParts; ++part) {
    const auto begin = lengths.begin() + static_cast<ptrdiff_t>(part * lengths.size() / kParts);
    const auto end = lengths.begin() + static_cast<ptrdiff_t>((part + 1) * lengths.size() / kParts);
    paces.push_back(std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin));
  }
  std::sort(paces.begin(), paces.end());
  return 0.5 * (paces[6] - paces[1]) / paces[4];
}

Pauses pauses_of(const std::vector<StepSplit>& steps) {
  // Pauses are at most this share of the steps and contain at least that share of the waiting.
  constexpr double kFewest = 0.25;
  constexpr double kMax = 0.8;
  Pauses pauses;
  double all_s = 0, paused_s = 0;
  for (const StepSplit& step : steps) {
    const double wait_s = step.input_wait + step.copy_wait;
    all_s += wait_s;
    if (wait_s <= step.step - wait_s) continue;
    ++pauses.count;
    paused_s += wait_s;
  }
  const auto count = static_cast<double>(steps.size()), paused = static_cast<double>(pauses.count);
  if (pauses.count == 0 || paused > kFewest * count || paused_s < kMax * all_s) return {};
  pauses.mean_s = paused_s / paused;
  pauses.share = paused_s / all_s;
  pauses.burst_steps = count / paused;
  return pauses;
}

// Returns the rate at which rows are filled, if it is below the rate `taken`: while a feed still
// uses up a full ring, it fills fewer rows than are taken.
double pace_of_filling(const ProfiledRun& run, int rows, int devices,
                       const std::vector<PhaseWindow>& windows, double stepping_s, double taken) {
  const auto commits = std::count_if(run.spans.begin(), run.spans.end(), [&](const Span& span) {
    return span.kind == SpanKind::commit && ends_inside(span, windows);
  });
  const double filled = static_cast<double>(commits) * rows / stepping_s;
  // At the edges of the windows there may be one batch more or less.
  const double slack = 1.5 * rows * devices / stepping_s;
  return filled > 0 && filled + slack < 0.97 * taken ? filled : taken;
}

void measure_steps(const ProfiledRun& run, int rows, const std::vector<PhaseWindow>& windows,
                   RunMeasurements& result) {
  const StepTable table = step_table(run);
  if (table.empty() || windows.empty()) return;
  const Interludes interludes(run);
  const int devices = table.rbegin()->first.first + 1;
  std::vector<double> lengths;
  std::vector<StepSplit> splits;
  for (auto at = std::next(table.begin()); at != table.end(); ++at) {
    const auto& [key, spans] = *at;
    const auto& [last_key, last] = *std::prev(at);
    const Span *step = spans[SpanKind::step], *before = last[SpanKind::step];
    const bool follows = last_key.first == key.first && last_key.second + 1 == key.second;
    if (!follows || !step || !before) continue;
    if (!ends_inside(*step, windows) || !ends_inside(*before, windows)) continue;
    const StepParts parts =
        split_step(last, spans, interludes.seconds(before->end_ns, step->end_ns));
    add(result.split, parts.split);
    splits.push_back(parts.split);
    lengths.push_back(parts.split.step);
    result.hold_s.push_back(parts.hold);
    result.rest_s.push_back(parts.rest);
    if (spans[SpanKind::copy]) result.copy_s.push_back(seconds_of(*spans[SpanKind::copy]));
  }
  if (lengths.empty()) return;
  divide(result.split, static_cast<double>(lengths.size()));
  result.steps = std::ssize(lengths) / devices;
  result.samples_per_second = rows * devices / result.split.step;
  result.spread = spread_of(lengths);
  result.pauses = pauses_of(splits);
  if (windows.front().phase == Phase::replayed || run.dropped > 0) return;
  double stepping_s = result.seconds;
  for (const PhaseWindow& each : windows) {
    stepping_s -= interludes.seconds(each.begin_ns, each.end_ns);
  }
  result.samples_per_second =
      pace_of_filling(run, rows, devices, windows, stepping_s, result.samples_per_second);
}

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

void measure_rows(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                  RunMeasurements& result) {
  RowTally tally;
  for (const TrackedSpan& span : run.spans) {
    if (ends_inside(span, windows)) tally.add(span);
  }
  tally.report(result);
}

bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// A sum over windows. It is unknown (-1) if one of its parts is.
class Sum {
 public:
  void add(int64_t value) {
    known_ = known_ && value >= 0;
    sum_ += static_cast<double>(value);
  }
  bool known() const { return known_; }
  double value() const { return sum_; }
  double seconds() const { return sum_ * kNanosecond; }

 private:
  double sum_ = 0;
  bool known_ = true;
};

// Spans show the rows. The kernel's counters show the whole threads: what a worker does between two
// rows, and how long it then waits for a core. `cpu_s`, `delay_s`: of all workers.
void add_worker_threads(double cpu_s, double delay_s, RunMeasurements& result) {
  constexpr double kMostBetween = 0.25;  // of a row; a worker that spins is not working
  const double rows_cpu_s = result.busy_workers * result.worker_cpu_speed * result.seconds;
  result.worker_cores = cpu_s / result.seconds;
  result.worker_delay_share = delay_s / (delay_s + cpu_s);
  result.worker_cpu_speed =
      std::clamp(1 - result.worker_delay_share, 0.01, result.worker_cpu_speed);
  if (rows_cpu_s <= 0) return;
  const double whole = std::clamp(cpu_s / rows_cpu_s, 1.0, 1 + kMostBetween);
  for (double& row_s : result.fill_cpu_s) row_s *= whole;
}

void measure_load(const std::vector<PhaseWindow>& windows, RunMeasurements& result) {
  if (result.seconds <= 0) return;
  Sum own, busy, stolen, read, disk;
  double consumer_delay = 0, consumer_time = 0, worker_delay = 0, worker_cpu = 0;
  for (const PhaseWindow& window : windows) {
    own.add(window.load.own_cpu_ns);
    busy.add(window.load.busy_ns);
    stolen.add(window.load.stolen_ns);
    read.add(window.load.read_bytes);
    disk.add(window.load.disk_read_bytes);
    for (const ThreadLoad& thread : window.load.threads) {
      if (thread.run_delay_ns < 0) continue;
      const double delay = static_cast<double>(thread.run_delay_ns) * kNanosecond;
      if (starts_with(thread.name, "replica")) {
        consumer_delay += delay;
        consumer_time += window.seconds();
      } else if (starts_with(thread.name, "worker")) {
        worker_delay += delay;
        worker_cpu += static_cast<double>(thread.cpu_ns) * kNanosecond;
      }
    }
  }
  if (own.known()) result.own_cores = own.seconds() / result.seconds;
  if (own.known() && busy.known()) {
    result.other_cores = std::max(0.0, busy.seconds() / result.seconds - result.own_cores);
  }
  if (stolen.known()) result.stolen_cores = stolen.seconds() / result.seconds;
  if (consumer_time > 0) result.consumer_delay_share = consumer_delay / consumer_time;
  if (worker_cpu > 0) add_worker_threads(worker_cpu, worker_delay, result);
  if (disk.known() && read.known() && read.value() > 0) {
    result.disk_share = std::min(1.0, disk.value() / read.value());
  }
}

void measure_latencies(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                       RunMeasurements& result) {
  std::array<std::vector<double>, kSpanKinds> lengths;
  std::array<double, kSpanKinds> cpu_s{};
  std::array<int64_t, kSpanKinds> timed{};
  for (const TrackedSpan& span : run.spans) {
    if (!ends_inside(span, windows)) continue;
    const int kind = static_cast<int>(span.kind);
    const auto items = static_cast<double>(std::max<int64_t>(span.items, 1));
    lengths[kind].push_back(seconds_of(span) / items);
    if (span.cpu_ns < 0) continue;
    cpu_s[kind] += static_cast<double>(span.cpu_ns) * 1e-9 / items;
    ++timed[kind];
  }
  for (int kind = 0; kind < kSpanKinds; ++kind) {
    result.latency[kind] = latency_of(std::move(lengths[kind]));
    if (timed[kind] > 0) {
      result.latency[kind].cpu_mean = cpu_s[kind] / static_cast<double>(timed[kind]);
    }
  }
}

}  // namespace

Latency latency_of(std::vector<double> values) {
  Latency result;
  result.count = std::ssize(values);
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[std::min(values.size() - 1,
                           static_cast<size_t>(share * static_cast<double>(values.size())))];
  };
  result.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.p50 = at(0.5);
  result.p90 = at(0.9);
  result.p99 = at(0.99);
  result.max = values.back();
  return result;
}

RunMeasurements measure_run(const ProfiledRun& run, int rows,
                            const std::vector<PhaseWindow>& windows) {
  RunMeasurements result;
  for (const PhaseWindow& window : windows) result.seconds += window.seconds();
  measure_steps(run, rows, windows, result);
  measure_rows(run, windows, result);
  measure_latencies(run, windows, result);
  measure_load(windows, result);
  result.gpus = gpu_loads(run, windows);
  if (!windows.empty()) result.energy = {0, 0};
  for (const PhaseWindow& window : windows) result.energy = result.energy + window.energy;
  for (const TrackedSpan& span : run.spans) {
    if (span.kind == SpanKind::evaluate) result.evaluate_s += seconds_of(span);
  }
  return result;
}

}  // namespace stoker
