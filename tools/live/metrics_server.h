// Answers GET /metrics on the loopback, for Prometheus: one small request at a time, nothing else.
// Owner: the command. Threads: its own; `text` is called on it, and outlives this.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace stoker {

class MetricsServer {
 public:
  // port 0: any that is free. Throws std::runtime_error with the port where it cannot listen.
  MetricsServer(int port, std::function<std::string()> text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  void serve();
  void answer(int client);

  const std::function<std::string()> text_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};  // a pipe whose end tells serve() to return
  int port_ = 0;
  std::thread thread_;
};

}  // namespace stoker
