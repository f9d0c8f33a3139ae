#include "pipeline/feed/read_ahead.h"

#include <cstdio>
#include <cstdlib>

namespace stoker {

// When a thread is woken, every worker has a unit to work on, and the next one is read.
ReadAhead::ReadAhead(RowFiller& filler, int workers, int io_threads, int rows_per_unit,
                     size_t tickets, MemoryBudget* large_files)
    : filler_(filler),
      kept_bytes_(kKeptFileBytes / rows_per_unit),
      worth_waking_(workers + 1),
      queue_(tickets) {
  const int64_t files = 1 + std::ssize(filler.source().pictures());
  for (int unit = 0; unit < units_for(workers, io_threads); ++unit) {
    units_.emplace_back(rows_per_unit, large_files, files * int64_t{kKeptFileBytes});
  }
  for (int unit = units() - 1; unit >= 0; --unit) free_units_.push_back(unit);
}

bool ReadAhead::submit(const FillTicket& ticket) {
  {
    MutexLock lock(mutex_);
    if (abandoned_) return false;
    if (queued_ == queue_.size()) {
      std::fprintf(stderr, "stoker: more than %zu tickets wait to be read\n", queue_.size());
      std::abort();
    }
    queue_[(queue_first_ + queued_++) % queue_.size()] = ticket;
  }
  ticket_came_.notify_one();
  return true;
}

bool ReadAhead::next(FillTicket& ticket) {
  MutexLock lock(mutex_);
  while (!can_go_on()) {
    const bool idle = queued_ == 0;
    const SpanTimer timer(idle ? nullptr : filler_.tracer(), SpanKind::unit_wait, -1);
    const int64_t start = steady_now_ns();
    (idle ? ticket_came_ : units_came_).wait(lock);
    const int64_t waited = steady_now_ns() - start;
    idle ? filler_.reader().stats().add_input_wait(waited)
         : filler_.reader().stats().add_output_wait(waited);
  }
  if (queued_ == 0) return false;
  ticket = queue_[queue_first_];
  queue_first_ = (queue_first_ + 1) % queue_.size();
  --queued_;
  ticket.unit = FillTicket::kNotRead;
  if (!abandoned_) {
    ticket.unit = free_units_.back();
    free_units_.pop_back();
  }
  if (queued_ > 0 && free_units_.size() >= worth_waking_) units_came_.notify_one();
  return true;
}

bool ReadAhead::read(const FillTicket& ticket, Slab& slab) {
  const BatchPosition position = filler_.position(ticket.step, ticket.device);
  filler_.plan(slab, position, ticket.first_row, ticket.rows);
  Unit& unit = units_[ticket.unit];
  try {
    const LeaseScope scope(unit.lease);
    for (int i = 0; i < ticket.rows && !abandoned_; ++i) {
      filler_.reader().read(slab, position, ticket.first_row + i, unit.buffers[i], unit.samples[i]);
    }
    return true;
  } catch (const OverBudget&) {
    trim(unit, 0);
    return false;
  }
}

void ReadAhead::trim(Unit& unit, size_t kept_bytes) {
  const LeaseScope scope(unit.lease);
  for (SampleBuffer& buffer : unit.buffers) buffer.trim(kept_bytes);
  unit.lease.give_back();
}

std::span<const SampleBytes> ReadAhead::samples(const FillTicket& ticket) const {
  return {units_[ticket.unit].samples.data(), static_cast<size_t>(ticket.rows)};
}

void ReadAhead::give_back(int unit) {
  trim(units_[unit], kept_bytes_);
  bool enough = false;
  {
    MutexLock lock(mutex_);
    free_units_.push_back(unit);  // never grows: its capacity is the number of units
    enough = free_units_.size() >= worth_waking_;
  }
  if (enough) units_came_.notify_one();
}

void ReadAhead::abandon() {
  {
    MutexLock lock(mutex_);
    abandoned_ = true;
  }
  units_came_.notify_all();
}

void ReadAhead::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  ticket_came_.notify_all();
}

}  // namespace stoker
