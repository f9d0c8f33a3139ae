#include "train/run/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "train/checkpoint/checksum.h"

namespace stoker {
namespace {

// The fields of CheckpointInfo from which a run resumes.
struct Start {
  int64_t step = 0;
  LoaderState loader;
  int64_t batch = 0;
};

template <typename Value>
void share_values(ProcessGroup& group, int owner, std::span<Value> values) {
  broadcast(group, std::as_writable_bytes(values), owner);
}

// Calls `copy` with every part of the notes that travels, in their order.
template <typename Notes, typename Copy>
void for_parts(Notes& notes, Copy copy) {
  copy(std::span(&notes.wait_ns, 1));
  copy(std::span(&notes.bad_samples, 1));
  copy(std::span(&notes.stop, 1));
  copy(std::span(&notes.traffic, 1));
  copy(std::span(notes.ids));
  copy(std::span(notes.digests));
  copy(std::span(notes.losses));
}

void pack(const StepNotes& notes, std::vector<std::byte>& bytes) {
  size_t size = 0;
  for_parts(notes, [&](auto part) { size += part.size_bytes(); });
  bytes.resize(size);
  auto to = bytes.begin();
  for_parts(notes, [&](auto part) { to = std::ranges::copy(std::as_bytes(part), to).out; });
}

// REQUIRES: `notes` has as many rows as those that were packed.
void unpack(std::span<const std::byte> bytes, StepNotes& notes) {
  for_parts(notes, [&](auto part) {
    const auto to = std::as_writable_bytes(part);
    std::copy_n(bytes.begin(), to.size(), to.begin());
    bytes = bytes.subspan(to.size());
  });
}

}  // namespace

void TrainProcesses::require_same(int64_t value, const std::string& what) {
  if (!group_) return;
  const std::vector<int64_t> values = stoker::all_gather(*group_, value);
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
  const std::vector<int64_t> hashes =
      stoker::all_gather(*group_, static_cast<int64_t>(fnv1a(text)));
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    throw std::invalid_argument(
        fmt::format("{}: process {} was given other ones than process 0", what, rank));
  }
}

void TrainProcesses::share(CheckpointInfo& progress) {
  if (!group_) return;
  Start start{progress.step, progress.loader, progress.batch};
  share_values(*group_, 0, std::span(&start, 1));
  progress.step = start.step;
  progress.loader = start.loader;
  progress.batch = static_cast<int>(start.batch);
}

void TrainProcesses::share(ModelProgress& progress) {
  if (group_) share_values(*group_, 0, std::span(&progress, 1));
}

void TrainProcesses::share(TrainState& state, int owner) {
  if (!group_) return;
  share_values(*group_, owner, std::span(&state.residual_replicas, 1));
  for (const auto buffer : kStateBuffers) {
    std::vector<float>& values = state.*buffer;
    size_t size = values.size();
    share_values(*group_, owner, std::span(&size, 1));
    values.resize(size);
    share_values(*group_, owner, std::span(values));
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
