#include "tools/profile/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/profile/evidence.h"
#include "tools/profile/store_cause.h"

namespace stoker {
namespace {

// A change is enough if the step then waits for at most this share of its time.
constexpr double kEnough = 0.04;
// A larger change must bring at least this share more.
constexpr double kWorthwhileStep = 0.02;
// At most this many threads are recommended.
constexpr int kMaxAdded = 64;

// Returns by how much a prediction may be off, relative: what the model was off on the two runs
// that it is compared with, and how uneven the measured run was.
double doubt_of(const ProfileMeasurements& profile, const Verdict& verdict) {
  constexpr double kLeast = 0.08;   // of a run that says nothing against the model
  constexpr double kUneven = 0.15;  // if too few steps were measured to see how even they are
  const double spread = profile.measured.spread < 0 ? kUneven : profile.measured.spread;
  double squares = kLeast * kLeast + spread * spread;
  for (const double error : {verdict.model_error, verdict.experiment_error}) {
    squares += error * error;
  }
  return std::sqrt(squares);
}

// A prediction is no less certain than the bound that it has reached.
void add_range(double unbounded, double bound, double doubt, Recommendation& each) {
  constexpr double kBound = 0.04;  // how far the steps' own rate may be off
  each.low = std::min(each.samples_per_second * (1 - kBound), unbounded / (1 + doubt));
  each.high = unbounded * (1 + doubt);
  if (bound > 0) each.high = std::min(each.high, bound * (1 + kBound));
}

Recommendation recommendation_of(const FeedWhatIf& feed, const std::string& what,
                                 const FeedChange& change, const Verdict& verdict) {
  const FeedWhatIf::Prediction predicted = feed.predict(change);
  Recommendation result{.what = what,
                        .change = change,
                        .samples_per_second = predicted.samples_per_second,
                        .waiting_share = predicted.waiting_share};
  add_range(predicted.unbounded, verdict.bound_samples_per_second, verdict.doubt, result);
  return result;
}

void add_recommendation(const FeedWhatIf& feed, const std::string& what, const FeedChange& change,
                        Verdict& verdict) {
  verdict.recommendations.push_back(recommendation_of(feed, what, change, verdict));
}

// Returns the smallest n of 1, 2, 3, 4, 8, ... up to `most` with which the step hardly waits after
// change(n), or from which on more brings nothing.
template <typename Change>
int enough_of(const FeedWhatIf& feed, Change change, int most = kMaxAdded) {
  int chosen = 1;
  double rate = feed.predict(change(1)).samples_per_second;
  for (int more = 2; more <= most; more = more < 4 ? more + 1 : 2 * more) {
    if (feed.predict(change(chosen)).waiting_share <= kEnough) break;
    const double next = feed.predict(change(more)).samples_per_second;
    if (next < rate * (1 + kWorthwhileStep)) break;
    chosen = more;
    rate = next;
  }
  return chosen;
}

const char* plural(int count) { return count > 1 ? "s" : ""; }

// A process that uses a larger share of its cores uses all of them.
constexpr double kAllBusy = 0.88;

bool all_cores_are_ours(const ProfileMeasurements& profile) {
  return profile.measured.own_cores >= kAllBusy * profile.shape.cores;
}

// Workers compute, so more workers than cores bring nothing, and the recommendation must not ask
// for cores that the machine does not have.
void add_worker_recommendations(const ProfileMeasurements& profile, const FeedWhatIf& feed,
                                Verdict& verdict) {
  const FeedShape& shape = profile.shape;
  const int without_worker = static_cast<int>(shape.cores) - shape.workers;
  if (without_worker > 0) {
    const int workers = enough_of(
        feed, [](int more) { return FeedChange{.workers = more}; }, without_worker);
    add_recommendation(feed, fmt::format("+{} worker{}", workers, plural(workers)),
                       {.workers = workers}, verdict);
  }
  const auto with_cores = [](int more) {
    return FeedChange{.workers = more, .cores = static_cast<double>(more)};
  };
  const int wanted = enough_of(feed, with_cores);
  const double spare = std::max(0.0, shape.machine_cores - shape.cores);
  if (const int cores = std::min(wanted, static_cast<int>(spare)); cores > 0) {
    add_recommendation(feed, fmt::format("+{} core{} with a worker on each", cores, plural(cores)),
                       with_cores(cores), verdict);
  } else if (spare > 0) {
    add_recommendation(feed, fmt::format("+{:g} cores", spare), {.cores = spare}, verdict);
  }
  if (wanted > spare) {
    verdict.larger_machine.push_back(recommendation_of(
        feed,
        fmt::format("a machine with {} more core{} and a worker on each", wanted, plural(wanted)),
        with_cores(wanted), verdict));
  }
  if (profile.measured.worker_cpu_speed < 0.95 && !all_cores_are_ours(profile)) {
    add_recommendation(feed, "the cores without other work on them", {.undisturbed = true},
                       verdict);
  }
}

void add_recommendations(const ProfileMeasurements& profile, const FeedWhatIf& feed,
                         Verdict& verdict) {
  switch (verdict.limit) {
    case Limit::decode:
    case Limit::pixels:
    case Limit::stolen_cpu:
      add_worker_recommendations(profile, feed, verdict);
      break;
    case Limit::storage:
      if (profile.store && profile.store->ranges > 0) {
        for (const std::string& cure : find_store_cause(*profile.store).cures) {
          add_recommendation(feed, cure, {.storage_free = true}, verdict);
        }
        break;
      }
      add_recommendation(feed, "the files in memory (page cache)", {.storage_free = true}, verdict);
      break;
    case Limit::io_threads: {
      const int more = enough_of(feed, [](int n) { return FeedChange{.io_threads = n}; });
      add_recommendation(feed, fmt::format("+{} I/O thread{}", more, more > 1 ? "s" : ""),
                         {.io_threads = more}, verdict);
      add_recommendation(feed, "the files in memory (page cache)", {.storage_free = true}, verdict);
      break;
    }
    case Limit::ring_depth: {
      const int more = enough_of(feed, [](int n) { return FeedChange{.ring_depth = n}; });
      add_recommendation(feed, fmt::format("a ring of {} batches", profile.shape.ring_depth + more),
                         {.ring_depth = more}, verdict);
      break;
    }
    case Limit::copy:
      if (profile.shape.slots < 2) {
        const int more = 2 - profile.shape.slots;
        add_recommendation(feed, "2 staging slots", {.slots = more}, verdict);
      }
      add_recommendation(feed, "a copy that takes no time", {.copy_free = true}, verdict);
      break;
    default:
      break;
  }
  std::stable_sort(verdict.recommendations.begin(), verdict.recommendations.end(),
                   [](const Recommendation& a, const Recommendation& b) {
                     return a.samples_per_second > b.samples_per_second;
                   });
}

// A step that waits for a smaller share of its time is fed.
constexpr double kFed = 0.05;
// A smaller gain is noise.
constexpr double kWorthwhileGain = 0.02;
// If twice the threads read this many times more, there are too few I/O threads.
constexpr double kScales = 1.5;
// Workers that get fewer CPU seconds per second of work are waiting for cores.
constexpr double kDisturbed = 0.85;
constexpr int kResamples = 15;
// With fewer steps a single one can decide the result.
constexpr int64_t kDecisiveSteps = 16;

// Returns how many times as much storage delivers to twice the threads, cold or warm as in the run.
// -1: not measured.
double storage_scaling(const ProfileMeasurements& profile) {
  const StorageRates& rates = profile.storage;
  const bool cold = profile.measured.disk_share > 0.5 && rates.cold > 0;
  const double once = cold ? rates.cold : rates.warm;
  const double twice = cold ? rates.cold_twice : rates.warm_twice;
  return once > 0 && twice > 0 ? twice / once : -1;
}

Limit limit_of_reading(const ProfileMeasurements& profile) {
  // Samples of a store are fetched ahead, whatever the number of I/O threads.
  if (profile.store && profile.store->ranges > 0) return Limit::storage;
  const double scaling = storage_scaling(profile);
  return scaling >= kScales ? Limit::io_threads : Limit::storage;
}

Limit limit_of_filling(const ProfileMeasurements& profile, const FeedWhatIf& feed, double gain) {
  const RunMeasurements& measured = profile.measured;
  if (measured.worker_cpu_speed < kDisturbed && !all_cores_are_ours(profile) &&
      feed.gain({.undisturbed = true}) >= 0.4 * gain) {
    return Limit::stolen_cpu;
  }
  return measured.pixels_share > 0.5 ? Limit::pixels : Limit::decode;
}

struct Gains {
  double device, ring, copy, fill, read;
};

Gains gains_of(const ProfileMeasurements& profile, const FeedWhatIf& feed) {
  const bool copies = profile.shape.slots > 0 || !profile.shape.zero_copy;
  return {.device = feed.gain({.step_free = true}),
          .ring = feed.gain({.ring_depth = std::max(8, 3 * profile.shape.ring_depth)}),
          .copy = copies ? feed.gain({.copy_free = true}) : 0,
          .fill = feed.gain({.fill_free = true}),
          .read = feed.gain({.storage_free = true})};
}

// For a device that waits although no faster stage would help. It waits for the thread that drives
// it if that thread waited for a core for at least half of the waiting.
Limit limit_of_no_stage(const ProfileMeasurements& profile) {
  const RunMeasurements& measured = profile.measured;
  if (measured.consumer_delay_share < 0.5 * measured.split.waiting_share()) return Limit::unknown;
  return all_cores_are_ours(profile) ? Limit::launch : Limit::stolen_cpu;
}

Limit limit_of(const ProfileMeasurements& profile, const FeedWhatIf& feed, const Gains& gains) {
  const StepSplit& split = profile.measured.split;
  if (split.waiting_share() < kFed) {
    return split.launch_wait > kFed * split.step ? Limit::launch : Limit::device;
  }
  const double best = std::max({gains.ring, gains.copy, gains.fill, gains.read});
  if (best < kWorthwhileGain) return limit_of_no_stage(profile);
  // A longer ring is the smallest change. Where it brings much of what a faster stage would, the
  // stages are fast enough and only wait for each other.
  if (gains.ring >= std::max(0.5 * best, 0.03)) return Limit::ring_depth;
  if (best == gains.copy) return Limit::copy;
  if (best == gains.read) return limit_of_reading(profile);
  return limit_of_filling(profile, feed, gains.fill);
}

// Returns the model of the feed, with the CPU speed that another number of workers got.
FeedWhatIf with_experiment(const ProfileMeasurements& profile, const Verdict& verdict) {
  OtherWorkers other;
  if (verdict.experiment_done) {
    other = {profile.other_workers, profile.other.worker_cpu_speed,
             profile.other.samples_per_second};
  }
  return FeedWhatIf(profile.shape, profile.measured, verdict.bound_samples_per_second, other);
}

void add_confidence(const ProfileMeasurements& profile, const FeedWhatIf& feed, Verdict& verdict) {
  int agree = 0;
  for (int i = 0; i < kResamples; ++i) {
    const FeedWhatIf again = feed.resampled(static_cast<uint64_t>(i) + 1);
    agree += limit_of(profile, again, gains_of(profile, again)) == verdict.limit;
  }
  const auto trust = [](double error) {
    return std::clamp(1.25 - 2.5 * std::abs(error), 0.1, 1.0);
  };
  verdict.confidence = static_cast<double>(agree) / kResamples * trust(verdict.model_error);
  // Close to the limit between fed and starving, either verdict is half right.
  if (std::abs(verdict.waiting_share - kFed) < 0.02) verdict.confidence *= 0.7;
  if (profile.measured.spread > 0.25) verdict.confidence *= 0.7;
  const bool few = profile.measured.steps < kDecisiveSteps;
  if (few) verdict.confidence *= 0.7;
  const char* word = verdict.confidence >= 0.8   ? "high"
                     : verdict.confidence >= 0.5 ? "medium"
                                                 : "low";
  verdict.confidence_text = fmt::format(
      "{}: {} of {} resamplings of the measured times name the same stage; the model of the feed "
      "is {:+.1f}% off the measured rate",
      word, agree, kResamples, 100 * verdict.model_error);
  if (few) verdict.confidence_text += fmt::format("; only {} steps", profile.measured.steps);
  if (verdict.experiment_done) {
    verdict.confidence_text +=
        fmt::format("; it predicted the run with {} worker{} to {:+.1f}%", profile.other_workers,
                    profile.other_workers == 1 ? "" : "s", 100 * verdict.experiment_error);
  }
}

}  // namespace

const char* to_string(Limit limit) {
  static constexpr const char* kNames[kLimits] = {
      "device",     "storage", "io_threads", "decode", "pixels",
      "ring_depth", "copy",    "stolen_cpu", "launch", "unknown"};
  return kNames[static_cast<int>(limit)];
}

const char* describe(Limit limit) {
  static constexpr const char* kTexts[kLimits] = {"the device itself",
                                                  "storage",
                                                  "too few I/O threads",
                                                  "decoding",
                                                  "pixel work (augmentation)",
                                                  "a ring that is too short",
                                                  "the copy to the device",
                                                  "other work on the cores",
                                                  "a host that queues the device's work late",
                                                  "nothing that was measured"};
  return kTexts[static_cast<int>(limit)];
}

Verdict diagnose(const ProfileMeasurements& profile) {
  Verdict verdict;
  verdict.waiting_share = profile.measured.split.waiting_share();
  if (profile.replayed.steps > 0) {
    verdict.bound_samples_per_second = profile.replayed.samples_per_second;
  }
  const FeedWhatIf feed(profile.shape, profile.measured, verdict.bound_samples_per_second);
  if (!feed.possible()) {
    if (profile.measured.steps > 0 && verdict.waiting_share < kFed) verdict.limit = Limit::device;
    verdict.confidence_text = "low: too little was measured to model the feed";
    add_evidence(profile, nullptr, verdict);
    return verdict;
  }
  const Gains gains = gains_of(profile, feed);
  verdict.limit = limit_of(profile, feed, gains);
  verdict.model_error = feed.model_error();
  verdict.feed_samples_per_second = profile.measured.samples_per_second * (1 + gains.device);
  verdict.gains = {
      {Limit::device, gains.device},
      {Limit::ring_depth, gains.ring},
      {Limit::copy, gains.copy},
      {profile.measured.pixels_share > 0.5 ? Limit::pixels : Limit::decode, gains.fill},
      {limit_of_reading(profile), gains.read}};
  std::stable_sort(verdict.gains.begin(), verdict.gains.end(),
                   [](const StageGain& a, const StageGain& b) { return a.gain > b.gain; });
  if (profile.other_workers > 0 && profile.other.steps > 0) {
    const auto predicted = feed.predict({.workers = profile.other_workers - profile.shape.workers});
    verdict.experiment_error = predicted.samples_per_second / profile.other.samples_per_second - 1;
    verdict.experiment_done = true;
  }
  add_confidence(profile, feed, verdict);
  verdict.doubt = doubt_of(profile, verdict);
  add_recommendations(profile, with_experiment(profile, verdict), verdict);
  add_evidence(profile, &feed, verdict);
  return verdict;
}

}  // namespace stoker
