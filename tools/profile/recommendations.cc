#include "tools/profile/recommendations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/profile/store_cause.h"

namespace stoker {
namespace {

// A change is enough if the step then waits for at most this share of its time.
constexpr double kEnough = 0.04;
// A larger change must bring at least this share more.
constexpr double kWorthwhileStep = 0.02;
// At most this many threads are recommended.
constexpr int kMaxAdded = 64;

Recommendation recommendation_of(const FeedWhatIf& feed, const std::string& what,
                                 const FeedChange& change) {
  const FeedWhatIf::Prediction predicted = feed.predict(change);
  return {what, change, predicted.samples_per_second, predicted.waiting_share};
}

void add_recommendation(const FeedWhatIf& feed, const std::string& what, const FeedChange& change,
                        Verdict& verdict) {
  verdict.recommendations.push_back(recommendation_of(feed, what, change));
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
  const int spare = std::max(0, shape.machine_cores - static_cast<int>(std::ceil(shape.cores)));
  if (const int cores = std::min(wanted, spare); cores > 0) {
    add_recommendation(feed, fmt::format("+{} core{} with a worker on each", cores, plural(cores)),
                       with_cores(cores), verdict);
  }
  if (wanted > spare) {
    verdict.larger_machine.push_back(recommendation_of(
        feed,
        fmt::format("a machine with {} more core{} and a worker on each", wanted, plural(wanted)),
        with_cores(wanted)));
  }
  if (profile.measured.worker_cpu_speed < 0.95) {
    add_recommendation(feed, "the cores without other work on them", {.undisturbed = true},
                       verdict);
  }
}

}  // namespace

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

}  // namespace stoker
