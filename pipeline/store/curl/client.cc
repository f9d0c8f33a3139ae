#include "pipeline/store/curl/client.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "staging/threads.h"

namespace stoker {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// libcurl, too, does not trust one that has rested for longer.
constexpr std::chrono::seconds kLongestRest{118};

}  // namespace

CurlClient::CurlClient(int connections)
    : multi_(connections, [this](int fd) { read_plain(fd); }),
      connections_(static_cast<size_t>(connections)),
      has_proxy_(is_set("http_proxy") || is_set("all_proxy") || is_set("ALL_PROXY")),
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
  Transfer& begun = *transfer;
  active_.emplace(start.ticket, std::move(transfer));
  if (!begin_plain(begun)) give_to_libcurl(begun, false);
  stall_check_ = std::min(stall_check_, begun.stalls_at(Clock::now()));
}

void CurlClient::give_to_libcurl(Transfer& transfer, bool connects_only) {
  transfer.set_up(connects_only);
  multi_.add(transfer.handle());
}

bool CurlClient::begin_plain(Transfer& transfer) {
  const std::string server(has_proxy_ ? std::string_view() : transfer.plain_server());
  if (server.empty() || strange_.contains(server)) return false;
  const Clock::time_point now = Clock::now();
  int other = -1;  // one to another server
  for (auto next = plain_.begin(); next != plain_.end();) {
    auto& [fd, plain] = *next++;
    if (plain.ticket != 0) continue;
    if (plain.server != server) {
      other = fd;
    } else if (now - plain.since < kLongestRest && transfer.ask(fd, true)) {
      plain.ticket = transfer.ticket();
      return true;
    } else {
      close_plain(fd);
    }
  }
  if (other >= 0 && plain_.size() + 1 >= connections_) close_plain(other);
  // One is left to libcurl, where requests wait for a connection.
  const auto connecting = std::count_if(active_.begin(), active_.end(), [](const auto& active) {
    return active.second->connects_only();
  });
  if (plain_.size() + static_cast<size_t>(connecting) + 1 >= connections_) return false;
  give_to_libcurl(transfer, true);
  return true;
}

void CurlClient::begin_on(Transfer& transfer) {
  const int fd = multi_.take_over(transfer.handle());
  multi_.remove(transfer.handle());
  if (fd < 0) return give_to_libcurl(transfer, false);
  plain_[fd] = {std::string(transfer.plain_server()), transfer.ticket(), {}};
  multi_.limit(static_cast<int>(connections_ - plain_.size()));
  if (transfer.ask(fd, false)) return;
  close_plain(fd);
  give_to_libcurl(transfer, false);
}

void CurlClient::read_plain(int fd) {
  const Ticket ticket = plain_[fd].ticket;
  if (ticket == 0) return close_plain(fd);  // its server has ended it
  Transfer& transfer = *active_[ticket];
  const Transfer::Progress progress = transfer.read();
  if (progress == Transfer::Progress::waiting) return;
  if (progress == Transfer::Progress::strange) {
    if (transfer.has_come()) strange_.insert(plain_[fd].server);
    close_plain(fd);
    return give_to_libcurl(transfer, false);
  }
  transfer.end_plain();
  if (transfer.is_plain_end()) plain_[fd] = {std::move(plain_[fd].server), 0, Clock::now()};
  give(take_out(ticket));
}

void CurlClient::close_plain(int fd) {
  plain_.erase(fd);
  multi_.close_own(fd);
  multi_.limit(static_cast<int>(connections_ - plain_.size()));
}

std::unique_ptr<Transfer> CurlClient::take_out(Ticket ticket) {
  const auto found = active_.find(ticket);
  if (found == active_.end()) return nullptr;
  std::unique_ptr<Transfer> transfer = std::move(found->second);
  active_.erase(found);
  const int fd = transfer->fd();
  if (fd < 0) {
    multi_.remove(transfer->handle());
  } else if (plain_[fd].ticket == ticket) {
    close_plain(fd);  // the answer's rest would come there
  }
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
  if (ended->connects_only() && code == CURLE_OK) return begin_on(*ended);
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
