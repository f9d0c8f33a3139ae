// What the processes of a run say to each other besides gradients: that they agree on what they are
// about to do, where it starts, and in every step which rows they had. A run of one process says
// nothing. Owner: TrainSetup. Threads: one at a time. Errors: std::invalid_argument naming the
// processes that differ; std::runtime_error if another process failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/loader_types.h"
#include "train/checkpoint/checkpoint.h"
#include "train/collective/process/process_group.h"

namespace stoker {

// What a process had in a step. Rows are those of its replicas, in order.
struct StepNotes {
  int64_t wait_ns = 0;      // of the replica that waited longest for its batch
  int64_t bad_samples = 0;  // since the start of the process
  int64_t stop = 0;         // not 0: the process was asked to stop
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
  bool is_rank0() const { return rank() == 0; }

  // `value` must be the same everywhere; `what` names it, with the option that sets it.
  void require_same(int64_t value, const std::string& what);
  // The same for what is too long to print.
  void require_same_text(const std::string& text, const std::string& what);
  // Process 0's, everywhere.
  void share(CheckpointInfo& progress, TrainState& state, bool& resumed);
  bool all_reduce_any(bool value);        // of all processes
  int64_t all_reduce_max(int64_t value);  // likewise

  // Notes of steps go to process 0. send_notes() starts that and does not wait. take_notes(), once
  // for each of them and in their order, returns the notes of all processes by rank in process 0,
  // and nothing in the others. All processes have the same number of rows.
  void send_notes(const StepNotes& notes);
  std::vector<StepNotes> take_notes();
  void finish_collecting();  // before notes go out of use
  // True where everybody can be asked in every step (all_reduce_any()) without waiting for the
  // devices. Else what a process was asked goes with its notes, and all hear of it in take_notes().
  bool can_ask() const { return !group_ || group_->messages(); }
  bool heard_stop() const { return heard_stop_; }

 private:
  struct Notes {  // on their way
    StepNotes own;
    std::vector<std::byte> sent, all;
    ProcessGroup::Ticket ticket = 0;
  };
  std::vector<StepNotes> take_messages(Notes& notes, MessageGroup& group);
  std::vector<StepNotes> take_gathered(Notes& notes);

  ProcessGroup* const group_;
  std::deque<Notes> under_way_;
  std::optional<Notes> leaving_;  // a message that process 0 may not have received yet
  bool heard_stop_ = false;
};

}  // namespace stoker
