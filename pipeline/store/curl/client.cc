#include "pipeline/store/curl/client.h"

#include <signal.h>

#include <algorithm>

#include "staging/threads.h"

namespace stoker {

CurlClient::CurlClient(int connections)
    : multi_(connections),
      connections_(connections),
      thread_(start_thread("a store's requests", [this] { run(); })) {}

CurlClient::~CurlClient() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  multi_.wake();
  thread_.join();
  for (const auto& active : active_) multi_.remove(active.second->handle());
}

HttpClient::Ticket CurlClient::start(HttpRequest request, std::function<void(HttpAnswer)> done) {
  const MutexLock lock(mutex_);
  wake_for_first();
  const Ticket ticket = ++last_ticket_;
  inbox_.starts.push_back({ticket, std::move(request), std::move(done)});
  return ticket;
}

void CurlClient::after(std::chrono::nanoseconds time, std::function<void()> then) {
  const MutexLock lock(mutex_);
  wake_for_first();
  inbox_.timers.push_back({Clock::now() + time, std::move(then)});
}

void CurlClient::cancel(Ticket ticket) {
  {
    const MutexLock lock(mutex_);
    const auto waiting = std::find_if(inbox_.starts.begin(), inbox_.starts.end(),
                                      [ticket](const Start& s) { return s.ticket == ticket; });
    if (waiting != inbox_.starts.end()) {
      inbox_.starts.erase(waiting);
      return;
    }
  }
  if (is_own_thread()) {
    put_away(take_out(ticket));
    return;
  }
  // The thread takes the inbox when no callback runs.
  MutexLock lock(mutex_);
  wake_for_first();
  inbox_.cancels.push_back(ticket);
  const uint64_t mine = ++cancels_asked_;
  while (cancels_made_ < mine) cancelled_.wait(lock);
}

void CurlClient::run() {
  // A connection that the server has closed must not end the program: OpenSSL writes to sockets
  // without MSG_NOSIGNAL. A blocked SIGPIPE of this thread is an error of write().
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (take_inbox()) {
    multi_.act(next_event());
    multi_.take_ended([this](CURL* handle, CURLcode code) { give(handle, code); });
    run_timers();
    // Behind the reading: after a break of the whole process no request has stalled whose bytes
    // have come meanwhile.
    end_stalled();
  }
}

bool CurlClient::take_inbox() {
  Inbox inbox;
  {
    const MutexLock lock(mutex_);
    if (ending_) return false;
    std::swap(inbox, inbox_);
  }
  for (Start& start : inbox.starts) begin(std::move(start));
  for (Timer& timer : inbox.timers) timers_.push(std::move(timer));
  for (const Ticket ticket : inbox.cancels) put_away(take_out(ticket));
  if (!inbox.cancels.empty()) {
    const MutexLock lock(mutex_);
    cancels_made_ += inbox.cancels.size();
    cancelled_.notify_all();
  }
  return true;
}

void CurlClient::begin(Start start) {
  if (idle_.empty()) idle_.push_back(std::make_unique<Transfer>());
  std::unique_ptr<Transfer> transfer = std::move(idle_.back());
  idle_.pop_back();
  transfer->begin(start.ticket, std::move(start.request), std::move(start.done));
  multi_.add(transfer->handle());
  const Clock::time_point now = Clock::now();
  stall_check_ = std::min(stall_check_, transfer->stalls_at(now));
  active_.emplace(start.ticket, std::move(transfer));
}

std::unique_ptr<Transfer> CurlClient::take_out(Ticket ticket) {
  const auto found = active_.find(ticket);
  if (found == active_.end()) return nullptr;
  std::unique_ptr<Transfer> transfer = std::move(found->second);
  active_.erase(found);
  multi_.remove(transfer->handle());
  return transfer;
}

void CurlClient::run_timers() {
  const Clock::time_point now = Clock::now();
  while (!timers_.empty() && timers_.top().due <= now) {
    const std::function<void()> then = timers_.top().then;
    timers_.pop();
    then();
  }
}

void CurlClient::end_stalled() {
  const Clock::time_point now = Clock::now();
  if (now < stall_check_) return;
  std::vector<Ticket> stalled;
  stall_check_ = Clock::time_point::max();
  for (const auto& [ticket, transfer] : active_) {
    const Clock::time_point at = transfer->stalls_at(now);
    if (at <= now) {
      stalled.push_back(ticket);
    } else {
      stall_check_ = std::min(stall_check_, at);
    }
  }
  for (const Ticket ticket : stalled) {
    std::unique_ptr<Transfer> transfer = take_out(ticket);
    if (transfer == nullptr) continue;  // a callback before has cancelled it
    transfer->end_stalled();
    give(std::move(transfer));
  }
}

void CurlClient::give(CURL* handle, CURLcode code) {
  Transfer* ended = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &ended);
  std::unique_ptr<Transfer> transfer = take_out(ended->ticket());
  transfer->end(code);
  give(std::move(transfer));
}

void CurlClient::give(std::unique_ptr<Transfer> transfer) {
  HttpAnswer answer = transfer->take_answer();
  const std::function<void(HttpAnswer)> done = transfer->take_done();
  put_away(std::move(transfer));
  done(std::move(answer));
}

void CurlClient::put_away(std::unique_ptr<Transfer> transfer) {
  if (transfer == nullptr || idle_.size() >= connections_) return;
  transfer->forget();
  idle_.push_back(std::move(transfer));
}

bool CurlClient::is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

// Whoever leaves the first thing in the inbox wakes the client's thread, which looks there before
// it waits.
void CurlClient::wake_for_first() {
  if (inbox_.is_empty() && !is_own_thread()) multi_.wake();
}

CurlClient::Clock::time_point CurlClient::next_event() {
  {
    const MutexLock lock(mutex_);
    if (!inbox_.is_empty()) return {};
  }
  return timers_.empty() ? stall_check_ : std::min(stall_check_, timers_.top().due);
}

}  // namespace stoker
