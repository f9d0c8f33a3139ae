// Runs of several processes, which are threads here. Values.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/thread_processes.h"
#include "tests/train/run_fixture.h"

namespace stoker {

struct ProcessesOutcome {  // by process
  std::vector<TrainResult> results;
  std::vector<uint64_t> hashes;
  std::vector<std::string> thrown;  // "" if nothing was thrown
};

using OptionsChange = std::function<void(int rank, TrainOptions&)>;

struct ProcessesRun {
  const Source* eval = nullptr;
  bool messages = true;    // as MPI has them; false: as NCCL
  OptionsChange change{};  // the options of a process
  int stopper = -1;        // the process that requests a stop when step `stop_step` is reported
  int64_t stop_step = 0;
};

// Runs `options` in each of `processes`.
inline ProcessesOutcome run_processes(int processes, const TrainOptions& options,
                                      const EngineFactory& engines, const Source& source,
                                      const ProcessesRun& how = {}) {
  ProcessesOutcome outcome;
  outcome.results.resize(static_cast<size_t>(processes));
  outcome.hashes.resize(static_cast<size_t>(processes));
  std::mutex mutex;
  ThreadProcesses group(processes);
  std::vector<Trainer*> trainers(static_cast<size_t>(processes));
  outcome.thrown = group.run(
      [&](ProcessGroup& process) {
        const int rank = process.rank();
        TrainOptions mine = options;
        mine.processes = &process;
        if (how.change) how.change(rank, mine);
        RecordingObserver observer;
        Trainer trainer(source, how.eval, mine, observer, engines);
        {
          const std::lock_guard lock(mutex);
          trainers[static_cast<size_t>(rank)] = &trainer;
        }
        all_reduce_max(process, 0);
        observer.at_step = [&](const StepReport& report) {  // called in process 0 only
          if (how.stopper >= 0 && report.step == how.stop_step) {
            trainers[static_cast<size_t>(how.stopper)]->request_stop();
          }
        };
        outcome.results[static_cast<size_t>(rank)] = trainer.run();
        outcome.hashes[static_cast<size_t>(rank)] = trainer.weights_hash();
        if (rank > 0) {
          EXPECT_TRUE(observer.steps.empty() && observer.epochs.empty() && observer.plan.empty());
        }
        all_reduce_max(process, 0);  // keeps all trainers alive until all have run
      },
      how.messages);
  return outcome;
}

inline void expect_clean(const ProcessesOutcome& outcome) {
  for (const std::string& each : outcome.thrown) EXPECT_EQ(each, "");
}

}  // namespace stoker
