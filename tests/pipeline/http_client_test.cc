// The client on libcurl: what it makes of every kind of answer, what it sends, cancels and ends.
#include "pipeline/store/http_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include "tests/support/object_server.h"
#include "tests/support/wait_until.h"

namespace stoker {
namespace {

using FaultKind = Fault::Kind;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kObjectBytes = 1'000'000;
constexpr char kEtag[] = "\"v1\"";

std::vector<uint8_t> some_bytes(int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return bytes;
}

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClientTest() { server_.put("/object", object_, kEtag); }

  void fail(Fault fault) {
    server_.set_script([fault](const SeenRequest&) { return fault; });
  }
  // A request for [offset, offset + out.size()).
  HttpRequest range(int64_t offset, std::span<uint8_t> out) const {
    HttpRequest request;
    request.url = server_.url("/object");
    request.headers = {{"Range", "bytes=" + std::to_string(offset) + "-" +
                                     std::to_string(offset + int64_t(out.size()) - 1)}};
    request.out = out;
    request.skip_if_whole = offset;
    return request;
  }
  bool is_right(int64_t offset, std::span<const uint8_t> bytes) const {
    return std::equal(bytes.begin(), bytes.end(), object_.begin() + offset);
  }

  const std::vector<uint8_t> object_ = some_bytes(kObjectBytes);
  std::vector<uint8_t> out_ = std::vector<uint8_t>(300'000);
  ObjectServer server_;
  std::unique_ptr<HttpClient> client_ = make_http_client(8);
};

TEST_F(HttpClientTest, ARangeGoesWhereItBelongs) {
  const HttpAnswer answer = client_->get(range(1000, out_));
  EXPECT_EQ(answer.status, 206);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.problem, "");
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.received, 300'000);
  EXPECT_EQ(answer.carried, 300'000);
  EXPECT_EQ(answer.header("etag"), kEtag);
  EXPECT_EQ(answer.header("content-range"), "bytes 1000-300999/1000000");
  EXPECT_EQ(answer.header("no-such"), "");
  EXPECT_GT(answer.first_byte.count(), 0);
  EXPECT_GE(answer.total, answer.first_byte);
  EXPECT_TRUE(is_right(1000, out_));
}

TEST_F(HttpClientTest, WithoutAPlaceTheBodyIsReturned) {
  const HttpAnswer answer = client_->get({.url = server_.url("/object")});
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.received, 0);
  EXPECT_EQ(answer.carried, kObjectBytes);
  EXPECT_EQ(answer.body, std::string(object_.begin(), object_.end()));
}

TEST_F(HttpClientTest, TheTextOfAnErrorIsNoPartOfTheRange) {
  fail({.kind = FaultKind::status, .status = 403, .body = "<Error>no</Error>"});
  const HttpAnswer answer = client_->get(range(0, out_));
  EXPECT_EQ(answer.status, 403);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.body, "<Error>no</Error>");
  EXPECT_EQ(answer.received, 0);
  EXPECT_EQ(out_, std::vector<uint8_t>(out_.size()));
}

TEST_F(HttpClientTest, ABodyHasALimit) {
  for (const int64_t longest : {kObjectBytes, kObjectBytes - 1}) {
    HttpRequest request;
    request.url = server_.url("/object");
    request.longest_body = longest;
    const HttpAnswer answer = client_->get(request);
    EXPECT_EQ(answer.complete, longest == kObjectBytes);
    EXPECT_LE(int64_t(answer.body.size()), longest);
    EXPECT_EQ(answer.problem, answer.complete ? "" : "the answer has more than 999999 bytes");
  }
}

TEST_F(HttpClientTest, AnAnswerThatIsCutShortIsNotComplete) {
  for (const FaultKind kind : {FaultKind::cut, FaultKind::reset}) {
    fail({.kind = kind});
    const HttpAnswer answer = client_->get(range(0, out_));
    EXPECT_EQ(answer.status, 206);
    EXPECT_FALSE(answer.complete);
    EXPECT_LE(answer.received, 150'000);
    EXPECT_THAT(answer.problem, HasSubstr("127.0.0.1:"));
  }
  fail({.kind = FaultKind::close});
  const HttpAnswer answer = client_->get(range(0, out_));
  EXPECT_EQ(answer.status, 0);
  EXPECT_FALSE(answer.complete);
  EXPECT_THAT(answer.problem, HasSubstr("Empty reply"));
}

TEST_F(HttpClientTest, TheEndMustHaveBeenPromised) {
  for (const FaultKind kind : {FaultKind::chunked, FaultKind::chunked_cut, FaultKind::no_length}) {
    fail({.kind = kind});
    const HttpAnswer answer = client_->get(range(0, out_));
    EXPECT_EQ(answer.status, 206);
    EXPECT_EQ(answer.received, 300'000);
    EXPECT_EQ(answer.complete, kind == FaultKind::chunked);
    EXPECT_EQ(answer.problem.empty(), answer.complete) << answer.problem;
  }
}

TEST_F(HttpClientTest, OfAWholeObjectOnlyTheRangeIsTaken) {
  fail({.kind = FaultKind::whole});
  const HttpAnswer middle = client_->get(range(123'456, out_));
  EXPECT_EQ(middle.status, 200);
  EXPECT_TRUE(middle.complete) << middle.problem;
  EXPECT_EQ(middle.received, 300'000);
  EXPECT_GE(middle.carried, 423'456);
  EXPECT_TRUE(is_right(123'456, out_));

  // To the end of the object the connection can be used again.
  const int connections = server_.connections();
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer last = client_->get(range(700'000, out_));
    EXPECT_TRUE(last.complete);
    EXPECT_EQ(last.carried, kObjectBytes);
    EXPECT_TRUE(is_right(700'000, out_));
  }
  EXPECT_EQ(server_.connections(), connections + 1);
}

TEST_F(HttpClientTest, OfAWholeObjectThatEndsTooEarlyNothingIsMadeUp) {
  fail({.kind = FaultKind::whole});
  const HttpAnswer answer = client_->get(range(900'000, out_));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.received, 100'000);
}

TEST_F(HttpClientTest, MoreThanWasAskedForIsAFailure) {
  fail({.kind = FaultKind::too_long});
  const HttpAnswer answer = client_->get(range(0, out_));
  EXPECT_FALSE(answer.complete);
  EXPECT_LE(answer.received, 300'000);
  EXPECT_EQ(answer.problem, "the answer has more bytes than were asked for");
}

TEST_F(HttpClientTest, AStallEndsTheRequest) {
  fail({.kind = FaultKind::stall});
  HttpRequest request = range(0, out_);
  request.stall_timeout = milliseconds(50);
  const HttpAnswer answer = client_->get(request);
  EXPECT_FALSE(answer.complete);
  EXPECT_THAT(answer.problem, HasSubstr(": no byte came for 50 ms"));
  EXPECT_EQ(answer.received, answer.carried);
  server_.release();
}

TEST_F(HttpClientTest, RedirectionsAreLeftToTheCaller) {
  fail({.kind = FaultKind::status, .status = 307, .headers = "Location: http://elsewhere/x\r\n"});
  const HttpAnswer answer = client_->get(range(0, out_));
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(answer.header("location"), "http://elsewhere/x");
  EXPECT_EQ(server_.requests(), 1);
}

TEST_F(HttpClientTest, SendsWhatItIsToldAndLittleElse) {
  HttpRequest request;
  request.url = server_.url("/a/../b/./c%20d?list=1");
  request.headers = {{"X-Text", "some text"}, {"X-Empty", ""}};
  client_->get(request);
  request.method = "POST";
  request.body = std::string(2'000'000, 'b');
  const HttpAnswer posted = client_->get(request);
  EXPECT_EQ(posted.body, request.body);
  request.method = "PUT";
  request.body = "";
  client_->get(request);
  request.method = "HEAD";
  request.url = server_.url("/object");
  const HttpAnswer head = client_->get(request);
  EXPECT_TRUE(head.complete);
  EXPECT_EQ(head.header("content-length"), "1000000");

  const std::vector<SeenRequest> seen = server_.seen();
  ASSERT_EQ(seen.size(), 4u);
  const char* methods[] = {"GET", "POST", "PUT", "HEAD"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(seen[i].method, methods[i]);
    std::map<std::string, std::string> headers = seen[i].headers;
    EXPECT_THAT(headers["user-agent"], ::testing::StartsWith("stoker/"));
    EXPECT_EQ(headers["x-text"], "some text");
    EXPECT_EQ(headers.count("x-empty"), 1u);
    for (const char* name :
         {"user-agent", "x-text", "x-empty", "host", "accept", "content-length"}) {
      headers.erase(name);
    }
    EXPECT_TRUE(headers.empty()) << methods[i] << ": " << headers.begin()->first;
  }
  EXPECT_EQ(seen[0].path, "/a/../b/./c%20d?list=1");
}

TEST_F(HttpClientTest, KeepsItsConnections) {
  for (int i = 0; i < 20; ++i) client_->get(range(i, out_));
  EXPECT_EQ(server_.connections(), 1);
}

// The system says again and again that such a connection has ended, as long as anybody asks: the
// client's thread would never be asleep for long. A forked process keeps the connection open when
// the client closes it.
TEST_F(HttpClientTest, AConnectionThatItsServerEndsWhileItRestsCostsNothing) {
  std::vector<pid_t> forked;
  for (int i = 0; i < 4; ++i) {
    ObjectServer ending;
    ending.put("/object", object_, kEtag);
    HttpRequest request = range(0, out_);
    request.url = ending.url("/object");
    if (i % 2 == 0) request.out = {};  // on libcurl's connection
    EXPECT_TRUE(client_->get(request).complete);
    if (i < 2) continue;
    forked.push_back(fork());
    if (forked.back() == 0) {
      alarm(120);  // ends it if the test is killed
      for (;;) pause();
    }
  }
  EXPECT_TRUE(wait_until([] {
    for (int look = 0; look < 300; ++look) {
      if (!others_are_asleep()) return false;
    }
    return true;
  }));
  EXPECT_TRUE(client_->get(range(0, out_)).complete);
  for (const pid_t child : forked) {
    ASSERT_GT(child, 0);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST_F(HttpClientTest, AProgramThatIsStartedHasNoConnection) {
  HttpRequest request = range(0, out_);
  EXPECT_TRUE(client_->get(request).complete);
  request.out = {};
  EXPECT_TRUE(client_->get(request).complete);
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (server_.url("").ends_with(":" + std::to_string(ntohs(peer.sin_port)))) {
      ++found;
      EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    }
  }
  EXPECT_EQ(found, server_.connections());
}

TEST_F(HttpClientTest, OpensNoMoreConnectionsThanItMay) {
  const std::unique_ptr<HttpClient> client = make_http_client(3);
  fail({.waits = true});
  std::vector<std::vector<uint8_t>> outs(20, std::vector<uint8_t>(1000));
  std::atomic<int> left = 20;
  std::promise<void> ended;
  for (size_t i = 0; i < outs.size(); ++i) {
    client->start(range(static_cast<int64_t>(i), outs[i]), [&](const HttpAnswer& answer) {
      EXPECT_TRUE(answer.complete);
      if (--left == 0) ended.set_value();
    });
  }
  server_.wait_for_stalled(3);
  EXPECT_EQ(server_.requests(), 3);
  server_.release();
  ended.get_future().get();
  EXPECT_EQ(server_.connections(), 3);
  for (size_t i = 0; i < outs.size(); ++i) EXPECT_TRUE(is_right(static_cast<int64_t>(i), outs[i]));
}

TEST_F(HttpClientTest, AConnectionThatRestsGivesWayToOneToAnotherServer) {
  ObjectServer other;
  other.put("/object", object_, kEtag);
  const std::unique_ptr<HttpClient> client = make_http_client(2);
  for (int i = 0; i < 4; ++i) {
    HttpRequest request = range(i, out_);
    if (i % 2 == 1) request.url = other.url("/object");
    EXPECT_TRUE(client->get(request).complete);
    EXPECT_TRUE(is_right(i, out_));
  }
  EXPECT_EQ(server_.connections(), 2);
  EXPECT_EQ(other.connections(), 2);
}

// libcurl asks anew, and has all later requests to this server.
TEST_F(HttpClientTest, AnAnswerInAnUnusualFormIsAskedForAnewOnce) {
  fail({.kind = FaultKind::chunked});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client_->get(range(i, out_)).complete);
    EXPECT_TRUE(is_right(i, out_));
    EXPECT_EQ(server_.requests(), i + 2);
  }
}

TEST_F(HttpClientTest, AddressesOfEveryKindAreRead) {
  const std::string rest = server_.url("/object").substr(std::string("http://").size());
  for (const std::string& url : {"http://" + rest, "HTTP://" + rest, "http://me:secret@" + rest,
                                 "http://" + rest + "#part"}) {
    HttpRequest request = range(7, out_);
    request.url = url;
    const HttpAnswer answer = client_->get(request);
    EXPECT_TRUE(answer.complete && is_right(7, out_)) << url << answer.problem;
  }
}

int64_t length_of(std::string_view lines) {
  HttpAnswer answer;
  return answer.take_head(lines) ? answer.plain_length() : -2;
}

TEST(HttpAnswer, ReadsAHead) {
  HttpAnswer answer;
  ASSERT_TRUE(answer.take_head("HTTP/1.1 206 \r\nContent-Length: 7\r\neTag:\t\"a\" \r\nX:\r\n"));
  EXPECT_EQ(answer.status, 206);
  EXPECT_EQ(answer.plain_length(), 7);
  EXPECT_EQ(answer.header("etag"), "\"a\"");
  EXPECT_EQ(answer.header("x"), "");
}

TEST(HttpAnswer, RefusesAHeadThatIsNotWrittenAsMostAre) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& lines :
       {std::string(), std::string("\r\n"), std::string("a: b\r\n"),
        std::string("HTTP/1.0 200 OK\r\n"), std::string("HTTP/1.1 20 OK\r\n"),
        std::string("HTTP/1.1 2000 OK\r\n"), std::string("HTTP/1.1 -20 OK\r\n"),
        std::string("HTTP/2 200\r\n"), std::string("HTTP/1.1 200 OK"), ok + ok, ok + "a\r\n",
        ok + " a: b\r\n", ok + "a : b\r\n", ok + ": b\r\n", ok + "a: b"}) {
    EXPECT_EQ(length_of(lines), -2) << lines;
  }
}

TEST(HttpAnswer, HasALengthOnlyIfNothingElseSaysOne) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(length_of(ok + "Content-Length: 0\r\n"), 0);
  EXPECT_EQ(length_of(ok + "Content-Length: 9223372036854775807\r\n"), INT64_MAX);
  for (const char* lines :
       {"", "Content-Length: -1\r\n", "Content-Length: +1\r\n", "Content-Length: 1 2\r\n",
        "Content-Length:\r\n", "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(length_of(ok + lines), -1) << lines;
  }
  for (const char* status : {"100", "101", "204", "304"}) {
    EXPECT_EQ(length_of("HTTP/1.1 " + std::string(status) + " x\r\nContent-Length: 1\r\n"), -1);
  }
}

TEST_F(HttpClientTest, ACancelledRequestNeitherWritesNorCalls) {
  fail({.kind = FaultKind::stall});
  const HttpClient::Ticket ticket =
      client_->start(range(0, out_), [](const HttpAnswer&) { FAIL() << "it was cancelled"; });
  server_.wait_for_stalled(1);
  client_->cancel(ticket);
  const std::vector<uint8_t> before = out_;
  server_.release();
  client_->cancel(ticket);  // for the second time: nothing
  std::vector<uint8_t> other(1000);
  EXPECT_TRUE(client_->get(range(5, other)).complete);
  EXPECT_EQ(out_, before);
}

TEST_F(HttpClientTest, ARequestIsCancelledBeforeItHasBegun) {
  // The client's thread is kept busy, so that it cannot begin.
  std::promise<void> is_busy, may_go_on;
  client_->after(milliseconds(0), [&] {
    is_busy.set_value();
    may_go_on.get_future().get();
  });
  is_busy.get_future().get();
  const HttpClient::Ticket ticket =
      client_->start(range(0, out_), [](const HttpAnswer&) { FAIL() << "it was cancelled"; });
  client_->cancel(ticket);
  may_go_on.set_value();
  std::vector<uint8_t> other(1000);
  EXPECT_TRUE(client_->get(range(5, other)).complete);
  EXPECT_EQ(server_.requests(), 1);
}

// A cancel() from outside waits for a callback that runs; one from a callback does not wait.
TEST_F(HttpClientTest, CancelWaitsForTheCallback) {
  std::promise<void> has_begun;
  std::atomic<bool> has_ended = false;
  const HttpClient::Ticket ticket = client_->start(range(0, out_), [&](const HttpAnswer&) {
    has_begun.set_value();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    has_ended = true;
  });
  has_begun.get_future().get();
  client_->cancel(ticket);
  EXPECT_TRUE(has_ended);
}

TEST_F(HttpClientTest, ACallbackMayCancelAndStart) {
  server_.set_script([](const SeenRequest& request) {
    return Fault{.kind = request.number == 0 ? FaultKind::stall : FaultKind::none};
  });
  const HttpClient::Ticket stalled =
      client_->start(range(0, out_), [](const HttpAnswer&) { FAIL() << "it was cancelled"; });
  server_.wait_for_stalled(1);
  std::vector<uint8_t> second(1000), third(1000);
  std::promise<bool> ended;
  client_->start(range(7, second), [&](const HttpAnswer&) {
    client_->cancel(stalled);
    const auto never = [](const HttpAnswer&) { FAIL() << "it was cancelled"; };
    client_->cancel(client_->start(range(8, out_), never));
    client_->start(range(9, third),
                   [&](const HttpAnswer& answer) { ended.set_value(answer.complete); });
  });
  EXPECT_TRUE(ended.get_future().get());
  EXPECT_TRUE(is_right(7, second));
  EXPECT_TRUE(is_right(9, third));
  server_.release();
}

TEST_F(HttpClientTest, TimersRunInOrderOnItsThread) {
  std::vector<int> order;
  std::promise<void> ended;
  std::thread::id timers, requests;
  client_->after(milliseconds(0), [&] {
    client_->after(milliseconds(3), [&] {
      order.push_back(3);
      ended.set_value();
    });
    client_->after(milliseconds(1), [&] { order.push_back(1); });
    client_->after(milliseconds(2), [&] { order.push_back(2); });
    client_->after(std::chrono::hours(1), [] { FAIL() << "too early"; });
    timers = std::this_thread::get_id();
  });
  ended.get_future().get();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  std::promise<void> answered;
  client_->start(range(0, out_), [&](const HttpAnswer&) {
    requests = std::this_thread::get_id();
    answered.set_value();
  });
  answered.get_future().get();
  EXPECT_EQ(timers, requests);
}

TEST_F(HttpClientTest, EndsWithRequestsUnderWay) {
  fail({.kind = FaultKind::stall});
  std::vector<std::vector<uint8_t>> outs(20, std::vector<uint8_t>(100'000));
  for (auto& out : outs) {
    client_->start(range(0, out), [](const HttpAnswer&) { FAIL() << "its client has ended"; });
  }
  client_->after(std::chrono::seconds(1), [] { FAIL() << "its client has ended"; });
  server_.wait_for_stalled(8);
  client_.reset();
  server_.release();
}

TEST_F(HttpClientTest, SaysWhereItCouldNotConnect) {
  const HttpAnswer refused = client_->get({.url = "http://127.0.0.1:9/object?key=hidden"});
  EXPECT_EQ(refused.status, 0);
  EXPECT_EQ(refused.problem, "could not connect to 127.0.0.1:9: Connection refused");
  const HttpAnswer nowhere = client_->get({.url = "http://no-such-host.invalid/object"});
  EXPECT_THAT(nowhere.problem, HasSubstr("no-such-host.invalid: "));
  const HttpAnswer file = client_->get({.url = "file:///etc/passwd"});
  EXPECT_EQ(file.status, 0);
  EXPECT_EQ(file.body, "");
}

// Many requests at once, from several threads.
TEST_F(HttpClientTest, ManyAtOnce) {
  constexpr int kThreads = 4, kEach = 250;
  std::vector<std::vector<uint8_t>> outs(kThreads * kEach);
  std::atomic<int> left = kThreads * kEach, complete = 0;
  std::promise<void> ended;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t * kEach; i < (t + 1) * kEach; ++i) {
        outs[i].resize(static_cast<size_t>(1 + i * 37 % 5000));
        client_->start(range(i * 900, outs[i]), [&](const HttpAnswer& answer) {
          complete += answer.complete ? 1 : 0;
          if (--left == 0) ended.set_value();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ended.get_future().get();
  EXPECT_EQ(complete, kThreads * kEach);
  for (int i = 0; i < kThreads * kEach; ++i) EXPECT_TRUE(is_right(i * 900, outs[i])) << i;
  EXPECT_LE(server_.connections(), 8);
}

// Sets a variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_F(HttpClientTest, UsesTheProxyOfTheEnvironment) {
  client_.reset();
  server_.put("http://no-such-host.invalid/object", object_, kEtag);
  const Variable proxy("http_proxy", server_.url(""));
  const std::unique_ptr<HttpClient> client = make_http_client(1);
  HttpRequest request = range(10, out_);
  request.url = "http://no-such-host.invalid/object";
  const HttpAnswer answer = client->get(request);
  EXPECT_EQ(answer.status, 206) << answer.problem;
  EXPECT_TRUE(is_right(10, out_));
}

TEST_F(HttpClientTest, ShowsNoSecret) {
  client_.reset();
  fail({.kind = FaultKind::cut});
  const auto problem_of = [&](const std::string& url) {
    const std::unique_ptr<HttpClient> client = make_http_client(1);
    HttpRequest request = range(0, out_);
    request.headers.emplace_back("Authorization", "AWS4 hidden");
    request.url = url;
    const std::string problem = client->get(request).problem;
    EXPECT_NE(problem, "") << url;
    return problem;
  };
  for (const std::string& url :
       {server_.url("/object?X-Amz-Signature=hidden"), std::string("http://127.0.0.1:9/?hidden"),
        std::string("http://me:hidden@127.0.0.1:9/"), std::string("http://127.0.0.1:99999/?hidden"),
        std::string("http://[bad/?hidden"), std::string("http:// x/?hidden"),
        std::string("hidden://host/?hidden").substr(3), std::string("http:///?hidden")}) {
    EXPECT_THAT(problem_of(url), Not(HasSubstr("hidden"))) << url;
  }
  for (const char* proxy : {"http://me:hidden@127.0.0.1:9", "http://me:hidden@no-such-host.invalid",
                            "strange://me:hidden@127.0.0.1:9", "http://me:hidden@[bad:1"}) {
    const Variable variable("http_proxy", proxy);
    EXPECT_THAT(problem_of("http://127.0.0.2:9/object"), Not(HasSubstr("hidden"))) << proxy;
  }
}

TEST(HttpClientDeathTest, WithoutThePluginItSaysWhatToInstall) {
  ::testing::FLAGS_gtest_death_test_style =
      "threadsafe";  // a new process, which has opened nothing
  const auto report = [] {
    setenv("STOKER_PLUGIN_DIR", "/nowhere", 1);
    try {
      make_http_client(1);
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    std::_Exit(7);
  };
  EXPECT_EXIT(report(), ::testing::ExitedWithCode(7),
              "data in object stores needs libcurl and OpenSSL: libstoker_curl.so is not in "
              "/nowhere .it uses libcurl4, and is built with libcurl4-openssl-dev and libssl-dev");
}

}  // namespace
}  // namespace stoker
