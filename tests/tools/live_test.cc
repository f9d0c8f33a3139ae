// A run while it runs: the figures, their files and forms, a scrape.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/support/temp_folder.h"
#include "tests/support/wait_until.h"
#include "tests/tools/cli_harness.h"
#include "tools/command/command.h"
#include "tools/live/metrics_server.h"
#include "tools/live/monitor.h"
#include "tools/live/status.h"
#include "tools/live/view.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

LiveStatus some_status() {
  LiveStatus status;
  status.run = "resnet18, \"batch\" 256";
  status.process = 7;
  status.running_seconds = 61;
  status.workers = 4;
  status.io_threads = 2;
  status.ring_depth = 4;
  status.report.step = 30;
  status.report.total_steps = 120;
  status.report.steps_per_epoch = 60;
  status.report.loss = 2.5;
  status.report.feed_wait_share = 0.125;
  status.decode.items = 7680;
  status.decode.service_ns = 3'000'000'000;
  status.rings = {{.items = 30, .input_wait_ns = 500'000'000, .occupancy_sum = 45}};
  status.pace = {.samples_per_second = 900, .busy_workers = 3.5, .sample_seconds = 0.004};
  status.no_gpus = "no NVIDIA driver";
  return status;
}

TEST(LivePace, IsWhatHappenedBetweenTwoLooks) {
  FeedSample earlier, later;
  earlier.seconds = 10;
  earlier.stats.rings.resize(2);
  earlier.stats.decode = {.items = 100, .service_ns = 500'000'000};
  earlier.stats.rings[0] = {
      .items = 1, .input_wait_ns = 100'000'000, .output_wait_ns = 200'000'000, .occupancy_sum = 5};
  later = earlier;
  later.seconds = 12;
  later.stats.decode = {.items = 500, .service_ns = 3'300'000'000};
  later.stats.cached_read = {.items = 400, .service_ns = 200'000'000};  // read by workers
  later.stats.rings[0].items += 6;
  later.stats.rings[0].input_wait_ns += 1'000'000'000;
  later.stats.rings[0].occupancy_sum += 18;
  later.stats.rings[1] = {.items = 4, .output_wait_ns = 400'000'000, .occupancy_sum = 2};
  const FeedPace pace = pace_between(earlier, later);
  EXPECT_NEAR(pace.samples_per_second, 200, 1e-9);
  EXPECT_NEAR(pace.busy_workers, 1.5, 1e-9);
  EXPECT_NEAR(pace.sample_seconds, 7e-3, 1e-9);
  EXPECT_EQ(pace.read_seconds, -1);
  EXPECT_NEAR(pace.ready_batches, 2, 1e-9);
  EXPECT_NEAR(pace.consumer_wait_share, 0.25,
              1e-9);  // half of the time of one of two
  EXPECT_NEAR(pace.ring_full_share, 0.1, 1e-9);
  later.stats.rings[0].output_wait_ns += 9'000'000'000;  // a wait that began before `earlier`
  EXPECT_NEAR(pace_between(earlier, later).ring_full_share, 0.6, 1e-9);
}

TEST(LiveStatus, IsReadAsItWasWritten) {
  const TempFolder folder;
  LiveStatus status = some_status();
  status.gpus = {{.index = 1, .cuda = "cuda:0", .name = "H100", .busy_percent = 93}};
  write_live_status(folder.path(), status);
  const LiveStatus read = read_live_status(folder.path());
  EXPECT_EQ(live_lines(read), live_lines(status));
  EXPECT_EQ(prometheus_text(read), prometheus_text(status));
  EXPECT_THROW(read_live_status(folder.path() + "/none"), std::invalid_argument);
  std::ofstream(folder.path() + "/live.json") << "{\"run\":";
  EXPECT_THROW(read_live_status(folder.path()), std::runtime_error);
}

TEST(LiveView, SaysWhatIsUnknownAndWhy) {
  std::string text;
  for (const std::string& line : live_lines(some_status())) text += line + "\n";
  EXPECT_THAT(text, HasSubstr("step 30 of 120"));
  EXPECT_THAT(text, HasSubstr("waiting 12.5%"));
  EXPECT_THAT(text, HasSubstr("3.50 of 4 busy"));
  EXPECT_THAT(text, HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(live_line(some_status()), HasSubstr("step 30/120"));
  EXPECT_THAT(live_lines(LiveStatus{})[1], HasSubstr("no step yet"));
}

// A view that is drawn twice fits the window, in width and height, and begins at the same place.
TEST(LiveView, KeepsToASmallTerminal) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
  const winsize window{.ws_row = 5, .ws_col = 30, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(ioctl(master, TIOCSWINSZ, &window), 0);
  FILE* terminal = fopen(ptsname(master), "w");
  ASSERT_NE(terminal, nullptr);
  {
    LiveView view(terminal);
    view.show(some_status());
    view.show(some_status());
  }
  // Output arrives in pieces; with the other end closed, all of it arrives before the error.
  fclose(terminal);
  std::string drawn;
  char piece[4096];
  for (ssize_t got = 0; (got = read(master, piece, sizeof piece)) > 0;) {
    drawn.append(piece, static_cast<size_t>(got));
  }
  std::istringstream lines(drawn);
  const std::string up = "\033[4A\033[J";
  int count = 0, redrawn = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (line.back() == '\r') line.pop_back();
    if (line.rfind(up, 0) == 0) {
      line.erase(0, up.size());
      ++redrawn;
    }
    EXPECT_LE(line.size(), 30u) << line;
  }
  EXPECT_EQ(count, 2 * 4);
  EXPECT_EQ(redrawn, 1);
  close(master);
}

// Every line is a comment or a sample, and every sample follows its HELP and TYPE.
TEST(Prometheus, KeepsToTheTextFormat) {
  LiveStatus status = some_status();
  status.gpus = {{.index = 4, .cuda = "cuda:0", .name = "A \"B\"", .busy_percent = 50}};
  const std::string text = prometheus_text(status);
  const std::regex sample(
      R"(([a-z_]+)(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="([^"\\]|\\.)*")*\})? [-+0-9.e]+)");
  const std::regex comment(R"(# (HELP|TYPE) ([a-z_]+) .+)");
  std::istringstream lines(text);
  std::string line, typed;
  for (std::smatch match; std::getline(lines, line);) {
    if (std::regex_match(line, match, comment)) {
      typed = match[2];
    } else {
      ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
      EXPECT_EQ(match[1], typed);
    }
  }
  EXPECT_THAT(text, HasSubstr("\nstoker_steps_total 30\n"));
  EXPECT_THAT(text, HasSubstr("\nstoker_rows_filled_total 7680\n"));
  EXPECT_THAT(text, HasSubstr("\nstoker_fill_seconds_total 3\n"));
  EXPECT_THAT(text, HasSubstr("\nstoker_ring_empty_seconds_total{device=\"0\"} 0.5\n"));
  EXPECT_THAT(
      text,
      HasSubstr("stoker_gpu_busy_percent{gpu=\"4\",cuda=\"cuda:0\",name=\"A \\\"B\\\"\"} 50"));
  EXPECT_EQ(text.find("stoker_gpu_sm_clock_mhz{"),
            std::string::npos);  // the GPU did not report it
}

// A client of the server, connected while it lives.
class Connection {
 public:
  explicit Connection(int port, in_addr_t host = INADDR_LOOPBACK)
      : handle_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = connect(handle_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Connection() { close(handle_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }
  void ask(const std::string& request) const {
    send(handle_, request.data(), request.size(), MSG_NOSIGNAL);
  }
  // Reads until the server closes the connection.
  std::string all() const {
    std::string answer;
    char part[1024];
    for (ssize_t got; (got = recv(handle_, part, sizeof part, 0)) > 0;) {
      answer.append(part, static_cast<size_t>(got));
    }
    return answer;
  }
  bool is_open_and_silent() const {
    char byte;
    return recv(handle_, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

 private:
  const int handle_;
  bool connected_ = false;
};

// Returns what an HTTP client gets; "" if it cannot connect.
std::string get(int port, const std::string& path, in_addr_t host = INADDR_LOOPBACK) {
  const Connection client(port, host);
  if (!client.connected()) return "";
  client.ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return client.all();
}

std::string some_text() { return "a_total 1\n"; }

// Longer than any test, so that nothing happens because of a time limit.
constexpr MetricsServer::Limits kPatient{.clients = 600, .client_time = std::chrono::hours(1)};

TEST(MetricsServer, AnswersOnTheLoopbackUntilItGoes) {
  int port = 0;
  {
    const MetricsServer server(0, [] { return std::string("a_total 1\n"); });
    port = server.port();
    EXPECT_THAT(get(port, "/metrics"), HasSubstr("200 OK"));
    EXPECT_THAT(get(port, "/metrics"), HasSubstr("\r\n\r\na_total 1\n"));
    EXPECT_THAT(get(port, "/"), HasSubstr("404"));
    // 127.0.0.2 is this machine, too: a server that listens on every address answers there.
    EXPECT_EQ(get(port, "/metrics", INADDR_LOOPBACK + 1), "");
    EXPECT_THROW(MetricsServer(port, [] { return std::string(); }), std::runtime_error);
  }
  EXPECT_EQ(get(port, "/metrics"), "");
}

// The server does not wait for a client that sends a byte at a time, for minutes: it ends with the
// run.
TEST(MetricsServer, HasNoTimeForSlowClients) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::atomic<bool> ended{false};
  std::atomic<int> sent{0};
  std::thread dribble;
  const auto begin = std::chrono::steady_clock::now();
  {
    const MetricsServer server(0, [] { return std::string("a_total 1\n"); });
    address.sin_port = htons(static_cast<uint16_t>(server.port()));
    ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    dribble = std::thread([&] {
      for (int i = 0; i < 600 && !ended; ++i, be_late(std::chrono::microseconds(1000))) {
        sent += send(client, "G", 1, MSG_NOSIGNAL) == 1;
      }
    });
    EXPECT_TRUE(wait_until([&] { return sent > 2; }));  // the request is being read
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  ended = true;
  dribble.join();
  close(client);
}

// All of them stay connected while others are answered, so none of them blocks the server.
TEST(MetricsServer, AnswersBesideFiveHundredIdleConnections) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, std::min<rlim_t>(files.rlim_max, 4096));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const MetricsServer server(0, some_text, kPatient);
  std::list<Connection> idle;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(idle.emplace_back(server.port()).connected()) << i;
  idle.front().ask("GET /metr");  // and sends no more
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(get(server.port(), "/metrics"), HasSubstr("\r\n\r\na_total 1\n"));
  }
  for (const Connection& each : idle) ASSERT_TRUE(each.is_open_and_silent());
  idle.front().ask("ics HTTP/1.1\r\n\r\n");  // it was not dropped
  EXPECT_THAT(idle.front().all(), HasSubstr("a_total 1\n"));
  idle.clear();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(MetricsServer, AnswersBesideOneThatDoesNotTakeItsAnswer) {
  const std::string large(16 << 20, 'x');  // more than the sockets hold
  const MetricsServer server(
      0, [&] { return large; }, kPatient);
  const Connection slow(server.port());
  slow.ask("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_GT(get(server.port(), "/metrics").size(), large.size());
  EXPECT_GT(slow.all().size(), large.size());
}

TEST(MetricsServer, TheOldestOfTooManyGoes) {
  const MetricsServer server(0, some_text, {.clients = 3, .client_time = std::chrono::hours(1)});
  const Connection first(server.port()), second(server.port()), third(server.port());
  EXPECT_THAT(get(server.port(), "/metrics"), HasSubstr("200 OK"));
  EXPECT_EQ(first.all(), "");  // it ends
  EXPECT_TRUE(second.is_open_and_silent());
  EXPECT_TRUE(third.is_open_and_silent());
}

TEST(MetricsServer, WhoeverSaysNothingOrTooMuchIsLetGo) {
  const MetricsServer hasty(0, some_text,
                            {.clients = 600, .client_time = std::chrono::milliseconds(1)});
  const Connection silent(hasty.port());
  EXPECT_EQ(silent.all(), "");
  const MetricsServer patient(0, some_text, kPatient);
  const Connection endless(patient.port());
  endless.ask(std::string(1 << 16, 'G'));
  EXPECT_EQ(endless.all(), "");
}

TEST(Top, EndsWithOneWhereNothingIsHeardOfARun) {
  const TempFolder folder;
  LiveStatus status = some_status();
  status.unix_seconds = 1'700'000'000;
  write_live_status(folder.path(), status);
  const ProgramResult top = run_stoker({"top", folder.path()});
  EXPECT_EQ(top.exit_code, kExitFound) << top.err;
  EXPECT_THAT(top.err, HasSubstr("no news from process 7 for"));
  EXPECT_EQ(run_stoker({"top", folder.path(), "--once"}).exit_code, kExitOk);
}

// A training is scraped and watched from outside while it runs, and its last figures stay after it.
TEST(LiveTraining, IsScrapedAndWatched) {
  const TempFolder folder;
  const std::string data = folder.path() + "/shapes", out = folder.path() + "/run";
  make_small_shapes(data);
  RunningProgram training({STOKER_PROGRAM,
                           "train",
                           "--data",
                           data,
                           "--model",
                           "airnet-narrow",
                           "--batch",
                           "8",
                           "--threads",
                           "1",
                           "--workers",
                           "1",
                           "--epochs",
                           "1000",
                           "--eval-every",
                           "0",
                           "--log-interval",
                           "1",
                           "--out",
                           out,
                           "--watch",
                           "--metrics-port",
                           "0"});
  LiveStatus status;
  ASSERT_TRUE(training.wait_until(
      [&] {
        if (!std::filesystem::exists(out + "/live.json")) return false;
        status = read_live_status(out);
        return status.report.step > 0;
      },
      120));
  ASSERT_GT(status.metrics_port, 0);
  EXPECT_EQ(status.process, training.pid());
  const std::string scraped = get(status.metrics_port, "/metrics");
  EXPECT_THAT(scraped, HasSubstr("stoker_steps_total "));
  EXPECT_THAT(scraped, HasSubstr("stoker_rows_filled_total "));
  const ProgramResult top = run_stoker({"top", out, "--once"});
  EXPECT_EQ(top.exit_code, kExitOk) << top.err;
  EXPECT_THAT(top.out, HasSubstr("airnet-narrow, batch 8"));
  EXPECT_THAT(top.out, HasSubstr("running"));
  training.send(SIGTERM);
  const ProgramResult ended = training.wait();
  EXPECT_EQ(ended.exit_code, kExitSignal + SIGTERM);
  EXPECT_THAT(ended.out,
              HasSubstr("workers "));  // plain lines, because it has no terminal
  EXPECT_EQ(get(status.metrics_port, "/metrics"), "");
  EXPECT_TRUE(read_live_status(out).ended);
  EXPECT_EQ(run_stoker({"top", out}).exit_code,
            kExitOk);  // it ends with the run
  EXPECT_EQ(run_stoker({"top", data}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace stoker
