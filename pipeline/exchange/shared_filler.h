// Fills rows that several processes share (shared_rows.h): rows of others are copied, rows
// that are filled here are given to them. Rows are u8 in between, in the form of a message
// (row_message.h), and become the batch's by RowFiller::take(). So they are the same bytes whoever
// decoded them.
//
// A block with a bad sample is not shared: each process meets the sample by itself, and has its own
// quarantine. Rows of files are shared one by one (in pairs, if they are mixed), so that a worker
// has either all samples of a block in memory or none. Samples of a store are fetched by the member
// that will decode them (shared_ahead.h).
//
// Owner: Loader, one; filler must outlive it. Threads: any, each block by one at a time. Errors:
// those of SharedRows, in the constructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/augment.h"
#include "pipeline/exchange/busy_rows.h"
#include "pipeline/exchange/row_exchange.h"
#include "pipeline/exchange/shared_ahead.h"
#include "pipeline/exchange/shared_rows.h"
#include "pipeline/loader_types.h"
#include "pipeline/row/device_edits.h"
#include "pipeline/row/row_filler.h"
#include "staging/batch_layout.h"
#include "staging/mutex.h"

namespace stoker {

class SharedFiller final : public RowExchange {
 public:
  // The feed ends before `end_batch`.
  SharedFiller(RowFiller& filler, const Source& source, const AugmentSpec& augment,
               const LoaderOptions& options, int devices, const DeviceEdits& edits, Step end_batch);

  // Whether the source's samples are in a store, and fetched before they are read.
  bool looks_ahead() const { return ahead_.has_value(); }
  // Sets `range` to the next rows whose samples are to be fetched here. REQUIRES: looks_ahead().
  NextSample next_ahead(RowRange& range);

  // For the feed. A ticket is a block.

  int rows_per_ticket() const override { return rows_per_block_; }
  void open(Feed& feed, int rows_per_ticket) override;
  void wait_for_others(Step step, const std::function<bool()>& ends) override {
    rows_.wait_for_others(step, ends);
  }
  bool put(const RowRange&) override { return false; }
  Turn turn(FillTicket& ticket) override;
  int fill(FillTicket ticket, RowWorker& worker, Slab& slab, Feed& feed) override;
  void release(const FillTicket& ticket) override {
    if (ticket.claim != 0) rows_.release(block_of(ticket.range()), ticket.claim);
  }
  void batch_is_complete(const BatchPosition& position) override;
  std::vector<RowRange> close() override;

  // Fills a whole batch in the caller's thread: the plain twin of what FeedGraph does. It leaves
  // rows out if it has waited until `ends`.
  void fill_batch(RowWorker& worker, Slab& slab, const BatchPosition& position,
                  const std::function<bool()>& ends);

  int64_t shared_bytes() const { return rows_.bytes(); }
  int64_t message_bytes() const;  // of a worker
  ShareStats stats() const;

 private:
  // Takes the block if it is free; see SharedRows.
  SharedRows::Look look(const RowRange& range, int64_t waited_ns = 0);
  void wait(FillTicket ticket);
  // Copies rows of a block that is done. Returns false if it no longer is: look again.
  bool take(RowWorker& worker, Slab& slab, const RowRange& range, uint64_t word);
  // Fills rows of a block that is ours, which it is no longer after the call. `fill` fills the
  // planned rows from 0 on of the slab that it gets, and returns false if it did not fill all of
  // them; that is what this function returns then.
  using Fill = std::function<bool(Slab& made, const BatchPosition& position)>;
  bool give(RowWorker& worker, Slab& slab, const RowRange& range, uint64_t word, const Fill& fill);
  // Returns whether the rows are in the slab; false: another process is at it.
  bool fill_block(RowWorker& worker, Slab& slab, const RowRange& range, int64_t waited_ns);
  BlockPosition block_of(const RowRange& range) const {
    return {range.step, range.device, range.first_row / rows_per_block_};
  }
  std::span<std::byte> message(RowWorker& worker, int rows) const;

  RowFiller& filler_;
  const BatchShape batch_;  // with u8 pixels
  const int rows_per_block_;
  SharedRows rows_;
  std::optional<SharedAhead> ahead_;  // of a source in a store
  std::optional<BusyRows> busy_;      // of a feed with threads
  std::atomic<int64_t> taken_{0}, given_{0}, alone_{0};
  const size_t depth_;
  Mutex mutex_;
  std::vector<Step> oldest_ GUARDED_BY(mutex_);  // by device: the first that is not complete
  std::vector<bool> done_
      GUARDED_BY(mutex_);  // device * depth_ + step % depth_: of those behind it
};

}  // namespace stoker
