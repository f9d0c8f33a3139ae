#include "pipeline/exchange/remote_rows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "staging/stage_stats.h"

namespace stoker {
namespace {

// Work that is lost with a worker, and has to be done again, stays small beside the window. But a
// batch of 128 rows of 224 px is one message, and not several calls of its carrier.
constexpr int64_t kMaxMessageBytes = 24 << 20;
// The weight of the newest round in the means.
constexpr double kNewest = 0.2;
// A claim is late after so many mean rounds.
constexpr double kPatience = 8;

double mixed(double mean, double newest) {
  return mean == 0 ? newest : mean + kNewest * (newest - mean);
}

}  // namespace

double RemotePace::remote_rows_per_s() const {
  return round_s > 0 ? claimers * rows_per_round / round_s : 0;
}

int64_t rows_of_claim(const RemotePace& pace, int64_t window_rows) {
  const double remote = pace.remote_rows_per_s();
  const double share = remote > 0 ? remote / (remote + pace.local_rows_per_s) : 0.5;
  return std::max<int64_t>(
      1, static_cast<int64_t>(share * static_cast<double>(window_rows) / (2.0 * pace.claimers)));
}

int64_t rows_kept_here(const RemotePace& pace) {
  return static_cast<int64_t>(std::ceil(pace.local_rows_per_s * pace.round_s));
}

int64_t tickets_of_claim(int64_t tickets, double wanted, int64_t most) {
  const int64_t parts_needed = (tickets + most - 1) / most;
  const int64_t parts_wanted = std::llround(static_cast<double>(tickets) / std::max(1.0, wanted));
  const int64_t parts = std::max({int64_t{1}, parts_needed, parts_wanted});
  return (tickets + parts - 1) / parts;
}

RemoteRows::RemoteRows(const Options& options) : options_(options) {}

bool RemoteRows::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

std::optional<RowClaim> RemoteRows::claim(int claimers, int wait_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  MutexLock lock(mutex_);
  for (;;) {
    if (ended_) return {};
    if (auto claim = try_claim(std::max(1, claimers))) return claim;
    if (!changed_.wait_until(lock, end)) {
      return ended_ ? std::nullopt : try_claim(std::max(1, claimers));
    }
  }
}

std::optional<RowClaim> RemoteRows::try_claim(int claimers) {
  if (!feed_ || shelf_.empty()) return {};
  RemotePace pace{0, round_s_, rows_per_round_, claimers};
  if (!options_.is_all_remote) {
    if (2 * incomplete_ <= options_.window) return {};
    pace.local_rows_per_s = feed_->local_rows_per_s();
  }
  const int64_t window_rows = int64_t{options_.window} * options_.batch.rows;
  const auto ticket_bytes = static_cast<int64_t>(message_bytes(options_.batch, rows_per_ticket_));
  const double wanted = static_cast<double>(rows_of_claim(pace, window_rows)) / rows_per_ticket_;
  const auto last = std::prev(shelf_.end());
  const auto [step, device, first] = last->first;
  // Claims begin where a ticket does, so that tickets stay whole.
  const int32_t end = first + last->second;
  const int64_t tickets = tickets_of_claim(tickets_of(last->second), wanted,
                                           std::max<int64_t>(1, kMaxMessageBytes / ticket_bytes));
  const int32_t last_ticket = (end - 1) / rows_per_ticket_ * rows_per_ticket_;
  const auto begin = static_cast<int32_t>(
      std::max<int64_t>(first, last_ticket - (tickets - 1) * rows_per_ticket_));
  const RowRange range{step, device, begin, end - begin};
  if (shelf_rows_ - range.rows < rows_kept_here(pace)) return {};
  shelf_rows_ -= range.rows;
  shelf_tickets_ -= tickets_of(range.rows);
  last->second -= range.rows;
  if (last->second == 0) shelf_.erase(last);
  const RowClaim claim{next_number_++, range};
  outside_[claim.number] = {range, steady_now_ns()};
  ++stats_.claims;
  return claim;
}

bool RemoteRows::deliver(const RowClaim& claim, std::span<const std::byte> message,
                         std::span<const uint8_t> packed_bad) {
  Feed* feed = nullptr;
  RowRange range;
  Slab made;
  std::vector<BadSample> bad;
  {
    MutexLock lock(mutex_);
    const auto found = outside_.find(claim.number);
    if (found == outside_.end()) {
      ++stats_.refused;
      return false;
    }
    range = found->second.range;
    try {
      made = read_message(message, options_.batch, range, options_.fingerprint);
      bad = unpack_bad_samples(packed_bad);
    } catch (...) {
      outside_.erase(found);
      return_rows(range);
      throw;
    }
    note_round(found->second);
    outside_.erase(found);
    stats_.rows += range.rows;
    ++in_feed_;
    feed = feed_;
  }
  feed->store(range, made, bad);
  MutexLock lock(mutex_);
  leave_feed();
  return true;
}

void RemoteRows::give_up(const RowClaim& claim) {
  MutexLock lock(mutex_);
  const auto found = outside_.find(claim.number);
  if (found == outside_.end()) return;
  const RowRange range = found->second.range;
  outside_.erase(found);
  return_rows(range);
}

bool RemoteRows::give_up_if_late(const RowClaim& claim) {
  MutexLock lock(mutex_);
  const auto found = outside_.find(claim.number);
  if (found == outside_.end()) return true;
  if (!is_late(found->second)) return false;
  const RowRange range = found->second.range;
  outside_.erase(found);
  ++stats_.taken_back;
  return_rows(range);
  return true;
}

bool RemoteRows::is_late(const Outside& claim) const {
  if (!options_.is_all_remote && !shelf_.empty()) return false;  // there is other work here
  const double age_s = 1e-9 * static_cast<double>(steady_now_ns() - claim.begun_ns);
  return age_s >= std::max(options_.least_patience_s, kPatience * round_s_);
}

void RemoteRows::note_round(const Outside& done) {
  round_s_ = mixed(round_s_, 1e-9 * static_cast<double>(steady_now_ns() - done.begun_ns));
  rows_per_round_ = mixed(rows_per_round_, done.range.rows);
}

// Puts them back, and tells those who may want them.
void RemoteRows::return_rows(const RowRange& range) {
  ++stats_.given_up;
  shelve(range);
  ask_here(tickets_of(range.rows));
  changed_.notify_all();
}

// Claims take tickets that were asked for; so there may be enough calls under way.
void RemoteRows::ask_here(int64_t tickets) {
  const int64_t missing = std::min(tickets, shelf_tickets_ - asked_here_);
  if (missing <= 0) return;
  asked_here_ += missing;
  feed_->ask_here(static_cast<int>(missing));
}

void RemoteRows::leave_feed() {
  --in_feed_;
  changed_.notify_all();
}

void RemoteRows::shelve(const RowRange& range) {
  shelf_[{range.step, range.device, range.first_row}] = range.rows;
  shelf_rows_ += range.rows;
  shelf_tickets_ += tickets_of(range.rows);
}

void RemoteRows::fail(const std::string& problem) {
  Feed* feed = nullptr;
  {
    MutexLock lock(mutex_);
    if (!feed_) return;
    feed = feed_;
    ++in_feed_;
  }
  feed->fail(std::make_exception_ptr(std::runtime_error(problem)));
  MutexLock lock(mutex_);
  leave_feed();
}

RemoteStats RemoteRows::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

void RemoteRows::open(Feed& feed, int rows_per_ticket) {
  rows_per_ticket_ = rows_per_ticket;
  MutexLock lock(mutex_);
  feed_ = &feed;
}

bool RemoteRows::put(const RowRange& batch) {
  {
    MutexLock lock(mutex_);
    shelve(batch);
    ++incomplete_;
    if (!options_.is_all_remote) ask_here(tickets_of(batch.rows));
  }
  changed_.notify_all();
  return true;
}

RowExchange::Turn RemoteRows::turn(FillTicket& ticket) {
  if (ticket.rows > 0) return Turn::ours;
  MutexLock lock(mutex_);
  --asked_here_;
  if (shelf_.empty()) return Turn::none;
  const auto [place, rows] = *shelf_.begin();
  const auto [step, device, first] = place;
  ticket = {step, device, first, std::min(rows, rows_per_ticket_), ticket.unit};
  shelf_.erase(shelf_.begin());
  shelf_rows_ -= rows;
  shelf_tickets_ -= tickets_of(rows);
  if (ticket.rows < rows) shelve({step, device, first + ticket.rows, rows - ticket.rows});
  return Turn::ours;
}

void RemoteRows::batch_is_complete(const BatchPosition&) {
  MutexLock lock(mutex_);
  --incomplete_;
}

void RemoteRows::stop() noexcept {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::vector<RowRange> RemoteRows::close() {
  stop();
  MutexLock lock(mutex_);
  while (in_feed_ > 0) changed_.wait(lock);
  feed_ = nullptr;
  std::vector<RowRange> left;
  for (const auto& [place, rows] : shelf_) {
    left.push_back({std::get<0>(place), std::get<1>(place), std::get<2>(place), rows});
  }
  for (const auto& [number, claim] : outside_) left.push_back(claim.range);
  shelf_.clear();
  outside_.clear();
  return left;
}

}  // namespace stoker
