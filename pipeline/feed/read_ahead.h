// Reads files for the workers into a fixed pool of buffers, so that a slow disk does not block a
// core. Tickets come roughly in step order, are read by as many threads as call next(), and then
// wait for a worker. The pool is the bound: a thread that finds no free unit waits until several
// are free, because a wake-up for each costs more than reading a file that is in memory. Owner:
// FeedGraph. Threads: submit from any, next from the I/O threads, samples/give_back from the worker
// that holds the ticket.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "pipeline/exchange/row_exchange.h"
#include "pipeline/row/row_filler.h"
#include "staging/mutex.h"
#include "staging/pinned_ring.h"

namespace stoker {

class ReadAhead {
 public:
  // At most `tickets` may be submitted and not yet returned by next().
  // `large_files`: what files may take beyond the buffers that are kept; null: no bound.
  ReadAhead(RowFiller& filler, int workers, int io_threads, int rows_per_unit, size_t tickets,
            MemoryBudget* large_files = nullptr);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Returns false after abandon(): then nobody will read the ticket.
  bool submit(const FillTicket& ticket);
  // Blocks for a ticket and a unit for it; after abandon() only for a ticket, which gets no unit.
  // Returns false after close(), when no ticket is left.
  bool next(FillTicket& ticket);
  // Plans and reads the ticket's rows into its unit. Returns false if the memory for large files is
  // in use, and holds nothing then: an I/O thread does not wait for what workers hold. REQUIRES:
  // the ticket has a unit.
  bool read(const FillTicket& ticket, Slab& slab);
  std::span<const SampleBytes> samples(const FillTicket& ticket) const;
  void give_back(int unit);
  static int units_for(int workers, int io_threads) { return 3 * workers + io_threads; }
  int units() const { return static_cast<int>(units_.size()); }
  int rows_per_unit() const { return static_cast<int>(units_[0].samples.size()); }
  void abandon();
  void close();

 private:
  bool can_go_on() const REQUIRES(mutex_) {
    return queued_ > 0 ? abandoned_ || !free_units_.empty() : closed_;
  }
  struct Unit {
    Unit(size_t rows, MemoryBudget* large_files, int64_t kept_bytes)
        : lease(large_files, kept_bytes), buffers(rows), samples(rows) {}
    MemoryLease lease;
    std::vector<SampleBuffer> buffers;
    std::vector<SampleBytes> samples;
  };
  void trim(Unit& unit, size_t kept_bytes);

  RowFiller& filler_;
  const size_t kept_bytes_;             // per buffer: a larger one is not kept for the next file
  std::atomic<bool> abandoned_{false};  // changed under mutex_
  const size_t worth_waking_;           // with so many free units
  std::deque<Unit> units_;              // the holder of the ticket with its number owns it
  Mutex mutex_;
  CondVar ticket_came_;
  CondVar units_came_;
  std::vector<FillTicket> queue_ GUARDED_BY(mutex_);  // a ring of fixed size
  size_t queue_first_ GUARDED_BY(mutex_) = 0;
  size_t queued_ GUARDED_BY(mutex_) = 0;
  std::vector<int> free_units_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace stoker
