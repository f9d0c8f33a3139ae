// The rows of a feed that somebody else may fill. The feed's own workers and the others take them
// from here, and what becomes of rows that nobody finishes is decided here. There are two carriers:
// RemoteRows (messages to other machines) and SharedFiller (shared memory of this machine).
// A feed works on tickets, each a range of rows:
//
//   put() -> turn() -> ours: read its samples, then fill()
//                   -> done: somebody's rows are there; fill() takes them
//                   -> others: somebody else is at it; the ticket comes back by Feed::put()
//                   -> none: nothing is left to do
//
// Owner: Loader. Threads: any, each ticket by one at a time. Errors: those of a carrier's
// constructor; an error of the environment from fill().
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "pipeline/exchange/row_message.h"
#include "pipeline/row/row_worker.h"
#include "staging/pinned_ring.h"

namespace stoker {

// A range of rows to fill: the message of the flow graph, copied freely.
struct FillTicket {
  static constexpr int32_t kNotRead = -1;
  static constexpr int32_t kWorkerReads = -2;  // its files are too large to be read ahead
  Step step = 0;
  int32_t device = 0;
  int32_t first_row = 0;
  int32_t rows = 0;         // 0: the first ones that nobody has begun
  int32_t unit = kNotRead;  // the unit of ReadAhead with the samples' bytes
  uint64_t claim = 0;       // by which others leave these rows to us; 0: none

  RowRange range() const { return {step, device, first_row, rows}; }
};

class RowExchange {
 public:
  // The feed behind it.
  class Feed {
   public:
    virtual ~Feed() = default;
    // Takes over finished rows. They were put, and are nobody else's.
    virtual void store(const RowRange& range, const Slab& made,
                       const std::vector<BadSample>& bad) noexcept = 0;
    // Begins so many tickets without rows; called by one thread at a time, with a lock held.
    virtual void ask_here(int times) noexcept = 0;
    // Hands a ticket to the own workers.
    virtual void put(const FillTicket& ticket) = 0;
    // Lets an I/O thread look at a ticket's turn, and read it. False: the feed ends.
    virtual bool read(const FillTicket& ticket) = 0;
    // Fills a ticket's rows in their slab; returns how many. The others come back as a ticket.
    virtual int fill_rows(const FillTicket& ticket, RowWorker& worker) = 0;
    // Fills all of a ticket's planned rows, from row 0 of `made` on; false: they are not in memory.
    virtual bool fill_made(const FillTicket& ticket, RowWorker& worker, Slab& made,
                           const BatchPosition& position) = 0;
    virtual void fail(std::exception_ptr error) noexcept = 0;
    virtual double local_rows_per_s() const = 0;
  };
  enum class Turn : uint8_t { ours, done, others, none };

  virtual ~RowExchange() = default;
  // Returns how many rows the feed's tickets must have; 0: as it likes.
  virtual int rows_per_ticket() const { return 0; }
  // `rows_per_ticket`: the most that a ticket has.
  virtual void open(Feed& feed, int rows_per_ticket) = 0;
  // Waits before `step` is begun, until `ends`.
  virtual void wait_for_others([[maybe_unused]] Step step,
                               [[maybe_unused]] const std::function<bool()>& ends) {}
  // Takes all rows of a device's batch, and calls Feed::ask_here(). Returns false if the feed is to
  // begin tickets of them itself.
  virtual bool put(const RowRange& batch) = 0;
  // Says whose turn a ticket is before its samples are read, and gives it rows or a claim.
  virtual Turn turn(FillTicket& ticket) = 0;
  // Fills the rows of a ticket that has some, or takes those of others. Returns how many are there
  // now; the others come back as a ticket.
  virtual int fill(FillTicket ticket, RowWorker& worker, Slab& slab, Feed& feed) = 0;
  // Gives up a ticket that nobody will fill here.
  virtual void release(const FillTicket& ticket) = 0;
  virtual void batch_is_complete(const BatchPosition& position) = 0;
  virtual void stop() noexcept {}  // nothing is begun elsewhere any more
  // Ends everything outside, and hands on or returns the rows that were put and not filled.
  virtual std::vector<RowRange> close() = 0;
};

}  // namespace stoker
