// Tickets whose rows another process is decoding (SharedFiller). One thread looks for all of them,
// whenever a member of the share has done something, and hands on those that no longer wait: rows
// that are done, and rows that it could take over. Owner: FeedGraph, which calls close() once.
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "pipeline/exchange/shared_filler.h"
#include "pipeline/feed/read_ahead.h"
#include "staging/mutex.h"

namespace stoker {

class BusyRows {
 public:
  using Put = std::function<void(const FillTicket&)>;

  // `put` gets the tickets, from any thread; a ticket with a claim is ours.
  BusyRows(SharedFiller& shared, Put put);
  BusyRows(const BusyRows&) = delete;
  BusyRows& operator=(const BusyRows&) = delete;

  void add(const FillTicket& ticket);
  // Ends the thread, and hands on all tickets as they are; from then on add() does.
  void close();

 private:
  struct Waiting {
    FillTicket ticket;
    int64_t since_ns = 0;
  };
  void serve();
  bool has_moved(Waiting& waiting);

  SharedFiller& shared_;
  const Put put_;
  Mutex mutex_;
  CondVar came_;
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace stoker
