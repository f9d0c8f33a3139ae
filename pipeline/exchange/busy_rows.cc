#include "pipeline/exchange/busy_rows.h"

#include <utility>

#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// How long a death goes unnoticed, at most: whatever members do wakes the thread at once.
constexpr int kDeathMs = 20;

}  // namespace

BusyRows::BusyRows(SharedRows& rows, RowExchange::Feed& feed, Waits waits)
    : rows_(rows),
      feed_(feed),
      waits_(std::move(waits)),
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
  feed_.put(ticket);
}

void BusyRows::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  came_.notify_one();
  rows_.wake();
  thread_.join();
  std::vector<Waiting> left;
  {
    MutexLock lock(mutex_);
    left.swap(waiting_);
  }
  for (const Waiting& each : left) feed_.put(each.ticket);
}

void BusyRows::serve() {
  std::vector<Waiting> looked;
  for (;;) {
    const uint32_t seen = rows_.changes();
    {
      MutexLock lock(mutex_);
      while (!closed_ && waiting_.empty()) came_.wait(lock);
      if (closed_) return;
      looked.swap(waiting_);
    }
    const size_t before = looked.size();
    std::erase_if(looked, [this](Waiting& each) {
      if (waits_(each.ticket, steady_now_ns() - each.since_ns)) return false;
      feed_.put(each.ticket);
      return true;
    });
    const bool none_has = looked.size() == before;
    {
      MutexLock lock(mutex_);
      waiting_.insert(waiting_.end(), looked.begin(), looked.end());
    }
    looked.clear();
    if (none_has) rows_.wait(seen, kDeathMs);
  }
}

}  // namespace stoker
