#include "tests/support/object_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace stoker {
namespace {

using Kind = Fault::Kind;

bool send_all(int socket, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool send_all(int socket, const std::string& text) { return send_all(socket, bytes_of(text)); }

void require(bool success, const char* what) {
  if (success) return;
  std::perror(what);
  std::abort();
}

std::string header_of(const SeenRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

SeenRequest parse_head(const std::string& head) {
  SeenRequest request;
  std::istringstream lines(head);
  lines >> request.method >> request.path;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "\r") {
    const size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::tolower(c); });
    const size_t first = line.find_first_not_of(' ', colon + 1);
    request.headers[name] = line.substr(first, line.size() - first - 1);
  }
  return request;
}

}  // namespace

ObjectServer::ObjectServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  require(listener_ >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  require(bind(listener_, any, size) == 0, "bind");
  require(getsockname(listener_, any, &size) == 0, "getsockname");
  require(listen(listener_, 1024) == 0, "listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ObjectServer::~ObjectServer() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    for (const auto& open : sockets_) shutdown(open.second, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const MutexLock lock(mutex_);
    for (const auto& open : sockets_) shutdown(open.second, SHUT_RDWR);
    std::swap(threads, threads_);
  }
  for (std::thread& thread : threads) thread.join();
  close(listener_);
}

std::string ObjectServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

void ObjectServer::put(const std::string& path, std::vector<uint8_t> bytes,
                       const std::string& etag) {
  const MutexLock lock(mutex_);
  objects_[path] = std::make_shared<const Object>(Object{std::move(bytes), etag});
}

std::shared_ptr<const ObjectServer::Object> ObjectServer::find(const std::string& path) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(path.substr(0, path.find('?')));
  return found == objects_.end() ? nullptr : found->second;
}

void ObjectServer::set_script(Script script) {
  const MutexLock lock(mutex_);
  script_ = std::move(script);
}

void ObjectServer::release() {
  const MutexLock lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

void ObjectServer::wait_for_stalled(int answers) {
  MutexLock lock(mutex_);
  while (stalled_ < answers) changed_.wait(lock);
}

void ObjectServer::wait_for_release() {
  MutexLock lock(mutex_);
  ++stalled_;
  changed_.notify_all();
  while (!released_ && !ending_) changed_.wait(lock);
}

int64_t ObjectServer::requests() const {
  const MutexLock lock(mutex_);
  return static_cast<int64_t>(seen_.size());
}

int ObjectServer::connections() const {
  const MutexLock lock(mutex_);
  return connections_;
}

std::vector<SeenRequest> ObjectServer::seen() const {
  const MutexLock lock(mutex_);
  return seen_;
}

void ObjectServer::accept_all() {
  for (;;) {
    const int socket = accept(listener_, nullptr, nullptr);
    const MutexLock lock(mutex_);
    if (socket < 0 || ending_) {
      if (socket >= 0) close(socket);
      return;
    }
    // The small end of an answer must not wait until what came before is acknowledged.
    const int at_once = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    const int connection = connections_++;
    sockets_[connection] = socket;
    threads_.emplace_back([this, socket, connection] { serve(socket, connection); });
  }
}

void ObjectServer::serve(int socket, int connection) {
  std::string buffer;
  SeenRequest request;
  bool goes_on = true;
  while (goes_on && take_request(socket, buffer, request)) {
    request.connection = connection;
    Script script;
    {
      const MutexLock lock(mutex_);
      request.number = static_cast<int64_t>(seen_.size());
      seen_.push_back(request);
      script = script_;
    }
    goes_on = answer(socket, request, script ? script(request) : Fault{});
  }
  const MutexLock lock(mutex_);
  sockets_.erase(connection);
  close(socket);
}

bool ObjectServer::take_request(int socket, std::string& buffer, SeenRequest& request) {
  const auto read_more = [&] {
    char bytes[4096];
    const ssize_t count = recv(socket, bytes, sizeof bytes, 0);
    if (count > 0) buffer.append(bytes, static_cast<size_t>(count));
    return count > 0;
  };
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more()) return false;
  }
  end += 4;
  request = parse_head(buffer.substr(0, end));
  const std::string length = header_of(request, "content-length");
  const size_t body = length.empty() ? 0 : std::stoul(length);
  while (buffer.size() < end + body) {
    if (!read_more()) return false;
  }
  request.body = buffer.substr(end, body);
  buffer.erase(0, end + body);
  return true;
}

ObjectServer::Answer ObjectServer::range_of(const Object& object, const SeenRequest& request,
                                            const Fault& fault) const {
  std::span<const uint8_t> bytes = object.bytes;
  const std::string etag = fault.kind == Kind::other_version ? "\"other\"" : object.etag;
  Answer answer{200, "ETag: " + etag + "\r\n", bytes};
  const std::string range = header_of(request, "range");
  size_t first = 0, last = 0;
  if (fault.kind == Kind::whole ||
      std::sscanf(range.c_str(), "bytes=%zu-%zu", &first, &last) != 2) {
    return answer;
  }
  if (first >= bytes.size()) return {416, "", {}};
  if (fault.kind == Kind::wrong_range) ++first, ++last;
  if (fault.kind == Kind::too_long) ++last;
  if (fault.kind == Kind::too_short) --last;
  last = std::min(last, bytes.size() - 1);
  answer.status = 206;
  answer.headers += "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) +
                    "/" + std::to_string(bytes.size()) + "\r\n";
  answer.body = bytes.subspan(first, last - first + 1);
  return answer;
}

bool ObjectServer::answer(int socket, const SeenRequest& request, const Fault& fault) {
  if (fault.waits) wait_for_release();
  if (fault.kind == Kind::close) return false;
  const std::shared_ptr<const Object> object = find(request.path);
  Answer answer{404, "", {}};
  const std::string wanted = header_of(request, "if-match");
  if (fault.kind == Kind::status) {
    answer = {fault.status, "", bytes_of(fault.body)};
  } else if (request.method == "POST" || request.method == "PUT") {
    answer = {200, "", bytes_of(request.body)};
  } else if (object != nullptr) {
    answer = !wanted.empty() && wanted != object->etag ? Answer{412, "", {}}
                                                       : range_of(*object, request, fault);
  }
  const bool is_chunked = fault.kind == Kind::chunked || fault.kind == Kind::chunked_cut;
  std::string head =
      "HTTP/1.1 " + std::to_string(answer.status) + " Text\r\n" + answer.headers + fault.headers;
  if (is_chunked) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (fault.kind != Kind::no_length) {
    head += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
  }
  if (!send_all(socket, head + "\r\n")) return false;
  return request.method == "HEAD" || send_body(socket, answer.body, fault);
}

bool ObjectServer::send_body(int socket, std::span<const uint8_t> body, const Fault& fault) {
  const size_t half = body.size() / 2;
  switch (fault.kind) {
    case Kind::cut:
      send_all(socket, body.first(half));
      return false;
    case Kind::reset: {
      send_all(socket, body.first(half));
      const linger at_once{1, 0};
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return false;
    }
    case Kind::stall:
      if (!send_all(socket, body.first(half))) return false;
      wait_for_release();
      return send_all(socket, body.subspan(half));
    case Kind::slow:
      for (; !body.empty(); body = body.subspan(std::min<size_t>(body.size(), 4096))) {
        if (!send_all(socket, body.first(std::min<size_t>(body.size(), 4096)))) return false;
        usleep(500);
      }
      return true;
    case Kind::chunked:
    case Kind::chunked_cut: {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", body.size());
      const bool is_whole = fault.kind == Kind::chunked;
      return send_all(socket, size) && send_all(socket, body) &&
             send_all(socket, is_whole ? "\r\n0\r\n\r\n" : "\r\n") && is_whole;
    }
    case Kind::no_length:
      send_all(socket, body);
      return false;
    default:
      return send_all(socket, body);
  }
}

}  // namespace stoker
