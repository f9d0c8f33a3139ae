// Answers GET /metrics on the loopback, for Prometheus: small requests, any number of concurrent
// clients, nothing else. A slow or silent client blocks nobody: it has a time limit, and if there
// are too many clients the oldest is disconnected. Owner: the command. Threads: its own; `text` is
// called on it, and outlives this.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace stoker {

class MetricsServer {
 public:
  struct Limits {
    size_t clients = 600;  // at once; also at most 5/8 of the file descriptor limit
    // For the request and the answer.
    std::chrono::milliseconds client_time = std::chrono::seconds(10);
  };
  // port 0: any free port. Throws std::runtime_error with the port if it cannot listen.
  MetricsServer(int port, std::function<std::string()> text, const Limits& limits);
  MetricsServer(int port, std::function<std::string()> text)
      : MetricsServer(port, std::move(text), Limits()) {}
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  void serve();

  const std::function<std::string()> text_;
  const Limits limits_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};  // a pipe; closing its end makes serve() return
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace stoker
