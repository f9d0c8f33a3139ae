#include "pipeline/store/curl/multi.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <span>
#include <system_error>

namespace stoker {
namespace {

CURLM* make_multi() {
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) throw std::bad_alloc();
  return multi;
}

}  // namespace

CurlMulti::Descriptor::Descriptor(int fd, const char* what) : fd_(fd) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
}

CurlMulti::Descriptor::~Descriptor() { close(fd_); }

CurlMulti::CurlMulti(int connections, std::function<void(int)> on_own)
    : epoll_(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"),
      woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      multi_(make_multi()),
      on_own_(std::move(on_own)),
      // After a break of the whole process all of them may be ready, and each is to be read before
      // one counts as stalled.
      events_(static_cast<size_t>(connections) + 1) {
  limit(connections);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, long{connections});
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  watch(woken_.fd(), EPOLLIN);
}

CurlMulti::~CurlMulti() {
  curl_multi_cleanup(multi_);
  for (const int fd : own_) close_socket(fd);
}

void CurlMulti::add(CURL* handle) {
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, on_open);
  curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, on_close);
  curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, this);
  curl_multi_add_handle(multi_, handle);
}

// As libcurl does it, but programs that this one starts do not inherit the connection.
curl_socket_t CurlMulti::on_open(void*, curlsocktype, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int CurlMulti::on_close(void* self, curl_socket_t socket) {
  static_cast<CurlMulti*>(self)->close_socket(socket);
  return 0;
}

// A forked process may hold the connection, too. The kernel would go on watching it then, under a
// number that is soon another file's.
void CurlMulti::close_socket(int fd) {
  resting_.erase(fd);
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
  close(fd);
}

int CurlMulti::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  auto& multi = *static_cast<CurlMulti*>(self);
  if (what == CURL_POLL_REMOVE) {
    multi.resting_.insert(socket);
    return 0;
  }
  multi.watch(socket, ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) |
                          ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U));
  return 0;
}

int CurlMulti::on_timer(CURLM*, long milliseconds, void* self) {
  static_cast<CurlMulti*>(self)->due_ =
      milliseconds < 0 ? Clock::time_point::max()
                       : Clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

void CurlMulti::watch(int fd, uint32_t events) {
  resting_.erase(fd);
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event) == 0) return;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event);
}

void CurlMulti::act(Clock::time_point until) {
  const int count = epoll_wait(epoll_.fd(), events_.data(), static_cast<int>(events_.size()),
                               milliseconds_to(std::min(until, due_)));
  const std::span<const epoll_event> events(events_.data(),
                                            static_cast<size_t>(std::max(count, 0)));
  for (const epoll_event& event : events) {
    if (!own_.contains(event.data.fd)) act_on(event.data.fd, event.events);
  }
  // These come last: on_own_ may cancel requests of libcurl's, and another thread may then open a
  // file under the number of a socket that has an event above.
  for (const epoll_event& event : events) {
    if (own_.contains(event.data.fd)) on_own_(event.data.fd);
  }
  if (due_ > Clock::now()) return;
  due_ = Clock::time_point::max();  // libcurl says when again
  int running = 0;
  curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
}

void CurlMulti::act_on(int fd, uint32_t events) {
  if (fd == woken_.fd()) {
    eventfd_t times = 0;
    eventfd_read(fd, &times);
    return;
  }
  if (resting_.erase(fd) > 0) {
    epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
    return;
  }
  int mask = 0;
  if ((events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
  int running = 0;
  curl_multi_socket_action(multi_, fd, mask, &running);
}

int CurlMulti::take_over(CURL* handle) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket);
  if (socket == CURL_SOCKET_BAD) return -1;
  // libcurl closes its descriptor, and a second one keeps the connection. The kernel would go on
  // watching the first one.
  const int fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return -1;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, socket, nullptr);
  own_.insert(fd);
  watch(fd, EPOLLIN);
  return fd;
}

void CurlMulti::close_own(int fd) {
  own_.erase(fd);
  // An older libcurl (7.81) keeps its descriptor for a while.
  shutdown(fd, SHUT_RDWR);
  close_socket(fd);
}

int CurlMulti::milliseconds_to(Clock::time_point time) const {
  const Clock::time_point now = Clock::now();
  if (time <= now) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - now).count();
  return static_cast<int>(std::min<int64_t>(left, INT_MAX));
}

void CurlMulti::take_ended(const std::function<void(CURL*, CURLcode)>& ended) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    // The message goes when the handle is removed.
    CURL* const handle = message->easy_handle;
    const CURLcode code = message->data.result;
    if (message->msg == CURLMSG_DONE) ended(handle, code);
  }
}

void CurlMulti::wake() { eventfd_write(woken_.fd(), 1); }

}  // namespace stoker
