// libcurl's multi interface on an epoll descriptor: of many transfers only those are looked at that
// have something to do. curl_multi_perform() polls each one instead, whenever one has bytes. Owner:
// CurlClient. Threads: the client's, but for wake().
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <unordered_set>
#include <vector>

struct epoll_event;

namespace stoker {

class CurlMulti {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws std::bad_alloc or std::system_error.
  CurlMulti(int connections, std::function<void(int fd)> on_own);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  void add(CURL* handle);
  void limit(int connections) {
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, long{connections});
  }
  // Takes over the connection of a handle that has only connected; act() calls `on_own` when it has
  // something to read. Returns its descriptor; -1: there is none.
  int take_over(CURL* handle);
  void close_own(int fd);
  void remove(CURL* handle) { curl_multi_remove_handle(multi_, handle); }
  // Waits until a transfer has something to do, `until` comes or wake() is called, and lets libcurl
  // do it. No transfer that has ended is taken out.
  void act(Clock::time_point until);
  // Calls `ended` for each transfer that has ended since the last call; it may add and remove
  // handles.
  void take_ended(const std::function<void(CURL*, CURLcode)>& ended);
  // Ends a wait, or the next one. Any thread.
  void wake();

 private:
  // A descriptor that is closed at the end.
  class Descriptor {
   public:
    Descriptor(int fd, const char* what);
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int fd() const { return fd_; }

   private:
    const int fd_;
  };

  static int on_socket(CURL* handle, curl_socket_t socket, int what, void* self, void* ignored);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);
  static int on_timer(CURLM* multi, long milliseconds, void* self);
  void watch(int fd, uint32_t events);
  void close_socket(int fd);
  void act_on(int fd, uint32_t events);
  int milliseconds_to(Clock::time_point time) const;

  const Descriptor epoll_, woken_;
  CURLM* const multi_;
  const std::function<void(int)> on_own_;
  std::unordered_set<int> own_;  // the sockets that were taken over
  std::vector<epoll_event> events_;
  // Sockets that libcurl wants nothing of. They stay watched until they have something to say:
  // mostly the next request wants the same of them. One that was still connecting may be closed
  // already, without on_close() (libcurl 7.88); the kernel has then stopped watching it.
  std::unordered_set<int> resting_;
  Clock::time_point due_ = Clock::time_point::max();  // when libcurl wants to be called again
};

}  // namespace stoker
