// A profiling session. It gathers a Tracer's spans and takes the run through its phases, which are
// the experiments: as it is; with one worker fewer (or one more if there is only one); as it is
// once more; and with the same batch again and again, so that the step does not wait for input.
// Then it stops the run. The first steps are warm-up: as many as fill the ring, and a share of the
// time.
//
// Owner: the code that starts the run. Threads: its own; start() before the run, finish() after it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "staging/mutex.h"
#include "tools/profile/profiled_run.h"

namespace stoker {

struct SessionOptions {
  double seconds = 10;  // length of all phases after the warm-up, at most
  int workers = 1;      // of the feed; 0: the feed runs inline, and the number is not changed
  int warm_up_steps = 8;
};

struct RunHooks {
  std::function<void(int)> limit_workers;
  std::function<void()> stop;  // the run ends soon after the call
};

class ProfileSession {
 public:
  // Returns the number of spare workers that the feed needs.
  static int spare_workers(int workers) { return workers == 1 ? 1 : 0; }

  ProfileSession(const SessionOptions& options, Tracer& tracer);
  ~ProfileSession();
  ProfileSession(const ProfileSession&) = delete;
  ProfileSession& operator=(const ProfileSession&) = delete;

  // While true, the run gives its devices the last batch again.
  const std::atomic<bool>& replay() const { return replay_; }
  void start(RunHooks hooks);
  ProfiledRun finish();  // call it once, even if the run ended by itself

 private:
  void watch();
  void gather();
  Energy read_energy();
  void open(Phase phase, int workers);
  void close();
  bool due(double share) const;

  const SessionOptions options_;
  Tracer& tracer_;
  RunHooks hooks_;
  std::atomic<bool> replay_{false};
  Mutex mutex_;
  CondVar ended_changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  // The watching thread uses these until it is joined.
  ProfiledRun run_;
  MachineLoad at_open_;
  Energy energy_at_open_;
  int64_t energy_read_ns_ = 0;
  int64_t steps_ = 0;  // steps of device 0
  int64_t steps_at_open_ = 0;
  size_t gathered_ = 0;  // spans, with those that were not kept
  size_t gathered_at_open_ = 0;
  std::optional<GpuSampler> gpus_;  // from start() to finish()
  std::optional<EnergyMeter> energy_;
  std::jthread thread_;
};

}  // namespace stoker
