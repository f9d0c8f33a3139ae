// Monitors a training in this process: once a second it reads the figures, writes them to live.json
// in the run's folder, shows them, and keeps them for a scrape. It costs a few system calls a
// second.
//
// Owner: the command; constructed before run(), destroyed after it. Threads: its own; report() is
// called on the trainer's.
#pragma once

#include <functional>
#include <thread>

#include "staging/mutex.h"
#include "tools/live/status.h"

namespace stoker {

class LiveMonitor {
 public:
  struct Options {
    std::string folder;  // the run's; "": nothing is written
    LiveStatus status;   // what stays the same: run, process, workers,
                         // io_threads, ring_depth
    double seconds = 1;  // between two readings
    std::function<LoaderStats()> feed_stats;
    std::function<void(const LiveStatus&)> show;  // called on the monitor's thread; may be empty
  };
  explicit LiveMonitor(Options options);
  ~LiveMonitor();  // reads once more and records that the run has ended
  LiveMonitor(const LiveMonitor&) = delete;
  LiveMonitor& operator=(const LiveMonitor&) = delete;

  void report(const StepReport& report);
  LiveStatus status() const;  // the last reading

 private:
  void watch();
  void look(bool ended);

  const Options options_;
  GpuMonitor gpus_;     // the watching thread's
  FeedSample last_;     // likewise
  double begin_ = 0;    // steady clock, seconds
  bool writes_ = true;  // the watching thread's: false after a failure
  mutable Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  StepReport report_ GUARDED_BY(mutex_);
  LiveStatus status_ GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace stoker
