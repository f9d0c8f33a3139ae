#include "tools/live/metrics_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace stoker {
namespace {

constexpr size_t kMostRequestBytes = 4096;
constexpr auto kClientTime = std::chrono::seconds(1);  // to ask, and again to take the answer

// Whether the client is ready for `events` before its time is over.
bool is_ready(int client, short events, std::chrono::steady_clock::time_point end) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  pollfd wait{client, events, 0};
  return left.count() > 0 && poll(&wait, 1, static_cast<int>(left.count())) > 0;
}

// Up to the empty line that ends a request's head, or what came of it.
std::string read_head(int client) {
  const auto end = std::chrono::steady_clock::now() + kClientTime;
  std::string head;
  std::array<char, 512> part{};
  while (head.size() < kMostRequestBytes && head.find("\r\n\r\n") == std::string::npos) {
    if (!is_ready(client, POLLIN, end)) break;
    const ssize_t got = recv(client, part.data(), part.size(), 0);
    if (got <= 0) break;
    head.append(part.data(), static_cast<size_t>(got));
  }
  return head;
}

void send_all(int client, const std::string& text) {
  const auto end = std::chrono::steady_clock::now() + kClientTime;
  for (size_t sent = 0; sent < text.size();) {
    if (!is_ready(client, POLLOUT, end)) return;
    const ssize_t more =
        send(client, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more <= 0) return;
    sent += static_cast<size_t>(more);
  }
}

}  // namespace

MetricsServer::MetricsServer(int port, std::function<std::string()> text) : text_(std::move(text)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;  // a port whose last run has just ended is free
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (listener_ < 0 || bind(listener_, any, length) != 0 || listen(listener_, 8) != 0 ||
      getsockname(listener_, any, &length) != 0 || pipe(wake_) != 0) {
    const std::string why = std::strerror(errno);
    if (listener_ >= 0) close(listener_);
    throw std::runtime_error(fmt::format("--metrics-port {}: {}", port, why));
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

MetricsServer::~MetricsServer() {
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
  close(listener_);
}

void MetricsServer::serve() {
  for (;;) {
    pollfd ready[2] = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (ready[1].revents != 0) return;
    if ((ready[0].revents & POLLIN) == 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    answer(client);
    close(client);
  }
}

void MetricsServer::answer(int client) {
  const std::string head = read_head(client);
  const bool known = head.rfind("GET /metrics ", 0) == 0 || head.rfind("GET /metrics?", 0) == 0;
  const std::string body = known ? text_() : "the figures are at /metrics\n";
  send_all(client, fmt::format("HTTP/1.1 {}\r\nContent-Type: text/plain; "
                               "version=0.0.4; charset=utf-8\r\n"
                               "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                               known ? "200 OK" : "404 Not Found", body.size(), body));
}

}  // namespace stoker
