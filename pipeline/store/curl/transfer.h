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

  // Makes the handle ready for this request.
  void begin(HttpClient::Ticket ticket, HttpRequest request, std::function<void(HttpAnswer)> done);
  // Ends the request with what libcurl says of it; the handle is in no multi handle any more.
  void end(CURLcode code);
  void end_stalled();
  // Takes the ended request's answer and its callback.
  HttpAnswer take_answer() { return std::move(answer_); }
  std::function<void(HttpAnswer)> take_done() { return std::move(done_); }

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
  Clock::time_point started_, last_byte_;
};

}  // namespace stoker
