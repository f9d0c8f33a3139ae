#include "pipeline/exchange/shared_filler.h"

#include <algorithm>

#include "pipeline/row/fingerprint.h"
#include "pipeline/row/loader_options.h"

namespace stoker {
namespace {

constexpr int64_t kRawBlockBytes = 1 << 20;
constexpr int kBlocksPerBatch = 8;  // at least, of small rows, so that several threads have work
constexpr int kFillWaitMs = 20;
// A sample that another member fetches is left to it for so long. A member that has not begun the
// block by then is behind by more, and can take the rows from here.
constexpr int64_t kYieldMs = 200;

BatchShape shape_of(const Source& source, const AugmentSpec& augment, LoaderOptions options,
                    const DeviceEdits& edits) {
  options.format.reset();
  return batch_layout(source, augment, options, edits).shape();
}

// The same in all processes, whatever their threads.
int choose_rows(const RowFiller& filler, int rows) {
  const int together = filler.rows_together();
  if (filler.source().encoding() == SampleEncoding::image_file) return together;
  const int64_t by_size = kRawBlockBytes / static_cast<int64_t>(filler.row_bytes());
  const int64_t chosen = std::min<int64_t>(by_size, rows / kBlocksPerBatch);
  return static_cast<int>(std::max<int64_t>(chosen / together, 1)) * together;
}

SharedRows::Options rows_options(const Source& source, const AugmentSpec& augment,
                                 const LoaderOptions& options, int devices,
                                 const DeviceEdits& edits, const BatchShape& batch,
                                 int rows_per_block) {
  return {.name = options.share.name,
          .fingerprint = rows_fingerprint(source, augment, options, devices, edits),
          .facts = rows_facts(source, augment, options, devices, edits),
          .steps = options.share.steps * options.parts,
          .devices = devices,
          .blocks = (batch.rows + rows_per_block - 1) / rows_per_block,
          .block_bytes = message_layout(batch, rows_per_block).slab_bytes(),
          .first_step = options.first_step * options.parts,
          .yield_ms = source.storage().store_stats() ? kYieldMs : 0,
          .wait_s = options.share.wait_s};
}

// Makes the worker fill rows for others.
class ForOthers {
 public:
  ForOthers(RowWorker& worker, std::vector<BadSample>& bad) : worker_(worker) {
    worker.is_plain = true;
    worker.bad_samples = &bad;
  }
  ~ForOthers() {
    worker_.is_plain = false;
    worker_.bad_samples = nullptr;
  }
  ForOthers(const ForOthers&) = delete;
  ForOthers& operator=(const ForOthers&) = delete;

 private:
  RowWorker& worker_;
};

}  // namespace

SharedFiller::SharedFiller(RowFiller& filler, const Source& source, const AugmentSpec& augment,
                           const LoaderOptions& options, int devices, const DeviceEdits& edits,
                           Step end_batch)
    : filler_(filler),
      batch_(shape_of(source, augment, options, edits)),
      rows_per_block_(choose_rows(filler, batch_.rows)),
      rows_(rows_options(source, augment, options, devices, edits, batch_, rows_per_block_)),
      depth_(static_cast<size_t>(options.ring_depth)),
      oldest_(static_cast<size_t>(devices), options.first_step * options.parts),
      done_(oldest_.size() * depth_) {
  if (!source.storage().store_stats()) return;
  const int steps = std::max(options.ring_depth, options.share.steps * options.parts);
  const int blocks = (batch_.rows + rows_per_block_ - 1) / rows_per_block_;
  ahead_.emplace(
      rows_, SharedAhead::Options{.ring = {.steps = steps, .devices = devices, .blocks = blocks},
                                  .first_step = options.first_step * options.parts,
                                  .end_step = end_batch});
}

NextSample SharedFiller::next_ahead(RowRange& range) {
  BlockPosition block;
  const NextSample next = ahead_->next(block);
  if (next != NextSample::found) return next;
  const int first = block.number * rows_per_block_;
  range = {block.step, block.device, first, std::min(rows_per_block_, batch_.rows - first)};
  return next;
}

void SharedFiller::open(Feed& feed, int) {
  busy_.emplace(rows_, feed, [this](FillTicket& ticket, int64_t waited_ns) {
    const auto [found, word] = look(ticket.range(), waited_ns);
    if (found == SharedRows::Found::ours) ticket.claim = word;
    return found == SharedRows::Found::busy;
  });
}

std::vector<RowRange> SharedFiller::close() {
  if (busy_) busy_->close();
  return {};
}

SharedRows::Look SharedFiller::look(const RowRange& range, int64_t waited_ns) {
  const BlockPosition block = block_of(range);
  const bool is_fetched = ahead_ && ahead_->is_announced(block);
  const SharedRows::Look look = rows_.look(block, waited_ns, is_fetched);
  const bool is_to_be_read =
      look.found == SharedRows::Found::ours || look.found == SharedRows::Found::alone;
  if (ahead_ && is_to_be_read) ahead_->will_read(block);
  return look;
}

RowExchange::Turn SharedFiller::turn(FillTicket& ticket) {
  const auto [found, word] = look(ticket.range());
  if (found == SharedRows::Found::done) return Turn::done;
  if (found == SharedRows::Found::busy) {
    wait(ticket);
    return Turn::others;
  }
  if (found == SharedRows::Found::ours) ticket.claim = word;
  return Turn::ours;
}

void SharedFiller::wait(FillTicket ticket) {
  ticket.unit = FillTicket::kNotRead;  // whoever called gives it back
  busy_->add(ticket);
}

// All or none of the rows, because their samples are in memory together.
int SharedFiller::fill(FillTicket ticket, RowWorker& worker, Slab& slab, Feed& feed) {
  while (ticket.claim == 0 && ticket.unit < 0) {
    const auto [found, word] = look(ticket.range());
    if (found == SharedRows::Found::done) {
      if (take(worker, slab, ticket.range(), word)) return ticket.rows;
    } else if (found == SharedRows::Found::busy) {
      wait(ticket);
      return 0;
    } else if (found == SharedRows::Found::ours) {
      ticket.claim = word;
    } else {
      break;
    }
  }
  if (ticket.claim == 0) {
    const int done = feed.fill_rows(ticket, worker);
    alone_.fetch_add(done, std::memory_order_relaxed);
    return done;
  }
  const auto fill = [&](Slab& made, const BatchPosition& position) {
    return feed.fill_made(ticket, worker, made, position);
  };
  if (give(worker, slab, ticket.range(), ticket.claim, fill)) return ticket.rows;
  ticket.claim = 0;  // an I/O thread looks for it again
  return feed.read(ticket) ? 0 : ticket.rows;
}

void SharedFiller::batch_is_complete(const BatchPosition& position) {
  MutexLock lock(mutex_);
  const auto device = static_cast<size_t>(position.device);
  const auto index = [&](Step step) {
    return device * depth_ + static_cast<size_t>(step) % depth_;
  };
  Step& oldest = oldest_[device];
  done_[index(position.batch)] = true;
  if (position.batch != oldest) return;
  while (done_[index(oldest)]) done_[index(oldest++)] = false;
  const Step reached = *std::min_element(oldest_.begin(), oldest_.end());
  rows_.set_position(reached);
  if (ahead_) ahead_->set_position(reached);
}

int64_t SharedFiller::message_bytes() const {
  return static_cast<int64_t>(message_layout(batch_, rows_per_block_).slab_bytes());
}

std::span<std::byte> SharedFiller::message(RowWorker& worker, int rows) const {
  worker.message.resize(static_cast<size_t>(message_bytes()));
  return std::span(worker.message).first(message_layout(batch_, rows).slab_bytes());
}

bool SharedFiller::take(RowWorker& worker, Slab& slab, const RowRange& range, uint64_t word) {
  const std::span<std::byte> rows = message(worker, range.rows);
  if (!rows_.read(block_of(range), word, rows)) return false;
  const Slab made = slab_at(rows.data(), message_layout(batch_, range.rows));
  filler_.take(slab, filler_.position(range.step, range.device), range.first_row, range.rows, made,
               {});
  if (ahead_ && ahead_->was_taken(block_of(range))) {
    for (int row = 0; row < range.rows; ++row) {
      filler_.reader().skip(made.ids[row]);
      for (const SampleId partner : note_of(made, row).partners) {
        if (partner >= 0) filler_.reader().skip(partner);
      }
    }
  }
  taken_.fetch_add(range.rows, std::memory_order_relaxed);
  return true;
}

bool SharedFiller::give(RowWorker& worker, Slab& slab, const RowRange& range, uint64_t word,
                        const Fill& fill) {
  const BlockPosition block = block_of(range);
  std::vector<BadSample> bad;
  Slab made;
  try {
    const ForOthers guard(worker, bad);
    const std::span<std::byte> rows = message(worker, range.rows);
    made = slab_at(rows.data(), message_layout(batch_, range.rows));
    BatchPosition position = filler_.position(range.step, range.device);
    position.first_row = range.first_row;
    filler_.plan(made, position, 0, range.rows);
    if (!fill(made, position)) {
      rows_.release(block, word);
      return false;
    }
    if (!bad.empty()) rows_.decline(block, word);
    const bool is_given = bad.empty() && rows_.give(block, word, rows);
    (is_given ? given_ : alone_).fetch_add(range.rows, std::memory_order_relaxed);
  } catch (...) {
    rows_.release(block, word);
    throw;
  }
  filler_.take(slab, filler_.position(range.step, range.device), range.first_row, range.rows, made,
               bad);
  return true;
}

bool SharedFiller::fill_block(RowWorker& worker, Slab& slab, const RowRange& range,
                              int64_t waited_ns) {
  for (;;) {
    const auto [found, word] = look(range, waited_ns);
    switch (found) {
      case SharedRows::Found::done:
        if (take(worker, slab, range, word)) return true;
        continue;
      case SharedRows::Found::ours:
        return give(worker, slab, range, word, [&](Slab& made, const BatchPosition& position) {
          filler_.fill(worker, made, position, 0, range.rows);
          return true;
        });
      case SharedRows::Found::busy:
        return false;
      case SharedRows::Found::alone:
        filler_.fill(worker, slab, filler_.position(range.step, range.device), range.first_row,
                     range.rows);
        alone_.fetch_add(range.rows, std::memory_order_relaxed);
        return true;
    }
  }
}

void SharedFiller::fill_batch(RowWorker& worker, Slab& slab, const BatchPosition& position,
                              const std::function<bool()>& ends) {
  rows_.wait_for_others(position.batch, ends);
  std::vector<RowRange> left;
  for (int row = 0; row < batch_.rows; row += rows_per_block_) {
    const RowRange range{position.batch, position.device, row,
                         std::min(rows_per_block_, batch_.rows - row)};
    if (!fill_block(worker, slab, range, 0)) left.push_back(range);
  }
  const int64_t start = steady_now_ns();
  while (!left.empty() && !ends()) {
    const uint32_t seen = rows_.changes();
    const size_t before = left.size();
    std::erase_if(left, [&](const RowRange& range) {
      return fill_block(worker, slab, range, steady_now_ns() - start);
    });
    if (left.size() == before) rows_.wait(seen, kFillWaitMs);
  }
  batch_is_complete(position);
}

ShareStats SharedFiller::stats() const {
  const SharedRows::Counts counts = rows_.counts();
  return {.taken = taken_.load(),
          .given = given_.load(),
          .alone = alone_.load(),
          .taken_over = counts.taken_over,
          .corrupt = counts.corrupt,
          .waited_ns = counts.waited_ns};
}

}  // namespace stoker
