#include "tools/live/monitor.h"

#include <chrono>
#include <cstdio>

#include "staging/threads.h"
#include "tools/machine/load.h"

namespace stoker {
LiveMonitor::LiveMonitor(Options options) : options_(std::move(options)), status_(options_.status) {
  begin_ = clock_seconds(CLOCK_MONOTONIC);
  last_ = {begin_, options_.feed_stats(), process_cpu_seconds()};
  thread_ = start_thread("live figures", [this] { watch(); });
}

LiveMonitor::~LiveMonitor() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  thread_.join();
}

void LiveMonitor::report(const StepReport& report) {
  const MutexLock lock(mutex_);
  report_ = report;
}

LiveStatus LiveMonitor::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void LiveMonitor::watch() {
  for (bool ended = false; !ended;) {
    const auto next_look =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.seconds);
    {
      MutexLock lock(mutex_);
      while (!ended_ && ended_changed_.wait_until(lock, next_look)) {
      }
      ended = ended_;
    }
    look(ended);
  }
}

void LiveMonitor::look(bool ended) {
  const FeedSample now{clock_seconds(CLOCK_MONOTONIC), options_.feed_stats(),
                       process_cpu_seconds()};
  LiveStatus status = options_.status;
  status.unix_seconds = clock_seconds(CLOCK_REALTIME);
  status.running_seconds = now.seconds - begin_;
  status.ended = ended;
  status.read = now.stats.read;
  status.cached_read = now.stats.cached_read;
  status.decode = now.stats.decode;
  status.rings = now.stats.rings;
  status.bad_samples = now.stats.bad_samples;
  status.pace = pace_between(last_, now);
  status.cpu_seconds = now.cpu_seconds;
  const double passed = now.seconds - last_.seconds;
  status.cpu_cores = passed > 0 ? (now.cpu_seconds - last_.cpu_seconds) / passed : 0;
  status.resident_bytes = resident_bytes();
  status.gpus = gpus_.read();
  status.no_gpus = gpus_.why_not();
  last_ = now;
  {
    const MutexLock lock(mutex_);
    status.report = report_;
    status_ = status;
  }
  if (options_.show) options_.show(status);
  if (options_.folder.empty() || !writes_) return;
  try {
    write_live_status(options_.folder, status);
  } catch (const std::exception& error) {  // no reason to end a training
    std::fprintf(stderr, "stoker: %s\n", error.what());
    writes_ = false;
  }
}

}  // namespace stoker
