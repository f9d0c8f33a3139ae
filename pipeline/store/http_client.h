// Carries HTTP requests, many at a time, on one thread of its own, over connections that are kept.
// It knows nothing of stores, retries and signatures. The implementation is in the plugin
// libstoker_curl.so (curl/), so that a program needs libcurl only where it is used. Owner: whoever
// made it; it outlives its requests. Threads: every method from any thread; callbacks run on the
// client's thread, one at a time, and must not wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

struct HttpRequest {
  std::string method = "GET";
  std::string url{};                                           // percent-encoded
  std::vector<std::pair<std::string, std::string>> headers{};  // in addition to Host and Accept
  std::string body{};                                          // of PUT and POST
  // Where the body of an answer with status 206 (or 200) goes; bytes beyond its end make the
  // request fail. Empty: the body goes into HttpAnswer::body. Stays valid until `done`, or until
  // cancel() has returned.
  std::span<uint8_t> out{};
  // How many bytes to leave out before `out`, if the answer is 200 although a range was asked for.
  // The rest behind `out` is not waited for.
  int64_t skip_if_whole = 0;
  int64_t longest_body = int64_t{64} << 20;  // of HttpAnswer::body; more makes the request fail
  std::chrono::milliseconds connect_timeout{10'000};
  // The request fails if no byte comes for so long.
  std::chrono::milliseconds stall_timeout{30'000};
  bool verify_peer = true;  // of TLS
  std::string ca_file{};    // certificates to trust instead of the system's; "": the system's
};

struct HttpAnswer {
  int status = 0;         // 0: there was no answer, and `problem` says why
  std::string problem{};  // one line: "could not connect to 127.0.0.1:9: connection refused"
  // Another try would end in the same way: the server's certificate does not hold.
  bool hopeless = false;
  // The answer came to its end as its headers promised: Content-Length, or the end of its chunks.
  bool complete = false;
  std::vector<std::pair<std::string, std::string>> headers{};  // names in small letters
  std::string body{};    // what did not go to HttpRequest::out; also an error's text
  int64_t received = 0;  // bytes that were written to `out`
  int64_t carried = 0;   // bytes of the body that came over the network, with those left out
  std::chrono::nanoseconds first_byte{
      0};  // from the start of the request to the answer's first byte
  std::chrono::nanoseconds total{0};

  // Returns the value of a header, "" if there is none. `name` is in small letters.
  const std::string& header(const std::string& name) const;
  // Takes a line of the answer's head: the status, or a field. Returns false if it is not written
  // as HTTP/1.1 has it.
  bool take_line(std::string_view line);
  // Takes the lines, each with its end: the status first, and once. Returns false if one is not
  // written so.
  bool take_head(std::string_view lines);
  // Returns the length of the body if one Content-Length alone says it; -1 if something else may.
  int64_t plain_length() const;
};

class HttpClient {
 public:
  // Size of the buffer of each request under way. A larger one needs fewer system calls.
  static constexpr int64_t kBufferBytes = 128 << 10;

  using Ticket = uint64_t;          // never 0
  virtual ~HttpClient() = default;  // cancels what is under way
  // `done` is called once, unless the request is cancelled.
  virtual Ticket start(HttpRequest request, std::function<void(HttpAnswer)> done) = 0;
  // After it has returned, `done` does not run any more and `out` is not written. Called from
  // `done` or from a timer, it returns at once.
  virtual void cancel(Ticket ticket) = 0;
  // Calls `then` on the client's thread after this time.
  virtual void after(std::chrono::nanoseconds time, std::function<void()> then) = 0;
  // Starts the request and waits for its answer. REQUIRES: not on the client's thread.
  HttpAnswer get(HttpRequest request);
};

// Makes a client. Throws std::runtime_error if the plugin cannot be opened, with what to install.
// `connections`: the most that are open at once.
std::unique_ptr<HttpClient> make_http_client(int connections);

}  // namespace stoker
