// What the processes of a run say to each other besides gradients: that they agree on what they are
// about to do, where it starts, and in every step which rows they had. A run of one process says
// nothing. Owner: TrainSetup. Threads: one at a time. Errors: std::invalid_argument naming the
// processes that differ; std::runtime_error if another process failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "train/checkpoint.h"
#include "train/process_group.h"

namespace stoker {

// What a process had in a step. Rows are those of its replicas, in order.
struct StepNotes {
  int64_t wait_ns = 0;      // of the replica that waited longest for its batch
  int64_t bad_samples = 0;  // since the start of the process
  std::vector<SampleId> ids;
  std::vector<uint64_t> digests;  // of the rows' pixels; 0: the row does not count
};

class TrainProcesses {
 public:
  explicit TrainProcesses(ProcessGroup* group) : group_(group) {}  // null: one process
  TrainProcesses(const TrainProcesses&) = delete;
  TrainProcesses& operator=(const TrainProcesses&) = delete;

  ProcessGroup* group() const { return group_; }
  int rank() const { return group_ ? group_->rank() : 0; }
  int size() const { return group_ ? group_->size() : 1; }
  bool first() const { return rank() == 0; }

  // `value` must be the same everywhere; `what` names it, with the option that sets it.
  void require_same(int64_t value, const std::string& what);
  // The same for what is too long to print.
  void require_same_text(const std::string& text, const std::string& what);
  // Process 0's, everywhere.
  void share(CheckpointInfo& progress, TrainState& state, bool& resumed);
  bool any(bool value);         // of all processes
  int64_t most(int64_t value);  // likewise

  // Takes every process's notes of a step to process 0, which returns them all by rank; the others
  // return nothing and go on at once. All have the same number of rows.
  std::vector<StepNotes> collect(const StepNotes& notes);
  void finish_collecting();  // before notes go out of use

 private:
  ProcessGroup* const group_;
  std::vector<std::byte> sent_;
  bool sending_ = false;
  ProcessGroup::Ticket ticket_ = 0;
};

}  // namespace stoker
