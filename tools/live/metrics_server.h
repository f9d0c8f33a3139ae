// Answers GET /metrics on the loopback, for Prometheus: small requests, any number of clients
// beside each other, nothing else. A client that is slow, or says nothing, keeps nobody waiting: it
// has a time, and where there are too many the one that has waited longest goes. Owner: the
// command. Threads: its own; `text` is called on it, and outlives this.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace stoker {

class MetricsServer {
 public:
  struct Limits {
    size_t clients = 600;  // at once, and at most 5/8 of the file descriptors that there may be
    std::chrono::milliseconds client_time = std::chrono::seconds(10);  // to ask, and to be answered
  };
  // port 0: any that is free. Throws std::runtime_error with the port where it cannot listen.
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
  int wake_[2] = {-1, -1};  // a pipe whose end tells serve() to return
  int port_ = 0;
  std::thread thread_;
};

}  // namespace stoker
