// The rows of a feed that other machines fill. Whoever carries rows (Ray: python/stoker/ray.py)
// claims them here, has a RemoteFiller fill them, and delivers the bytes, which are copied once,
// into the feed's slab. README.md says when rows are offered, and how many.
//
//   driver: put(step) -> rows that nobody has begun -> turn()       first rows: the own workers
//                                 ^                 -> claim()      last rows: outside
//                                 |                        |
//                                 +---- give_up() ---------+-> deliver() -> slab
//
// Owner: shared by the Loader and whoever carries rows; it may outlive the Loader, and then has
// ended. Threads: any. Errors: deliver() throws std::invalid_argument for bytes that do not belong
// to the claim, which is given up by that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/exchange/row_exchange.h"
#include "pipeline/loader_types.h"
#include "staging/batch_layout.h"
#include "staging/mutex.h"
#include "staging/pinned_ring.h"

namespace stoker {

struct RowClaim {
  int64_t number = 0;
  RowRange range;
};

// Measured rates. 0: not yet.
struct RemotePace {
  double local_rows_per_s = 0;
  double round_s = 0;                // from a claim to its delivery
  double rows_per_round = 0;         // of one claim
  int claimers = 1;                  // claims outside at once, at most
  double remote_rows_per_s() const;  // of all claimers
};
// Returns how many rows a claim should have, before it is rounded to tickets.
int64_t rows_of_claim(const RemotePace& pace, int64_t window_rows);
// Returns how many of `tickets`, which are one behind the other, a claim takes: about as many as
// are wanted, at most `most`, and the claims after it about as many as it. No small rest is left.
int64_t tickets_of_claim(int64_t tickets, double wanted, int64_t most);
// Returns how many of the rows that nobody began are left to the own workers.
int64_t rows_kept_here(const RemotePace& pace);

class RemoteRows final : public RowExchange {
 public:
  struct Options {
    uint64_t fingerprint = 0;  // rows_fingerprint()
    BatchShape batch;          // with u8 pixels
    int window = 1;            // batches that can be under way, over all devices
    // The own workers fill only what was given up.
    bool is_all_remote = false;
    double least_patience_s = 1;  // a claim is not late before
  };

  explicit RemoteRows(const Options& options);
  RemoteRows(const RemoteRows&) = delete;
  RemoteRows& operator=(const RemoteRows&) = delete;

  // For whoever carries rows.

  uint64_t fingerprint() const { return options_.fingerprint; }
  bool ended() const;
  // Waits for at most `wait_ms` milliseconds for rows to be filled elsewhere. Returns nothing if
  // there are none now, or never again: see ended(). `claimers`: how many claims are outside at
  // once when all are busy.
  std::optional<RowClaim> claim(int claimers, int wait_ms);
  // Copies the rows into their batch. Returns false if the claim was given up before. `packed_bad`:
  // what RemoteFiller::fill() returned.
  bool deliver(const RowClaim& claim, std::span<const std::byte> message,
               std::span<const uint8_t> packed_bad);
  // The rows are asked for again. Nothing happens if the claim was given up or delivered before.
  void give_up(const RowClaim& claim);
  // Gives the claim up if it is late: it takes much longer than others did, and the own workers
  // have nothing else to do. Returns whether the rows are no longer asked for by this claim.
  bool give_up_if_late(const RowClaim& claim);
  // Ends the feed: every next() throws std::runtime_error with this text.
  void fail(const std::string& problem);
  RemoteStats stats() const;

  // For the feed.

  void open(Feed& feed, int rows_per_ticket) override;
  bool put(const RowRange& batch) override;
  // Gives a ticket without rows the first ones that nobody has begun.
  Turn turn(FillTicket& ticket) override;
  int fill(FillTicket ticket, RowWorker& worker, Slab&, Feed& feed) override {
    return feed.fill_rows(ticket, worker);
  }
  void release(const FillTicket&) override {}
  void batch_is_complete(const BatchPosition& position) override;
  void stop() noexcept override;
  // Waits for the calls that use the feed, refuses all later ones, and returns the rows that were
  // put and neither taken nor stored.
  std::vector<RowRange> close() override;

 private:
  // Places in the window, in the order in which rows are needed.
  using Place = std::tuple<Step, int32_t, int32_t>;
  struct Outside {
    RowRange range;
    int64_t begun_ns = 0;
  };

  std::optional<RowClaim> try_claim(int claimers) REQUIRES(mutex_);
  void shelve(const RowRange& range) REQUIRES(mutex_);
  void return_rows(const RowRange& range) REQUIRES(mutex_);
  void ask_here(int64_t tickets) REQUIRES(mutex_);
  int64_t tickets_of(int64_t rows) const {
    return (rows + rows_per_ticket_ - 1) / rows_per_ticket_;
  }
  void leave_feed() REQUIRES(mutex_);
  void note_round(const Outside& done) REQUIRES(mutex_);
  bool is_late(const Outside& claim) const REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  Feed* feed_ GUARDED_BY(mutex_) = nullptr;            // null before open() and after close()
  int rows_per_ticket_ = 1;                            // set by open(), before any other call
  std::map<Place, int32_t> shelf_ GUARDED_BY(mutex_);  // rows from there on that nobody began
  int64_t shelf_rows_ GUARDED_BY(mutex_) = 0;
  int64_t shelf_tickets_ GUARDED_BY(mutex_) = 0;
  int64_t asked_here_ GUARDED_BY(mutex_) = 0;  // calls of turn() that are to come
  std::map<int64_t, Outside> outside_ GUARDED_BY(mutex_);
  int64_t next_number_ GUARDED_BY(mutex_) = 0;
  int incomplete_ GUARDED_BY(mutex_) = 0;  // batches that were put and are not complete
  int in_feed_ GUARDED_BY(mutex_) = 0;     // calls of Feed under way
  bool ended_ GUARDED_BY(mutex_) = false;
  double round_s_ GUARDED_BY(mutex_) = 0;
  double rows_per_round_ GUARDED_BY(mutex_) = 0;
  RemoteStats stats_ GUARDED_BY(mutex_);
};

}  // namespace stoker
