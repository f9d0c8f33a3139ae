#include "train/run/processes.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "train/checkpoint/checksum.h"

namespace stoker {
namespace {

constexpr int kStates = 7;

// The fields of CheckpointInfo from which a run resumes.
struct Start {
  int64_t resumed = 0;
  int64_t step = 0;
  LoaderState loader;
  int64_t batch = 0;
  RunningTotals epoch;
  double best_top1 = 0, last_top1 = -1, last_top5 = -1;
  int64_t residual_replicas = 0;
  int64_t sizes[kStates] = {};  // of the buffers of TrainState
};

template <typename Value>
void share_values(ProcessGroup& group, std::span<Value> values) {
  broadcast(group, std::as_writable_bytes(values));
}

constexpr size_t kHead = 24 + sizeof(Traffic);  // bytes before the rows

size_t notes_bytes(const StepNotes& notes) { return kHead + 16 * notes.ids.size(); }

void pack(const StepNotes& notes, std::vector<std::byte>& bytes) {
  bytes.resize(notes_bytes(notes));
  const size_t rows = 8 * notes.ids.size();
  std::memcpy(bytes.data(), &notes.wait_ns, 8);
  std::memcpy(bytes.data() + 8, &notes.bad_samples, 8);
  std::memcpy(bytes.data() + 16, &notes.stop, 8);
  std::memcpy(bytes.data() + 24, &notes.traffic, sizeof(Traffic));
  std::memcpy(bytes.data() + kHead, notes.ids.data(), rows);
  std::memcpy(bytes.data() + kHead + rows, notes.digests.data(), rows);
}

void unpack(std::span<const std::byte> bytes, StepNotes& notes) {
  const size_t rows = 8 * notes.ids.size();
  std::memcpy(&notes.wait_ns, bytes.data(), 8);
  std::memcpy(&notes.bad_samples, bytes.data() + 8, 8);
  std::memcpy(&notes.stop, bytes.data() + 16, 8);
  std::memcpy(&notes.traffic, bytes.data() + 24, sizeof(Traffic));
  std::memcpy(notes.ids.data(), bytes.data() + kHead, rows);
  std::memcpy(notes.digests.data(), bytes.data() + kHead + rows, rows);
}

}  // namespace

void TrainProcesses::require_same(int64_t value, const std::string& what) {
  if (!group_) return;
  const std::vector<int64_t> values = all_gather(*group_, value);
  for (size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] == values[0]) continue;
    throw std::invalid_argument(
        fmt::format("{}: {} in process 0, {} in process {}; it must be the "
                    "same in all",
                    what, values[0], values[rank], rank));
  }
}

void TrainProcesses::require_same_text(const std::string& text, const std::string& what) {
  if (!group_) return;
  const std::vector<int64_t> hashes = all_gather(*group_, static_cast<int64_t>(fnv1a(text)));
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    throw std::invalid_argument(
        fmt::format("{}: process {} was given other ones than process 0", what, rank));
  }
}

void TrainProcesses::share(CheckpointInfo& progress, TrainState& state, bool& resumed) {
  if (!group_) return;
  std::vector<float>* const buffers[kStates] = {
      &state.parameters,         &state.momenta,        &state.statistics, &state.average,
      &state.average_statistics, &state.second_moments, &state.residuals};
  Start start;
  if (is_rank0()) {
    start = {resumed,
             progress.step,
             progress.loader,
             progress.batch,
             progress.epoch,
             progress.best_top1,
             progress.last_top1,
             progress.last_top5,
             state.residual_replicas,
             {}};
    for (int i = 0; i < kStates; ++i) start.sizes[i] = static_cast<int64_t>(buffers[i]->size());
  }
  share_values(*group_, std::span(&start, 1));
  resumed = start.resumed != 0;
  progress.step = start.step;
  progress.loader = start.loader;
  progress.batch = static_cast<int>(start.batch);
  progress.epoch = start.epoch;
  progress.best_top1 = start.best_top1;
  progress.last_top1 = start.last_top1;
  progress.last_top5 = start.last_top5;
  state.residual_replicas = static_cast<int>(start.residual_replicas);
  for (int i = 0; i < kStates; ++i) {
    buffers[i]->resize(static_cast<size_t>(start.sizes[i]));
    share_values(*group_, std::span(*buffers[i]));
  }
}

int64_t TrainProcesses::all_reduce_max(int64_t value) {
  return group_ ? stoker::all_reduce_max(*group_, value) : value;
}

bool TrainProcesses::all_reduce_any(bool value) {
  return group_ ? stoker::all_reduce_max(*group_, value) != 0 : value;
}

void TrainProcesses::send_notes(const StepNotes& notes) {
  Notes& next = under_way_.emplace_back();
  next.own = notes;
  if (!group_) return;
  pack(notes, next.sent);
  const size_t bytes = next.sent.size();
  if (is_rank0() || !group_->messages()) next.all.resize(bytes * static_cast<size_t>(size()));
  if (MessageGroup* group = group_->messages(); !group) {
    next.tickets = {group_->start_all_gather(next.sent, next.all)};
  } else if (!is_rank0()) {
    next.tickets = {group->send(0, next.sent)};
  } else {
    // Receives get the messages of a sender in the order in which both were started, so these start
    // before those of what the others send after their notes, however late the notes are taken.
    for (int from = 1; from < size(); ++from) {
      const size_t at = bytes * static_cast<size_t>(from);
      next.tickets.push_back(group->receive(from, std::span(next.all).subspan(at, bytes)));
    }
  }
}

std::vector<StepNotes> TrainProcesses::take_notes() {
  Notes notes = std::move(under_way_.front());
  under_way_.pop_front();
  if (!group_) return {std::move(notes.own)};
  if (MessageGroup* group = group_->messages()) {
    if (!is_rank0()) {  // does not wait for process 0 here
      if (leaving_) group->wait(leaving_->tickets.front());
      leaving_ = std::move(notes);
      return {};
    }
    for (const auto ticket : notes.tickets) group->wait(ticket);
  } else {
    group_->end_all_gather(notes.tickets.front());
  }
  return unpack_all(notes);
}

std::vector<StepNotes> TrainProcesses::unpack_all(const Notes& notes) {
  std::vector<StepNotes> all(static_cast<size_t>(size()), notes.own);
  const size_t bytes = notes.sent.size();
  for (size_t from = 0; from < all.size(); ++from) {
    if (static_cast<int>(from) == rank()) continue;
    unpack(std::span(notes.all).subspan(from * bytes, bytes), all[from]);
  }
  if (can_ask()) return all;
  for (const StepNotes& each : all) heard_stop_ = heard_stop_ || each.stop != 0;
  if (!is_rank0()) all.clear();
  return all;
}

void TrainProcesses::finish_collecting() {
  while (!under_way_.empty()) take_notes();
  if (leaving_) group_->messages()->wait(leaving_->tickets.front());
  leaving_.reset();
}

}  // namespace stoker
