#include "tools/profile/session.h"

#include <chrono>
#include <stdexcept>

#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
// At most this many spans are kept; they take 150 MB. The phases divide a little less, because one
// is not ended before somebody looks.
constexpr size_t kMaxSpans = size_t{2} << 20;
constexpr double kDividedSpans = 0.9 * static_cast<double>(kMaxSpans);
// The warm-up takes this share of the time in addition to the phases.
constexpr double kWarmUpShare = 0.1;
// A measured phase has at least this many steps ...
constexpr int64_t kFewestSteps = 8;
// ... but lasts at most this many times its planned length if steps are slow.
constexpr double kPatience = 4;
// Counters of energy are read so often at least, before they begin anew.
constexpr int64_t kEnergyLookNs = 10'000'000'000;

struct Part {
  Phase phase;
  double share;  // of SessionOptions::seconds
};
constexpr Part kTimetable[] = {{Phase::measured, 0.25},      {Phase::settling, 0.08},
                               {Phase::other_workers, 0.17}, {Phase::settling, 0.08},
                               {Phase::measured, 0.25},      {Phase::settling, 0.02},
                               {Phase::replayed, 0.15}};

int other_number(int workers) { return workers > 1 ? workers - 1 : workers + 1; }

}  // namespace

ProfileSession::ProfileSession(const SessionOptions& options, Tracer& tracer)
    : options_(options), tracer_(tracer) {
  if (!(options.seconds > 0)) throw std::invalid_argument("profile: seconds must be above 0");
}

ProfileSession::~ProfileSession() {
  if (thread_.joinable()) finish();
}

void ProfileSession::start(RunHooks hooks) {
  hooks_ = std::move(hooks);
  gpus_.emplace();
  energy_.emplace();
  thread_ = start_thread("the profiler", [this] { watch(); });
}

ProfiledRun ProfileSession::finish() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  thread_.join();
  run_.gpus = gpus_->finish();
  run_.no_energy = energy_->why_not();
  gather();
  run_.tracks = tracer_.tracks();
  run_.dropped += tracer_.dropped();
  return std::move(run_);
}

void ProfileSession::gather() {
  const size_t before = run_.spans.size();
  tracer_.drain(run_.spans);
  gathered_ += run_.spans.size() - before;
  if (run_.spans.size() > kMaxSpans) {
    run_.dropped += static_cast<int64_t>(run_.spans.size() - kMaxSpans);
    run_.spans.resize(kMaxSpans);
  }
  for (size_t i = before; i < run_.spans.size(); ++i) {
    const TrackedSpan& span = run_.spans[i];
    steps_ += span.kind == SpanKind::step && span.device == 0;
  }
}

Energy ProfileSession::read_energy() {
  energy_read_ns_ = steady_now_ns();
  return energy_->read();
}

void ProfileSession::open(Phase phase, int workers) {
  std::vector<NamedThread> threads;
  for (const TraceTrack& track : tracer_.tracks()) threads.push_back({track.name, track.thread});
  at_open_ = read_machine_load(threads);
  energy_at_open_ = read_energy();
  run_.windows.push_back({phase, at_open_.time_ns, at_open_.time_ns, workers, {}, {}});
  steps_at_open_ = steps_;
  gathered_at_open_ = gathered_;
}

void ProfileSession::close() {
  std::vector<NamedThread> threads;
  for (const TraceTrack& track : tracer_.tracks()) threads.push_back({track.name, track.thread});
  PhaseWindow& window = run_.windows.back();
  const MachineLoad now = read_machine_load(threads);
  window.end_ns = now.time_ns;
  window.load = now - at_open_;
  window.energy = read_energy() - energy_at_open_;
}

// Returns whether the open window has lasted its share of the time, and has enough steps. It ends
// earlier if it has its share of the spans: rows of small pictures are many.
bool ProfileSession::due(double share) const {
  const PhaseWindow& window = run_.windows.back();
  const double passed = static_cast<double>(steady_now_ns() - window.begin_ns) * 1e-9;
  const double seconds = share * options_.seconds;
  const double spans = share / (1 + kWarmUpShare) * kDividedSpans;
  const bool is_long =
      passed >= seconds || static_cast<double>(gathered_ - gathered_at_open_) >= spans;
  const int64_t steps = steps_ - steps_at_open_;
  if (window.phase == Phase::warm_up) return steps >= options_.warm_up_steps && is_long;
  if (window.phase == Phase::settling) return is_long;
  return is_long && (steps >= kFewestSteps || passed >= kPatience * seconds);
}

void ProfileSession::watch() {
  size_t part = 0;
  open(Phase::warm_up, options_.workers);
  double share = kWarmUpShare;
  int workers = options_.workers;
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kLook;
      while (!ended_ && ended_changed_.wait_until(lock, until)) {
      }
      if (ended_) break;
    }
    gather();
    if (steady_now_ns() - energy_read_ns_ > kEnergyLookNs) read_energy();
    if (!due(share)) continue;
    close();
    if (part == std::size(kTimetable)) {
      // Otherwise the run would never ask for the batch that ends it.
      replay_.store(false);
      hooks_.stop();
      open(Phase::settling, workers);
      share = 1e9;
      continue;
    }
    const Part& next = kTimetable[part++];
    const bool before_other = next.phase == Phase::settling && part < std::size(kTimetable) &&
                              kTimetable[part].phase == Phase::other_workers;
    if (options_.workers > 0 && next.phase != Phase::other_workers) {
      workers = before_other ? other_number(options_.workers) : options_.workers;
      hooks_.limit_workers(workers);
    }
    if (next.phase == Phase::settling && part + 1 == std::size(kTimetable)) replay_.store(true);
    open(next.phase, workers);
    share = next.share;
  }
  close();
}

}  // namespace stoker
