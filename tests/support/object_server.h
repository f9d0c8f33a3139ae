// A HTTP/1.1 server of objects in memory, on a port of the loopback interface that the system
// picks. It knows GET, HEAD, Range and If-Match, and echoes POST. A test scripts what goes wrong,
// request by request. Threads: one for each connection; every method from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "staging/mutex.h"

namespace stoker {

struct SeenRequest {
  int64_t number = 0;  // 0 is the server's first request
  int connection = 0;  // likewise
  std::string method{}, path{};
  std::map<std::string, std::string> headers{};  // names in small letters
  std::string body{};
};

// Faults of an answer.
struct Fault {
  enum class Kind {
    none,
    status,         // answers `status` with `body`
    close,          // ends the connection without an answer
    cut,            // half of the body of the right Content-Length, then the end
    reset,          // half of the body, then RST
    stall,          // half of the body, the rest after release()
    slow,           // the body in many pieces, with pauses
    wrong_range,    // Content-Range and body are of the place one byte further
    too_long,       // one byte more than was asked for
    too_short,      // one byte less
    whole,          // status 200, as if there were no Range
    other_version,  // another ETag
    chunked,        // the body without Content-Length
    chunked_cut,    // and without its last chunk
    no_length,      // the body ends with the connection
  } kind = Kind::none;
  bool waits = false;  // for release(), before anything else
  int status = 503;
  std::string body{};
  std::string headers{};  // more lines, each with "\r\n"
};

class ObjectServer {
 public:
  using Script = std::function<Fault(const SeenRequest&)>;

  ObjectServer();
  ~ObjectServer();
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;

  std::string url(const std::string& path) const;  // "http://127.0.0.1:PORT/path"
  void put(const std::string& path, std::vector<uint8_t> bytes, const std::string& etag);
  void set_script(Script script);
  // Stalled answers go on, and later ones do not stall.
  void release();
  void wait_for_stalled(int answers);

  int64_t requests() const;
  int connections() const;
  std::vector<SeenRequest> seen() const;

 private:
  struct Object {
    std::vector<uint8_t> bytes;
    std::string etag;
  };
  struct Answer {
    int status = 200;
    std::string headers{};
    std::span<const uint8_t> body{};
    bool has_length = true;
  };

  void accept_all();
  void serve(int socket, int connection);
  bool take_request(int socket, std::string& buffer, SeenRequest& request);
  // Returns false if the connection ends.
  bool answer(int socket, const SeenRequest& request, const Fault& fault);
  Answer range_of(const Object& object, const SeenRequest& request, const Fault& fault) const;
  bool send_body(int socket, std::span<const uint8_t> body, const Fault& fault);
  std::shared_ptr<const Object> find(const std::string& path) const;
  void wait_for_release();

  int listener_ = -1;
  int port_ = 0;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<const Object>> objects_ GUARDED_BY(mutex_);
  Script script_ GUARDED_BY(mutex_);
  std::vector<SeenRequest> seen_ GUARDED_BY(mutex_);
  std::map<int, int> sockets_ GUARDED_BY(mutex_);  // of connections that are open
  int connections_ GUARDED_BY(mutex_) = 0;
  int stalled_ GUARDED_BY(mutex_) = 0;
  bool released_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace stoker
