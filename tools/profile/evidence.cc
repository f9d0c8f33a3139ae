#include "tools/profile/evidence.h"

#include <fmt/format.h>

#include "tools/profile/store_cause.h"

namespace stoker {
namespace {

// A fed device whose bound is this many times its rate is slowed down by the feed.
constexpr double kSlowed = 1.1;
// A feed that uses a smaller share of the cores does not slow down others.
constexpr double kFeedCores = 0.05;
// Two rates are compared only if each is from at least this many steps.
constexpr int64_t kComparedSteps = 16;
// One row in a hundred that takes a larger share of all time is worth a sentence.
constexpr double kStragglers = 0.2;
// A GPU that is busy for a smaller share of the time lowers its clock by itself.
constexpr double kBusyGpu = 0.5;
// A clock below this share of the highest is slow.
constexpr double kSlowClock = 0.8;

std::string seconds_text(double seconds) {
  if (seconds < 0) return "unknown";
  if (seconds < 1e-3) return fmt::format("{:.0f} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

const Latency& of(const RunMeasurements& measured, SpanKind kind) {
  return measured.latency[static_cast<int>(kind)];
}

void say(Verdict& verdict, const std::string& text, const std::string& by) {
  verdict.evidence.push_back({text, by});
}

void add_step_evidence(const ProfileMeasurements& profile, Verdict& verdict) {
  const RunMeasurements& measured = profile.measured;
  const StepSplit& split = measured.split;
  if (measured.steps == 0) {
    verdict.unknown.push_back("the step's parts: no step was measured");
    return;
  }
  say(verdict,
      fmt::format(
          "the device waits {:.1f}% of a step of {}: {:.1f}% for a batch, {:.1f}% for its copy",
          100 * split.waiting_share(), seconds_text(split.step),
          100 * split.input_wait / split.step, 100 * split.copy_wait / split.step),
      fmt::format("time stamps of {} steps", measured.steps));
  const Pauses& pauses = measured.pauses;
  if (pauses.count > 0) {
    say(verdict,
        fmt::format("it works in bursts: about {:.0f} steps, then a pause of {}; {:.0f}% of all "
                    "waiting is in them",
                    pauses.burst_steps, seconds_text(pauses.mean_s), 100 * pauses.share),
        fmt::format("{} steps that waited longer than they worked", pauses.count));
  }
  if (split.gradient_wait < 0) {
    verdict.unknown.push_back("the wait for gradients: it happens on the device");
  }
}

void add_stages_evidence(const ProfileMeasurements& profile, Verdict& verdict) {
  const RunMeasurements& measured = profile.measured;
  const FeedShape& shape = profile.shape;
  if (shape.workers > 0) {
    say(verdict,
        fmt::format(
            "{:.2f} of {} workers are busy; they get {:.0f}% of the CPU time they could use",
            measured.busy_workers, shape.workers, 100 * measured.worker_cpu_speed),
        "time stamps and CPU time of every sample");
  }
  const Latency& decode = of(measured, SpanKind::decode);
  const Latency& pixels = of(measured, SpanKind::pixels);
  if (decode.count > 0) {
    say(verdict,
        fmt::format("a sample takes {} of CPU time to decode and {} of pixel work (medians of wall "
                    "time {} and {})",
                    seconds_text(decode.cpu_mean), seconds_text(pixels.cpu_mean),
                    seconds_text(decode.p50), seconds_text(pixels.p50)),
        fmt::format("{} samples", decode.count));
  }
  const Latency& read = of(measured, SpanKind::read);
  if (read.count > 0) {
    say(verdict,
        fmt::format(
            "a read takes {} (p50), {} (p99), {} (most); {:.2f} of {} I/O threads are in one",
            seconds_text(read.p50), seconds_text(read.p99), seconds_text(read.max),
            measured.busy_readers, shape.io_threads),
        fmt::format("{} reads", read.count));
  }
  const Latency& cached = of(measured, SpanKind::cached_read);
  if (cached.count > 0) {
    say(verdict,
        fmt::format("{:.0f}% of the files are in memory: workers read them themselves, in {} (p50)",
                    100 * measured.cached_share, seconds_text(cached.p50)),
        fmt::format("{} reads", cached.count));
  }
  if (read.count == 0 && cached.count == 0) {
    verdict.unknown.push_back("reads: this source's samples are not files");
  }
  const Latency& copy = of(measured, SpanKind::copy);
  if (copy.count > 0) {
    say(verdict, fmt::format("a batch is copied in {}", seconds_text(copy.p50)),
        fmt::format("marks in the copy stream around {} copies", copy.count));
  }
}

void add_machine_evidence(const ProfileMeasurements& profile, Verdict& verdict) {
  const RunMeasurements& measured = profile.measured;
  if (measured.own_cores >= 0 && measured.other_cores >= 0) {
    const bool stolen = measured.stolen_cores >= 0.01;
    say(verdict,
        fmt::format(
            "this process uses {:.2f} of {:g} cores, others {:.2f}{}", measured.own_cores,
            profile.shape.cores, measured.other_cores,
            stolen ? fmt::format(", of which other virtual machines {:.2f}", measured.stolen_cores)
                   : ""),
        "CPU clock of the process, /proc/stat of its cores");
  } else {
    verdict.unknown.push_back("what used the cores: no /proc/stat");
  }
  if (measured.consumer_delay_share >= 0) {
    say(verdict,
        fmt::format("the thread that drives the device waited for a core {:.1f}% of the time",
                    100 * measured.consumer_delay_share),
        "/proc/self/task/*/schedstat");
  } else {
    verdict.unknown.push_back("how long threads waited for a core: no schedstat");
  }
  if (measured.disk_share >= 0) {
    say(verdict,
        fmt::format("storage is {}: {:.0f}% of the bytes read came from it, the rest from the page "
                    "cache or memory",
                    measured.disk_share > 0.5    ? "cold"
                    : measured.disk_share > 0.02 ? "partly cold"
                                                 : "warm",
                    100 * measured.disk_share),
        "/proc/self/io");
  } else {
    verdict.unknown.push_back("whether storage was cold: nothing was read through the system");
  }
  if (profile.store && profile.store->ranges > 0) {
    const StoreFinding finding = find_store_cause(*profile.store);
    say(verdict, finding.text, "every request of the run, and of the probe before it");
  }
  const StorageRates& rates = profile.storage;
  if (rates.warm > 0) {
    say(verdict,
        fmt::format("the source alone gives {:.0f} images/s with its files in memory{}", rates.warm,
                    rates.cold > 0
                        ? fmt::format(", {:.0f} from cold storage ({:.0f} with twice the threads)",
                                      rates.cold, rates.cold_twice)
                        : fmt::format(" ({:.0f} with twice the threads)", rates.warm_twice)),
        "reading without decoding, before the run");
  } else {
    verdict.unknown.push_back("what the storage gives alone: not probed");
  }
}

void add_gpus_evidence(const ProfileMeasurements& profile, Verdict& verdict) {
  for (const GpuLoad& gpu : profile.measured.gpus) {
    // A GPU that is not visible to CUDA in this process belongs to another program.
    if (gpu.busy_mean < kBusyGpu || gpu.sm_clock_mhz < 0 ||
        gpu.sm_clock_mhz >= kSlowClock * gpu.sm_clock_max_mhz || gpu.cuda.empty()) {
      continue;
    }
    say(verdict,
        fmt::format("{} ran at {:.0f} of at most {:.0f} MHz while it was busy {:.0f}% of the time",
                    gpu.cuda, gpu.sm_clock_mhz, gpu.sm_clock_max_mhz, 100 * gpu.busy_mean),
        fmt::format("{} readings of NVML", gpu.readings));
  }
  if (profile.shape.on_gpus && !profile.no_gpus.empty()) {
    verdict.unknown.push_back("what the GPUs did: " + profile.no_gpus);
  }
}

void add_experiments_evidence(const ProfileMeasurements& profile, Verdict& verdict) {
  if (profile.replayed.steps > 0) {
    say(verdict,
        fmt::format("with the same batch again and again it makes {:.0f} images/s: the bound for "
                    "any change of the feed",
                    profile.replayed.samples_per_second),
        fmt::format("{} steps that replayed a batch", profile.replayed.steps));
  } else {
    verdict.unknown.push_back("the bound with synthetic data: no step replayed a batch");
  }
  if (verdict.experiment_done) {
    say(verdict,
        fmt::format("with {} worker{} it makes {:.0f} images/s, with {} {:.0f}",
                    profile.shape.workers, profile.shape.workers == 1 ? "" : "s",
                    profile.measured.samples_per_second, profile.other_workers,
                    profile.other.samples_per_second),
        fmt::format("{} steps with another number of workers", profile.other.steps));
  }
  if (profile.dropped_spans > 0) {
    verdict.unknown.push_back(
        fmt::format("{} spans that found no room and are missing", profile.dropped_spans));
  }
}

std::string detail_of(const ProfileMeasurements& profile, const Verdict& verdict) {
  const RunMeasurements& measured = profile.measured;
  const double feed_cores = measured.busy_workers * measured.worker_cpu_speed;
  if (verdict.limit == Limit::device && feed_cores > kFeedCores * profile.shape.cores &&
      profile.replayed.steps >= kComparedSteps &&
      verdict.bound_samples_per_second > kSlowed * measured.samples_per_second) {
    return fmt::format(
        "but with the same batch again and again it makes {:.2f} times as many steps: while it "
        "computes, the feed takes cores or bandwidth from it",
        verdict.bound_samples_per_second / measured.samples_per_second);
  }
  if (verdict.limit == Limit::storage && profile.store && profile.store->ranges > 0) {
    return find_store_cause(*profile.store).text;
  }
  const bool in_feed = verdict.limit != Limit::device && verdict.limit != Limit::copy &&
                       verdict.limit != Limit::launch;
  if (in_feed && measured.slow_share > kStragglers) {
    return fmt::format("one sample in a hundred takes {:.0f}% of all reading and decoding time",
                       100 * measured.slow_share);
  }
  const bool cores_full = measured.own_cores >= 0.88 * profile.shape.cores;
  if (cores_full && (verdict.limit == Limit::decode || verdict.limit == Limit::pixels)) {
    return fmt::format(
        "all {:g} cores that the process may use are busy with it: more workers on them bring "
        "nothing",
        profile.shape.cores);
  }
  return "";
}

}  // namespace

void add_evidence(const ProfileMeasurements& profile, const FeedWhatIf* feed, Verdict& verdict) {
  add_step_evidence(profile, verdict);
  add_stages_evidence(profile, verdict);
  add_machine_evidence(profile, verdict);
  add_gpus_evidence(profile, verdict);
  add_experiments_evidence(profile, verdict);
  if (feed) {
    say(verdict,
        fmt::format("the feed alone would give {:.0f} images/s", verdict.feed_samples_per_second),
        "the model of the feed, driven by the measured times");
  }
  verdict.detail = detail_of(profile, verdict);
}

}  // namespace stoker
