#include "tools/live/metrics_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <stdexcept>
#include <vector>

#include "staging/threads.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMaxRequestBytes = 4096;
constexpr auto kAcceptPause = milliseconds(100);  // before the next try to accept

// Leaves file descriptors to the training.
size_t most_clients(size_t wanted) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  return std::clamp<size_t>(files.rlim_cur / 8 * 5, 1, wanted);
}

std::string answer_to(const std::string& head, const std::function<std::string()>& text) {
  const bool known = head.rfind("GET /metrics ", 0) == 0 || head.rfind("GET /metrics?", 0) == 0;
  const std::string body = known ? text() : "the figures are at /metrics\n";
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      known ? "200 OK" : "404 Not Found", body.size(), body);
}

// One connection: reads a request, sends the answer, ends. Never blocks.
class Client {
 public:
  Client(int handle, Clock::time_point end) : end_(end), handle_(handle) {}
  ~Client() { close(handle_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  pollfd waits_for() const {
    return {handle_, static_cast<short>(answer_.empty() ? POLLIN : POLLOUT), 0};
  }
  Clock::time_point end() const { return end_; }

  // Returns false when the connection is finished or has failed.
  bool go_on(const std::function<std::string()>& text) {
    if (answer_.empty() && !read_head(text)) return false;
    return answer_.empty() || send_rest();
  }

 private:
  // Reads up to the empty line that ends a request's head.
  bool read_head(const std::function<std::string()>& text) {
    std::array<char, 512> part{};
    for (;;) {
      const ssize_t got = recv(handle_, part.data(), part.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (got == 0) return false;
      head_.append(part.data(), static_cast<size_t>(got));
      if (head_.find("\r\n\r\n") != std::string::npos) break;
      if (head_.size() >= kMaxRequestBytes) return false;
    }
    answer_ = answer_to(head_, text);
    return true;
  }

  bool send_rest() {
    while (sent_ < answer_.size()) {
      const ssize_t more = send(handle_, answer_.data() + sent_, answer_.size() - sent_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      sent_ += static_cast<size_t>(more);
    }
    return false;
  }

  const Clock::time_point end_;
  const int handle_;
  std::string head_, answer_;
  size_t sent_ = 0;
};

// All connections, the oldest first.
class Clients {
 public:
  Clients(int listener, int wake, const MetricsServer::Limits& limits)
      : listener_(listener),
        wake_(wake),
        most_(most_clients(limits.clients)),
        client_time_(limits.client_time) {}

  // Waits for events and handles them; returns false when the server is to end.
  bool turn(const std::function<std::string()>& text) {
    std::vector<pollfd> ready = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Client& client : clients_) ready.push_back(client.waits_for());
    if (poll(ready.data(), ready.size(), milliseconds_left()) < 0) return errno == EINTR;
    if (ready[0].revents != 0) return false;
    auto events = ready.begin() + 2;
    const auto now = Clock::now();
    clients_.remove_if([&](Client& client) {
      const bool is_ready = (events++)->revents != 0;
      return (is_ready && !client.go_on(text)) || client.end() <= now;
    });
    if ((ready[1].revents & POLLIN) != 0) accept_all();
    return true;
  }

 private:
  // All clients have the same time limit, so the oldest one's ends first.
  int milliseconds_left() const {
    if (clients_.empty()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(clients_.front().end() - Clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }

  void accept_all() {
    for (;;) {
      const int handle = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (handle >= 0) {
        clients_.emplace_back(handle, Clock::now() + client_time_);
        if (clients_.size() > most_) clients_.pop_front();
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {  // no file descriptor, no memory
        if (clients_.empty()) return std::this_thread::sleep_for(kAcceptPause);
        clients_.pop_front();
      }
    }
  }

  const int listener_, wake_;
  const size_t most_;
  const milliseconds client_time_;
  std::list<Client> clients_;
};

}  // namespace

MetricsServer::MetricsServer(int port, std::function<std::string()> text, const Limits& limits)
    : text_(std::move(text)), limits_(limits) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;  // a port whose last run has just ended can be used
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (listener_ < 0 || bind(listener_, any, length) != 0 || listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, any, &length) != 0 || pipe2(wake_, O_CLOEXEC) != 0) {
    const std::string why = std::strerror(errno);
    if (listener_ >= 0) close(listener_);
    throw std::runtime_error(fmt::format("--metrics-port {}: {}", port, why));
  }
  port_ = ntohs(address.sin_port);
  thread_ = start_thread("--metrics-port", [this] { serve(); });
}

MetricsServer::~MetricsServer() {
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
  close(listener_);
}

void MetricsServer::serve() {
  Clients clients(listener_, wake_[0], limits_);
  while (clients.turn(text_)) {
  }
}

}  // namespace stoker
