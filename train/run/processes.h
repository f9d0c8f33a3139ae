// Messages between the processes of a run, besides gradients: they check that their options agree,
// process 0 shares where the run starts, and in every step they report which samples they had. With
// one process there is no communication. Owner: TrainSetup. Threads: one at a time. Errors:
// std::invalid_argument naming the processes that differ; std::runtime_error if another process
// failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "pipeline/loader_types.h"
#include "train/checkpoint/checkpoint.h"
#include "train/collective/process/process_group.h"
#include "train/collective/traffic.h"
#include "train/run/step_log.h"

namespace stoker {

// The notes of a process about one step. Rows are in the order of its replicas.
struct StepNotes {
  int64_t wait_ns = 0;      // longest wait of a replica for its batch
  int64_t bad_samples = 0;  // since the start of the process
  int64_t stop = 0;         // not 0: someone has requested this process to stop
  Traffic traffic;          // of all its replicas, in this step
  std::vector<SampleId> ids;
  std::vector<uint64_t> digests;  // of the rows' pixels; 0: the row does not count
  std::vector<RowLoss> losses;    // of the rows; empty without TrainOptions::row_losses
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

  // Throws if `value` differs between processes; `what` names the value and the option that sets
  // it.
  void require_same(int64_t value, const std::string& what);
  // The same for text that is too long to print.
  void require_same_text(const std::string& text, const std::string& what);
  // Each replaces the argument of the other processes by that of one process: of process 0, or of
  // `owner`. The first shares from where the run's feed goes on, and nothing of ModelProgress.
  void share(CheckpointInfo& progress);
  void share(ModelProgress& progress);
  void share(TrainState& state, int owner = 0);
  // Returns the values of all processes by rank, in every process.
  template <typename Value>
  std::vector<Value> all_gather(std::span<const Value> own);
  bool all_reduce_any(bool value);        // true if any process has true
  int64_t all_reduce_max(int64_t value);  // the largest value of all processes

  // send_notes() starts to send a step's notes to process 0 and does not wait. take_notes() is
  // called once per send_notes(), in the same order; it returns the notes of all processes by rank
  // in process 0, and nothing in the others. All processes have as many rows.
  void send_notes(const StepNotes& notes);
  std::vector<StepNotes> take_notes();
  void finish_collecting();  // waits until all notes are sent; call it last
  // Returns whether all_reduce_any() can be called in every step without waiting for the devices.
  // If not, a stop request travels with the notes, and every process sees it in take_notes().
  bool can_ask() const { return !group_ || group_->messages(); }
  bool heard_stop() const { return heard_stop_; }

 private:
  struct Notes {  // under way
    StepNotes own;
    std::vector<std::byte> sent, all;
    std::vector<ProcessGroup::Ticket> tickets;
  };
  std::vector<StepNotes> unpack_all(const Notes& notes);

  ProcessGroup* const group_;
  std::deque<Notes> under_way_;
  std::optional<Notes> leaving_;  // a message that process 0 may not have received yet
  bool heard_stop_ = false;
};

template <typename Value>
std::vector<Value> TrainProcesses::all_gather(std::span<const Value> own) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> all(own.begin(), own.end());
  if (!group_) return all;
  all.resize(own.size() * static_cast<size_t>(size()));
  group_->end_all_gather(
      group_->start_all_gather(std::as_bytes(own), std::as_writable_bytes(std::span(all))));
  return all;
}

}  // namespace stoker
