// A server for measurements of clients: it does as little as a server can. Each connection has a
// thread, which answers GET of any path with the wanted range of an object, and HEAD with its
// length: the number at the path's end, or 1 TB. The bytes are always the same memory's. Nothing is
// checked, nothing is stored.
//
//   null_server [CERTIFICATE KEY]    prints its port on 127.0.0.1, and ends with its input
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/report/program.h"

namespace stoker {
namespace {

const std::vector<char>& body_bytes() {
  static const std::vector<char> bytes(4 << 20, 'x');  // stays in the last cache
  return bytes;
}

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

// A connection that carries bytes as they are, or through TLS.
class Connection {
 public:
  Connection(int socket, SSL_CTX* tls) : socket_(socket), ssl_(tls ? SSL_new(tls) : nullptr) {
    if (ssl_) SSL_set_fd(ssl_, socket_);
  }
  ~Connection() {
    SSL_free(ssl_);
    close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool begin() { return !ssl_ || SSL_accept(ssl_) == 1; }
  // Returns how many bytes came; 0 or less at the end.
  int64_t read(char* out, size_t size) {
    return ssl_ ? SSL_read(ssl_, out, static_cast<int>(size)) : ::read(socket_, out, size);
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const int64_t count = ssl_ ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                 : ::write(socket_, bytes.data(), bytes.size());
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

 private:
  const int socket_;
  SSL* const ssl_;
};

struct Range {
  int64_t first, end, object;
  bool is_part() const { return end - first < object; }
};

Range range_of(const std::string& request) {
  const std::string_view path = std::string_view(request).substr(0, request.find_first_of("? ", 5));
  const size_t digits = path.find_last_not_of("0123456789") + 1;
  const int64_t number = std::strtoll(request.c_str() + digits, nullptr, 10);
  const int64_t object = number > 0 ? number : 1'000'000'000'000;
  const size_t at = request.find("bytes=");
  if (at == std::string::npos) return {0, object, object};
  char* end = nullptr;
  const int64_t first = std::strtoll(request.c_str() + at + 6, &end, 10);
  return {first, std::min(std::strtoll(end + 1, nullptr, 10) + 1LL, 0LL + object), object};
}

bool answer(Connection& connection, const std::string& request) {
  const Range range = range_of(request);
  std::string head = "HTTP/1.1 200 OK\r\n";
  if (range.is_part()) {
    head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(range.first) +
           "-" + std::to_string(range.end - 1) + "/" + std::to_string(range.object) + "\r\n";
  }
  head += "Content-Length: " + std::to_string(range.end - range.first) +
          "\r\nETag: \"0\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
          "Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\n\r\n";
  if (!connection.write(head)) return false;
  if (request.starts_with("HEAD")) return true;
  const std::string_view bytes(body_bytes().data(), body_bytes().size());
  for (int64_t left = range.end - range.first; left > 0;) {
    const std::string_view piece =
        bytes.substr(0, static_cast<size_t>(std::min<int64_t>(left, std::ssize(bytes))));
    if (!connection.write(piece)) return false;
    left -= std::ssize(piece);
  }
  return true;
}

void serve(int socket, SSL_CTX* tls) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  Connection connection(socket, tls);
  if (!connection.begin()) return;
  std::string text(1 << 16, '\0'), request;
  for (;;) {
    const size_t end = request.find("\r\n\r\n");
    if (end != std::string::npos) {
      if (!answer(connection, request.substr(0, end))) return;
      request.erase(0, end + 4);
      continue;
    }
    const int64_t count = connection.read(text.data(), text.size());
    if (count <= 0) return;
    request.append(text, 0, static_cast<size_t>(count));
  }
}

SSL_CTX* make_tls(const char* certificate, const char* key) {
  SSL_CTX* const tls = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(tls, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1) {
    throw std::runtime_error(std::string(certificate) + ": no certificate with this key");
  }
  return tls;
}

int accept_all(int argc, char** argv) {
  if (argc != 1 && argc != 3) throw std::invalid_argument("usage: null_server [CERTIFICATE KEY]");
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* const tls = argc == 3 ? make_tls(argv[1], argv[2]) : nullptr;
  const int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  checked(bind(listener, any, size), "bind");
  checked(listen(listener, 1024), "listen");
  checked(getsockname(listener, any, &size), "getsockname");
  std::printf("%d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  std::thread([] {
    while (std::getchar() != EOF) {
    }
    std::_Exit(0);
  }).detach();
  for (;;) {
    std::thread(serve, checked(accept(listener, nullptr, nullptr), "accept"), tls).detach();
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("null_server", stoker::accept_all, argc, argv);
}
