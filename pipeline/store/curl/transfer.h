// One request on a handle of libcurl: sets the handle up, takes the answer apart as it comes, and
// puts the body where it belongs. A handle is used for one request after the other. Owner:
// CurlClient. Threads: the client's.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "pipeline/store/http_client.h"

namespace stoker {

class Transfer {
 public:
  using Clock = std::chrono::steady_clock;

  Transfer();
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void begin(HttpClient::Ticket ticket, HttpRequest request, std::function<void(HttpAnswer)> done);
  // Makes the handle ready for this request, or only for its connection.
  void set_up(bool connects_only);
  // Ends the request with what libcurl says of it; the handle is in no multi handle any more.
  void end(CURLcode code);
  void end_stalled();
  // Takes the ended request's answer and its callback.
  HttpAnswer take_answer() { return std::move(answer_); }
  std::function<void(HttpAnswer)> take_done() { return std::move(done_); }

  // Without libcurl, on a connection that it has opened: nothing is encrypted, and the body comes
  // from the kernel right to where it belongs. All that is not the usual answer is left to libcurl,
  // which then makes the request anew.

  // Returns "http://host:port" of a request that may go this way; "": it may not.
  std::string_view plain_server() const;
  // Returns false if the connection is not there any more.
  bool ask(int fd, bool has_rested);
  enum class Progress { waiting, ended, strange };
  Progress read();
  void end_plain() { end(plain_end_); }
  // After its end: the connection can be used again.
  bool is_plain_end() const;
  bool connects_only() const { return connects_only_; }
  bool has_come() const { return !head_.empty(); }  // a byte of the answer
  // The connection; -1: libcurl has the request.
  int fd() const { return fd_; }

  // Lets go of what the request's owner gave.
  void forget();

  CURL* handle() const { return handle_; }
  HttpClient::Ticket ticket() const { return ticket_; }
  // When it counts as stalled, if no byte comes before. A request that waits for a connection does
  // not stall: libcurl limits the time of connecting.
  Clock::time_point stalls_at(Clock::time_point now) const;

 private:
  static int on_connected(void* self, char*, char*, int, int);
  static size_t on_header(char* data, size_t, size_t size, void* self);
  static size_t on_body(char* data, size_t, size_t size, void* self);
  void take_header(std::string_view line);
  Progress take_head();
  Progress take_end(bool is_reset);
  Progress break_off(CURLcode code);
  // Both return false if the request must end here.
  bool take_body(std::span<const uint8_t> bytes);
  bool fill_out(std::span<const uint8_t> bytes);
  void set_up_body();
  void set_up_headers();
  bool promised_its_end() const;
  std::string problem_of(CURLcode code) const;

  CURL* const handle_;
  curl_slist* header_list_ = nullptr;
  char error_[CURL_ERROR_SIZE] = "";

  HttpClient::Ticket ticket_ = 0;
  HttpRequest request_;
  std::function<void(HttpAnswer)> done_;
  HttpAnswer answer_;
  bool wants_range_ = false;
  bool connected_ = false;
  bool has_enough_ = false;  // of a whole object, of which a range was wanted
  int http_version_ = 0;     // 1, 2 or 3
  bool connects_only_ = false, has_rested_ = false;
  int fd_ = -1;
  std::string head_;     // of an answer without libcurl, while it is not complete
  int64_t length_ = -1;  // of its body; -1: the head is not complete
  CURLcode plain_end_ = CURLE_OK;
  Clock::time_point started_, last_byte_;
};

}  // namespace stoker
