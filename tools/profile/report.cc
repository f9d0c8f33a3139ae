// The verdict in the terminal.
#include "tools/profile/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker {
namespace {

// The number of slices of a timeline.
constexpr double kSlices = 100;

using Lines = std::vector<std::string>;

std::string milliseconds_text(double seconds) { return fmt::format("{:.2f} ms", 1e3 * seconds); }

void add_part(Lines& lines, const char* name, double seconds, double step) {
  if (seconds < 0) {
    lines.push_back(fmt::format("  {:<20} unknown", name));
  } else if (seconds >= 0.001 * step) {
    lines.push_back(fmt::format("  {:<20} {:>10}  {:>5.1f}%", name, milliseconds_text(seconds),
                                100 * seconds / step));
  }
}

void add_split(const RunMeasurements& measured, Lines& lines) {
  const StepSplit& split = measured.split;
  lines.push_back(fmt::format("a step takes {}, {:.0f} images/s ({})",
                              milliseconds_text(split.step), measured.samples_per_second,
                              measured.spread < 0
                                  ? fmt::format("{} steps: too few to say how even", measured.steps)
                                  : fmt::format("± {:.1f}% over the run", 100 * measured.spread)));
  add_part(lines, "compute", split.compute, split.step);
  add_part(lines, "wait for a batch", split.input_wait, split.step);
  add_part(lines, "wait for its copy", split.copy_wait, split.step);
  add_part(lines, "wait for the host", split.launch_wait, split.step);
  add_part(lines, "wait for gradients", split.gradient_wait, split.step);
  add_part(lines, "update", split.update, split.step);
  add_part(lines, "other", split.other, split.step);
  if (measured.evaluate_s > 0) {
    lines.push_back(fmt::format("  besides, {:.2f} s of evaluation", measured.evaluate_s));
  }
}

std::string memory(const GpuLoad& gpu) {
  constexpr double kGibibyte = 1 << 30;
  const double used = static_cast<double>(gpu.memory_used_bytes) / kGibibyte;
  return gpu.memory_used_bytes < 0 ? "memory unknown"
         : gpu.memory_bytes < 0    ? fmt::format("memory {:.1f} GiB", used)
                                   : fmt::format("memory {:.1f} of {:.1f} GiB", used,
                                                 static_cast<double>(gpu.memory_bytes) / kGibibyte);
}

std::string rate(double bytes_per_second) {
  return bytes_per_second < 0 ? "unknown" : fmt::format("{:.1f} MB/s", 1e-6 * bytes_per_second);
}

std::string busy(const GpuLoad& gpu) {
  return gpu.busy_mean < 0 ? "busy unknown"
                           : fmt::format("busy {:.0f}% ({:.0f} to {:.0f}%)", 100 * gpu.busy_mean,
                                         100 * gpu.busy_least, 100 * gpu.busy_most);
}

std::string clock(const GpuLoad& gpu) {
  return gpu.sm_clock_mhz < 0 ? "SM clock unknown"
         : gpu.sm_clock_max_mhz < 0
             ? fmt::format("{:.0f} MHz", gpu.sm_clock_mhz)
             : fmt::format("{:.0f} of {:.0f} MHz", gpu.sm_clock_mhz, gpu.sm_clock_max_mhz);
}

void add_gpu_figures(const RunMeasurements& measured, Lines& lines) {
  for (const GpuLoad& gpu : measured.gpus) {
    const std::string cuda = gpu.cuda.empty() ? "" : " (" + gpu.cuda + ")";
    lines.push_back(fmt::format("GPU {}{}: {}, {}, {}, PCIe to it {}, from it {}", gpu.index, cuda,
                                busy(gpu), clock(gpu), memory(gpu),
                                rate(gpu.pcie_to_gpu_bytes_per_second),
                                rate(gpu.pcie_from_gpu_bytes_per_second)));
  }
}

void add_headline(const Profile& profile, Lines& lines) {
  const Verdict& verdict = profile.verdict;
  const auto add_line = [&lines](const char* name, const std::string& text) {
    lines.push_back(fmt::format("{:<14}  {}", name, text));
  };
  add_line("VERDICT", headline(verdict));
  if (!verdict.detail.empty()) add_line("", verdict.detail);
  add_line("confidence", verdict.confidence_text);
  const auto add_changes = [&](const char* name, const std::vector<Recommendation>& changes) {
    for (const Recommendation& each : changes) {
      add_line(name, fmt::format("{} -> {:.0f} images/s ({:.0f} to {:.0f}), waiting {:.0f}% -> "
                                 "{:.0f}%",
                                 each.what, each.samples_per_second, each.low, each.high,
                                 100 * verdict.waiting_share, 100 * each.waiting_share));
    }
  };
  add_changes("recommendation", verdict.recommendations);
  add_changes("larger machine", verdict.larger_machine);
  if (verdict.bound_samples_per_second > 0) {
    add_line("bound", fmt::format("{:.0f} images/s with the same batch again and again",
                                  verdict.bound_samples_per_second));
  }
}

}  // namespace

Profile make_profile(const ProfiledRun& run, const FeedShape& shape, const StorageRates& storage,
                     const std::optional<StoreStats>& store,
                     const std::function<std::string(SampleId)>& name_of) {
  Profile profile;
  ProfileMeasurements& measurements = profile.measurements;
  measurements.shape = shape;
  measurements.storage = storage;
  measurements.store = store;
  measurements.dropped_spans = run.dropped;
  measurements.no_gpus = run.gpus.no_gpus;
  measurements.no_energy = run.no_energy;
  measurements.measured = measure_run(run, shape.rows, windows_of(run, Phase::measured));
  measurements.replayed = measure_run(run, shape.rows, windows_of(run, Phase::replayed));
  const auto other = windows_of(run, Phase::other_workers);
  if (!other.empty() && other.front().workers != shape.workers) {
    measurements.other = measure_run(run, shape.rows, other);
    measurements.other_workers = other.front().workers;
  }
  profile.warm_up = measure_warm_up(run);
  profile.verdict = diagnose(measurements);
  double length_s = 0;
  for (const PhaseWindow& window : run.windows) {
    length_s += window.seconds();
    profile.resident_bytes = std::max(profile.resident_bytes, window.load.resident_bytes);
  }
  if (length_s > 0) {
    profile.timeline = timeline_of(run, shape.rows, shape.devices, length_s / kSlices);
  }
  for (const SlowFile& file : measurements.measured.slowest) {
    profile.slow_names.push_back(name_of(file.sample));
  }
  return profile;
}

std::string headline(const Verdict& verdict) {
  const double percent = 100 * verdict.waiting_share;
  if (verdict.limit == Limit::device) {
    return fmt::format("the device is fed: it waits {:.1f}% of the time", percent);
  }
  return fmt::format("{} limits: the device waits {:.1f}% of the time", describe(verdict.limit),
                     percent);
}

std::vector<std::string> verdict_lines(const Profile& profile) {
  Lines lines;
  add_headline(profile, lines);
  lines.push_back("");
  add_split(profile.measurements.measured, lines);
  add_gpu_figures(profile.measurements.measured, lines);
  const RunMeasurements& measured = profile.measurements.measured;
  lines.push_back("energy: " +
                  energy_text(measured.energy, profile.measurements.no_energy, measured.images()));
  const WarmUp& warm_up = profile.warm_up;
  lines.push_back(
      fmt::format("warm-up: the first batch came after {:.2f} s, the later pace after {:.1f} s ({} "
                  "steps); {:.1f} s ({} steps) are left out",
                  warm_up.first_batch_s, warm_up.seconds, warm_up.steps, warm_up.left_out_s,
                  warm_up.left_out_steps));
  lines.push_back("");
  for (const Evidence& each : profile.verdict.evidence) {
    lines.push_back(fmt::format("- {} [{}]", each.text, each.measured_by));
  }
  for (const std::string& unknown : profile.verdict.unknown)
    lines.push_back("? unknown: " + unknown);
  return lines;
}

}  // namespace stoker
