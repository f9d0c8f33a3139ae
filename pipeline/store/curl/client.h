// A HttpClient on libcurl's multi interface: one thread carries all requests. Other threads leave
// what they want in an inbox and wake it up. Everything but the inbox belongs to this thread.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pipeline/store/curl/multi.h"
#include "pipeline/store/curl/transfer.h"
#include "pipeline/store/http_client.h"
#include "staging/mutex.h"

namespace stoker {

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(int connections);
  ~CurlClient() override;

  Ticket start(HttpRequest request, std::function<void(HttpAnswer)> done) override;
  void cancel(Ticket ticket) override;
  void after(std::chrono::nanoseconds time, std::function<void()> then) override;

 private:
  using Clock = Transfer::Clock;
  struct Start {
    Ticket ticket;
    HttpRequest request;
    std::function<void(HttpAnswer)> done;
  };
  struct Timer {
    Clock::time_point due;
    std::function<void()> then;
    bool operator<(const Timer& other) const { return due > other.due; }  // the first due on top
  };
  struct Inbox {
    std::vector<Start> starts;
    std::vector<Ticket> cancels;
    std::vector<Timer> timers;
    bool is_empty() const { return starts.empty() && cancels.empty() && timers.empty(); }
  };

  void run();
  // Returns false if the client ends.
  bool take_inbox();
  void begin(Start start);
  void give_to_libcurl(Transfer& transfer, bool connects_only);
  // Sends the request on a connection that rests, or has one opened. Returns false if it is
  // libcurl's.
  bool begin_plain(Transfer& transfer);
  // A connection has come about that a request has waited for.
  void begin_on(Transfer& transfer);
  void read_plain(int fd);
  void close_plain(int fd);
  void run_timers();
  void end_stalled();
  void give(CURL* handle, CURLcode code);
  void give(std::unique_ptr<Transfer> transfer);
  // Keeps it for another request; nullptr: nothing.
  void put_away(std::unique_ptr<Transfer> transfer);
  // When there is something to do, if neither the inbox nor a socket has something before.
  Clock::time_point next_event();
  void wake_for_first() REQUIRES(mutex_);
  bool is_own_thread() const;
  // Takes a request out of libcurl and of `active_`; nullptr: it has ended already.
  std::unique_ptr<Transfer> take_out(Ticket ticket);

  // A connection without libcurl.
  struct Plain {
    std::string server;
    Ticket ticket = 0;  // of its request; 0: it rests
    Clock::time_point since{};
  };

  CurlMulti multi_;
  const size_t connections_;
  const bool has_proxy_;
  std::unordered_map<int, Plain> plain_;
  std::unordered_set<std::string> strange_;  // servers whose answers are libcurl's
  std::unordered_map<Ticket, std::unique_ptr<Transfer>> active_;
  std::vector<std::unique_ptr<Transfer>> idle_;
  std::priority_queue<Timer> timers_;
  Clock::time_point stall_check_ = Clock::time_point::max();  // nothing stalls before

  Mutex mutex_;
  CondVar cancelled_;
  Inbox inbox_ GUARDED_BY(mutex_);
  Ticket last_ticket_ GUARDED_BY(mutex_) = 0;
  uint64_t cancels_asked_ GUARDED_BY(mutex_) = 0;
  uint64_t cancels_made_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // the last one: it uses the others
};

}  // namespace stoker
