#include "pipeline/feed/busy_rows.h"

#include <utility>

#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// How long a death goes unnoticed, at most: whatever members do wakes the thread at once.
constexpr int kDeathMs = 20;

}  // namespace

BusyRows::BusyRows(SharedFiller& shared, Put put)
    : shared_(shared),
      put_(std::move(put)),
      thread_(start_thread("shared rows", [this] { serve(); })) {}

void BusyRows::add(const FillTicket& ticket) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      waiting_.push_back({ticket, steady_now_ns()});
      came_.notify_one();
      return;
    }
  }
  put_(ticket);
}

void BusyRows::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  came_.notify_one();
  shared_.rows().wake();
  thread_.join();
  std::vector<Waiting> left;
  {
    MutexLock lock(mutex_);
    left.swap(waiting_);
  }
  for (const Waiting& each : left) put_(each.ticket);
}

void BusyRows::serve() {
  std::vector<Waiting> looked;
  for (;;) {
    const uint32_t seen = shared_.rows().changes();
    {
      MutexLock lock(mutex_);
      while (!closed_ && waiting_.empty()) came_.wait(lock);
      if (closed_) return;
      looked.swap(waiting_);
    }
    const size_t before = looked.size();
    std::erase_if(looked, [this](Waiting& each) { return has_moved(each); });
    const bool none_has = looked.size() == before;
    {
      MutexLock lock(mutex_);
      waiting_.insert(waiting_.end(), looked.begin(), looked.end());
    }
    looked.clear();
    if (none_has) shared_.rows().wait(seen, kDeathMs);
  }
}

bool BusyRows::has_moved(Waiting& waiting) {
  FillTicket& ticket = waiting.ticket;
  const auto [found, word] =
      shared_.look({ticket.step, ticket.device, ticket.first_row, ticket.rows},
                   steady_now_ns() - waiting.since_ns);
  if (found == SharedRows::Found::busy) return false;
  if (found == SharedRows::Found::ours) ticket.claim = word;
  put_(ticket);
  return true;
}

}  // namespace stoker
