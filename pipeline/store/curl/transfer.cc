#include "pipeline/store/curl/transfer.h"

#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <system_error>

#include "stoker/version.h"

namespace stoker {
namespace {

constexpr std::string_view kPlainScheme = "http://";
constexpr char kTooLong[] = "the answer has more bytes than were asked for";
constexpr size_t kPiece = 4096, kLongestHead = 64 << 10;

bool has_header(const HttpRequest& request, const char* name) {
  return std::any_of(request.headers.begin(), request.headers.end(), [name](const auto& field) {
    return strcasecmp(field.first.c_str(), name) == 0;
  });
}

// Returns "host:port" of a URL, without a name and password.
std::string_view server_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  const size_t at = url.rfind('@');
  return at == std::string_view::npos ? url : url.substr(at + 1);
}

}  // namespace

Transfer::Transfer() : handle_(curl_easy_init()) {
  if (handle_ == nullptr) throw std::bad_alloc();
}

Transfer::~Transfer() {
  curl_easy_cleanup(handle_);
  curl_slist_free_all(header_list_);
}

void Transfer::begin(HttpClient::Ticket ticket, HttpRequest request,
                     std::function<void(HttpAnswer)> done) {
  ticket_ = ticket;
  request_ = std::move(request);
  done_ = std::move(done);
  fd_ = -1;
  connects_only_ = false;
  answer_ = {};
  wants_range_ = has_header(request_, "range");
  connected_ = has_enough_ = false;
  http_version_ = 0;
  error_[0] = '\0';
  started_ = last_byte_ = Clock::now();
}

void Transfer::set_up(bool connects_only) {
  fd_ = -1;
  answer_ = {};
  connected_ = false;
  connects_only_ = connects_only;
  curl_easy_reset(handle_);
  curl_easy_setopt(handle_, CURLOPT_CONNECT_ONLY, connects_only ? 1L : 0L);
  curl_easy_setopt(handle_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(handle_, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(handle_, CURLOPT_URL, request_.url.c_str());
  // A signature is of the path as it is written.
  curl_easy_setopt(handle_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle_, CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
  curl_easy_setopt(handle_, CURLOPT_USERAGENT, "stoker/" STOKER_VERSION);
  curl_easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle_, CURLOPT_BUFFERSIZE, long{HttpClient::kBufferBytes});
  curl_easy_setopt(handle_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(request_.connect_timeout.count()));
  curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYPEER, request_.verify_peer ? 1L : 0L);
  curl_easy_setopt(handle_, CURLOPT_SSL_VERIFYHOST, request_.verify_peer ? 2L : 0L);
  if (!request_.ca_file.empty()) {
    curl_easy_setopt(handle_, CURLOPT_CAINFO, request_.ca_file.c_str());
  }
  curl_easy_setopt(handle_, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt(handle_, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(handle_, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle_, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle_, CURLOPT_WRITEDATA, this);
  set_up_body();
  set_up_headers();
}

void Transfer::forget() {
  request_ = {};
  done_ = nullptr;
  answer_ = {};
}

void Transfer::set_up_body() {
  const std::string& method = request_.method;
  if (method == "HEAD") {
    curl_easy_setopt(handle_, CURLOPT_NOBODY, 1L);
    return;
  }
  if (method == "GET") return;
  if (method == "PUT" || method == "POST") {
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(handle_, CURLOPT_POSTFIELDS, request_.body.data());
  }
  curl_easy_setopt(handle_, CURLOPT_CUSTOMREQUEST, method.c_str());
}

void Transfer::set_up_headers() {
  curl_slist_free_all(header_list_);
  header_list_ = nullptr;
  const auto add = [this](const std::string& line) {
    curl_slist* longer = curl_slist_append(header_list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    header_list_ = longer;
  };
  for (const auto& [name, value] : request_.headers) {
    // An empty value is written so; "name:" would leave the header out.
    add(value.empty() ? name + ";" : name + ": " + value);
  }
  // libcurl would add these to a body; they are not what was signed.
  if (!request_.body.empty() || request_.method == "PUT" || request_.method == "POST") {
    add("Expect:");
    if (!has_header(request_, "content-type")) add("Content-Type:");
  }
  curl_easy_setopt(handle_, CURLOPT_HTTPHEADER, header_list_);
}

int Transfer::on_connected(void* self, char*, char*, int, int) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.connected_ = true;
  transfer.last_byte_ = Clock::now();
  return CURL_PREREQFUNC_OK;
}

size_t Transfer::on_header(char* data, size_t, size_t size, void* self) {
  static_cast<Transfer*>(self)->take_header({data, size});
  return size;
}

size_t Transfer::on_body(char* data, size_t, size_t size, void* self) {
  return static_cast<Transfer*>(self)->take_body({reinterpret_cast<uint8_t*>(data), size}) ? size
                                                                                           : 0;
}

void Transfer::take_header(std::string_view line) {
  last_byte_ = Clock::now();
  if (line.starts_with("HTTP/")) {
    if (answer_.status == 0) answer_.first_byte = last_byte_ - started_;
    http_version_ = line.size() > 5 ? line[5] - '0' : 0;
  }
  answer_.take_line(line);
}

bool Transfer::take_body(std::span<const uint8_t> bytes) {
  last_byte_ = Clock::now();
  answer_.carried += static_cast<int64_t>(bytes.size());
  if (!request_.out.empty() && (answer_.status == 206 || answer_.status == 200)) {
    return fill_out(bytes);
  }
  if (static_cast<int64_t>(answer_.body.size() + bytes.size()) > request_.longest_body) {
    answer_.problem =
        "the answer has more than " + std::to_string(request_.longest_body) + " bytes";
    return false;
  }
  answer_.body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return true;
}

bool Transfer::fill_out(std::span<const uint8_t> bytes) {
  // Some servers answer 200 with a Content-Range, which is a part (rclone's serve s3).
  const bool is_whole =
      answer_.status == 200 && wants_range_ && answer_.header("content-range").empty();
  if (is_whole) {
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t before = answer_.carried - size;
    bytes = bytes.subspan(std::clamp<int64_t>(request_.skip_if_whole - before, 0, size));
  }
  const size_t room = request_.out.size() - static_cast<size_t>(answer_.received);
  const size_t taken = std::min(bytes.size(), room);
  if (taken > 0) std::memcpy(request_.out.data() + answer_.received, bytes.data(), taken);
  answer_.received += static_cast<int64_t>(taken);
  if (!is_whole) {
    if (taken < bytes.size()) answer_.problem = kTooLong;
    return taken == bytes.size();
  }
  has_enough_ = taken == room;
  curl_off_t length = -1;
  curl_easy_getinfo(handle_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  // A connection whose answer has come to its end can be used again.
  return !has_enough_ || answer_.carried == length;
}

std::string_view Transfer::plain_server() const {
  const std::string_view url = request_.url;
  if (request_.method != "GET" || request_.out.empty() || !url.starts_with(kPlainScheme)) return {};
  const size_t path = url.find('/', kPlainScheme.size());
  if (path == std::string_view::npos || path == kPlainScheme.size()) return {};
  const std::string_view server = url.substr(0, path), host = server.substr(kPlainScheme.size());
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '#'; };
  const bool is_known = host.find_first_of("@?%") == host.npos && host.back() != ':' &&
                        std::all_of(url.begin(), url.end(), is_plain);
  // These would be there twice.
  for (const char* name : {"host", "user-agent", "accept", "connection"}) {
    if (has_header(request_, name)) return {};
  }
  return is_known ? server : std::string_view();
}

bool Transfer::ask(int fd, bool has_rested) {
  const std::string_view server = plain_server();
  const std::string_view path = std::string_view(request_.url).substr(server.size());
  std::string_view host = server.substr(kPlainScheme.size());
  if (host.ends_with(":80")) host.remove_suffix(3);
  std::string text = "GET ";
  text.append(path).append(" HTTP/1.1\r\nHost: ").append(host);
  text += "\r\nUser-Agent: stoker/" STOKER_VERSION "\r\nAccept: */*\r\n";
  for (const auto& [name, value] : request_.headers) {
    text.append(name).append(value.empty() ? ":" : ": ").append(value).append("\r\n");
  }
  text += "\r\n";
  fd_ = fd;
  has_rested_ = has_rested;
  connects_only_ = false;
  head_.clear();
  length_ = -1;
  plain_end_ = CURLE_OK;
  connected_ = true;
  last_byte_ = Clock::now();
  // It finds room in the socket, where nothing else is under way.
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
}

Transfer::Progress Transfer::read() {
  for (;;) {
    const bool has_head = length_ >= 0, is_range = has_head && answer_.status < 300;
    const size_t left = has_head ? static_cast<size_t>(length_ - answer_.carried) : kPiece;
    const size_t before = has_head ? 0 : head_.size();
    const size_t wanted = is_range ? left : std::min(left, kPiece);
    if (!is_range) head_.resize(before + wanted);
    uint8_t* const place = is_range ? request_.out.data() + answer_.received
                                    : reinterpret_cast<uint8_t*>(head_.data()) + before;
    const ssize_t count = recv(fd_, place, wanted, 0);
    if (!is_range) head_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::waiting;
    if (count <= 0) return take_end(count < 0);
    last_byte_ = Clock::now();
    if (is_range) {
      answer_.received += count;
      answer_.carried += count;
    } else if (has_head) {
      if (!take_body({place, static_cast<size_t>(count)})) return break_off(CURLE_WRITE_ERROR);
    } else if (const Progress progress = take_head(); progress != Progress::waiting) {
      return progress;
    }
    if (answer_.carried == length_) return Progress::ended;
    if (static_cast<size_t>(count) < wanted) return Progress::waiting;
  }
}

Transfer::Progress Transfer::take_head() {
  const std::string_view head = head_;
  const size_t end = head.find("\r\n\r\n");
  if (end == head.npos) {
    return head.size() < kLongestHead ? Progress::waiting : Progress::strange;
  }
  const std::span<const uint8_t> body(reinterpret_cast<const uint8_t*>(head.data()) + end + 4,
                                      head.size() - end - 4);
  if (!answer_.take_head(head.substr(0, end + 2))) return Progress::strange;
  http_version_ = 1;
  answer_.first_byte = last_byte_ - started_;
  const bool is_range =
      answer_.status == 206 ||
      (answer_.status == 200 && (!wants_range_ || !answer_.header("content-range").empty()));
  const int64_t length = answer_.plain_length();
  if (length < std::ssize(body) || (!is_range && answer_.status < 300)) return Progress::strange;
  length_ = length;
  if (is_range && length > std::ssize(request_.out)) {
    answer_.problem = kTooLong;
    return break_off(CURLE_WRITE_ERROR);
  }
  return body.empty() || take_body(body) ? Progress::waiting : break_off(CURLE_WRITE_ERROR);
}

Transfer::Progress Transfer::break_off(CURLcode code) {
  plain_end_ = code;
  return Progress::ended;
}

Transfer::Progress Transfer::take_end(bool is_reset) {
  // Its server has ended the connection while it rested, and libcurl opens another one.
  if (head_.empty() && has_rested_) return Progress::strange;
  if (head_.empty() && !is_reset) {
    answer_.problem = std::string(server_of(request_.url)) + ": Empty reply from server";
  }
  return break_off(is_reset ? CURLE_RECV_ERROR : CURLE_PARTIAL_FILE);
}

bool Transfer::is_plain_end() const {
  const std::string& connection = answer_.header("connection");
  return plain_end_ == CURLE_OK &&
         (connection.empty() || strcasecmp(connection.c_str(), "keep-alive") == 0);
}

Transfer::Clock::time_point Transfer::stalls_at(Clock::time_point now) const {
  return (connected_ ? last_byte_ : now) + request_.stall_timeout;
}

bool Transfer::promised_its_end() const {
  return http_version_ >= 2 || request_.method == "HEAD" || answer_.status == 204 ||
         answer_.status == 304 || !answer_.header("content-length").empty() ||
         !answer_.header("transfer-encoding").empty();
}

void Transfer::end(CURLcode code) {
  answer_.total = Clock::now() - started_;
  answer_.complete = has_enough_ || (code == CURLE_OK && promised_its_end());
  if (!answer_.complete && answer_.problem.empty()) answer_.problem = problem_of(code);
  answer_.hopeless = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
}

void Transfer::end_stalled() {
  answer_.total = Clock::now() - started_;
  answer_.problem = std::string(server_of(request_.url)) + ": no byte came for " +
                    std::to_string(request_.stall_timeout.count()) + " ms";
}

// libcurl's text names hosts, ports, files and numbers. Where it has an address in it, there
// may be a password, too: of a proxy, for example.
std::string Transfer::problem_of(CURLcode code) const {
  const std::string server(server_of(request_.url));
  if (code == CURLE_OK) return server + ": the answer says neither its length nor its end";
  if (code == CURLE_COULDNT_CONNECT) {
    long number = 0;
    curl_easy_getinfo(handle_, CURLINFO_OS_ERRNO, &number);
    if (number != 0) {
      return "could not connect to " + server + ": " +
             std::generic_category().message(static_cast<int>(number));
    }
  }
  const std::string text = error_;
  const bool has_address = text.find("://") != text.npos || text.find('@') != text.npos;
  return server + ": " + (text.empty() || has_address ? curl_easy_strerror(code) : text);
}

}  // namespace stoker
