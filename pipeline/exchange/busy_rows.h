// Tickets whose rows another process is decoding. One thread looks at the turn of all of them,
// whenever a member of the share has done something, and hands on those that no longer wait: rows
// that are done, and rows that it could take over. Owner: SharedFiller, which calls close() once.
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "pipeline/exchange/row_exchange.h"
#include "pipeline/exchange/shared_rows.h"
#include "staging/mutex.h"

namespace stoker {

class BusyRows {
 public:
  // Says whether a ticket still waits, after so long.
  using Waits = std::function<bool(FillTicket& ticket, int64_t waited_ns)>;

  // `feed` gets the tickets, from any thread; a ticket with a claim is ours.
  BusyRows(SharedRows& rows, RowExchange::Feed& feed, Waits waits);
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

  SharedRows& rows_;
  RowExchange::Feed& feed_;
  const Waits waits_;
  Mutex mutex_;
  CondVar came_;
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace stoker
