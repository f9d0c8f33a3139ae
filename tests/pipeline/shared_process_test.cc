// Real processes that share rows, and what may happen to them: kill -9 at any moment, SIGSTOP in
// the midst of a sample.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "pipeline/source/forwarding_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/child_test.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

constexpr const char* kName = "STOKER_TEST_SHARE_NAME";
constexpr const char* kSharedSteps = "STOKER_TEST_SHARE_STEPS";
constexpr const char* kSharedEpochs = "STOKER_TEST_SHARE_EPOCHS";
constexpr const char* kSignal = "STOKER_TEST_SHARE_SIGNAL";
constexpr const char* kSignalAt = "STOKER_TEST_SHARE_SIGNAL_AT";
constexpr const char* kReport = "STOKER_TEST_SHARE_REPORT";

LoaderOptions process_options(const std::string& name, int steps, double epochs) {
  return {.batch_size = 10,
          .seed = 9,
          .epochs = epochs,
          .feed = {.workers = 2, .seek_index = "off"},
          .digests = true,
          .share = {name, steps}};
}

// Sends its process a signal in the midst of its n-th sample: that has begun, so the block is this
// process's.
class SignallingSource final : public ForwardingSource {
 public:
  SignallingSource(const Source& source, int signal, int64_t at)
      : ForwardingSource(source), signal_(signal), left_(at) {}
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    // To this thread, which goes no further.
    if (left_.fetch_sub(1) == 1) raise(signal_);
    return ForwardingSource::read(id, buffer, bytes);
  }
  bool read_cached(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return false;
  }

 private:
  const int signal_;
  mutable std::atomic<int64_t> left_;
};

uint64_t digest_of(const std::vector<Delivered>& batches) {
  std::ostringstream text;
  for (const Delivered& batch : batches) {
    text << batch << ";";
    for (const DeliveredRow& row : batch.rows) text << row.noted << " " << row.label << ",";
  }
  return std::hash<std::string>()(text.str());
}

// The other process: this program, with this test alone. It writes what it saw to a file.
TEST(ShareProcess, Feeds) {
  if (std::getenv(kName) == nullptr) GTEST_SKIP() << "it is started by the tests below";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto files = half_cached_source();
  std::optional<SignallingSource> signalling;
  if (std::getenv(kSignal) != nullptr) {
    signalling.emplace(*files, std::atoi(std::getenv(kSignal)), std::atoi(std::getenv(kSignalAt)));
  }
  const Source& source = signalling ? static_cast<const Source&>(*signalling) : *files;
  Feed feed(source, crop_spec(),
            process_options(std::getenv(kName), std::atoi(std::getenv(kSharedSteps)),
                            std::atof(std::getenv(kSharedEpochs))));
  const auto batches = feed.all();
  const LoaderStats stats = feed.loader().stats();
  std::ofstream(std::getenv(kReport))
      << digest_of(batches) << " " << stats.decode.items << " " << stats.share.given << " "
      << stats.share.taken << " " << stats.share.alone << std::endl;
}

struct Report {
  uint64_t digest = 0;
  int64_t decoded = 0, given = 0, taken = 0, alone = 0;
};

class SharedProcesses : public ::testing::Test {
 protected:
  ~SharedProcesses() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  pid_t start(int steps, double epochs, int signal = 0, int64_t at = 0) {
    const std::string report = folder_.path() + "/" + std::to_string(started_++);
    std::vector<std::pair<std::string, std::string>> variables = {
        {kName, name_},
        {kSharedSteps, std::to_string(steps)},
        {kSharedEpochs, std::to_string(epochs)},
        {kReport, report}};
    if (signal != 0) {
      variables.emplace_back(kSignal, std::to_string(signal));
      variables.emplace_back(kSignalAt, std::to_string(at));
    }
    const pid_t child = start_child_test("ShareProcess.*", variables);
    children_.push_back(child);
    reports_[child] = report;
    return child;
  }
  int wait_for(pid_t child) {
    const int status = wait_for_child(child);
    std::erase(children_, child);
    return status;
  }
  Report report_of(pid_t child) {
    EXPECT_EQ(wait_for(child), 0);
    Report report;
    std::ifstream(reports_[child]) >> report.digest >> report.decoded >> report.given >>
        report.taken >> report.alone;
    return report;
  }
  std::vector<Delivered> expected(double epochs) const {
    LoaderOptions alone = process_options("", 8, epochs);
    return Feed(*source_, crop_spec(), alone).all();
  }
  Feed feed(int steps, double epochs) const {
    return Feed(*source_, crop_spec(), process_options(name_, steps, epochs));
  }
  bool is_there() const {
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().string().ends_with("-" + name_)) return true;
    }
    return false;
  }

  const std::string name_ = "process-test-" + std::to_string(getpid());
  const std::unique_ptr<FakeSource> source_ = half_cached_source();
  TempFolder folder_;
  int started_ = 0;
  std::vector<pid_t> children_;
  std::map<pid_t, std::string> reports_;
};

TEST_F(SharedProcesses, TwoAndThreeDecodeEachRowOnce) {
  constexpr double kAll = 4;
  const auto alone = expected(kAll);
  const int64_t rows = 10 * static_cast<int64_t>(alone.size());
  for (const int others : {1, 2}) {
    std::vector<pid_t> children;
    for (int i = 0; i < others; ++i) children.push_back(start(100, kAll));
    Feed own = feed(100, kAll);
    // They need not begin together: this one goes on when all of them are there.
    EXPECT_EQ(own.all(), alone);
    const ShareStats stats = own.loader().stats().share;
    int64_t given = stats.given, decoded = own.loader().stats().decode.items, lost = stats.alone;
    for (const pid_t child : children) {
      const Report report = report_of(child);
      EXPECT_EQ(report.digest, digest_of(alone));
      EXPECT_EQ(report.given + report.taken + report.alone, rows);
      given += report.given;
      decoded += report.decoded;
      lost += report.alone;
    }
    EXPECT_EQ(given, rows);
    EXPECT_EQ(decoded, rows + lost);
    own.destroy();
    EXPECT_FALSE(is_there());
  }
}

// A process kills itself in the midst of a sample, while its other threads are anywhere. This one
// waits for the kill before it goes on, or goes on meanwhile.
TEST_F(SharedProcesses, KillsAtAnyMomentChangeNothing) {
  constexpr int kKills = 60;
  const auto alone = expected(4);
  std::mt19937 random(5);
  int64_t taken = 0, taken_over = 0;
  for (int number = 0; number < kKills; ++number) {
    Feed own = feed(8, 4);
    std::vector<Delivered> batches = own.take(static_cast<int64_t>(random() % 8));
    const pid_t child = start(8, -1, SIGKILL, 1 + static_cast<int64_t>(random() % 60));
    const bool waits = number % 2 == 0;
    int status = 0;
    if (waits) status = wait_for(child);
    for (Delivered& batch : own.all()) batches.push_back(std::move(batch));
    if (!waits) status = wait_for(child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(batches, alone) << number;
    taken += own.loader().stats().share.taken;
    taken_over += own.loader().stats().share.taken_over;
  }
  EXPECT_FALSE(is_there());
  EXPECT_GT(taken, 0);
  EXPECT_GT(taken_over, 0);
}

// All members die, and the share begins anew.
TEST_F(SharedProcesses, ALeftOverShareBeginsAnew) {
  const pid_t child = start(8, -1);
  while (!is_there()) usleep(1000);
  kill(child, SIGKILL);
  wait_for(child);
  EXPECT_TRUE(is_there());
  LoaderOptions other = process_options(name_, 5, 4);
  other.seed = 10;
  {
    Feed own(*source_, crop_spec(), other);
    other.share = {};
    EXPECT_EQ(own.all(), Feed(*source_, crop_spec(), other).all());
  }
  EXPECT_FALSE(is_there());
}

TEST_F(SharedProcesses, AProcessThatIsStoppedStopsNobodyAndGoesOnLater) {
  const auto alone = expected(4);
  for (const int steps : {2, 100}) {
    const pid_t child = start(steps, 4, SIGSTOP, 11);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
    ASSERT_TRUE(WIFSTOPPED(status));
    {
      Feed own = feed(steps, 4);
      EXPECT_EQ(own.all(), alone);
      if (steps == 100) {
        EXPECT_GE(own.loader().stats().share.taken_over, 1);
      }
      // Its block has been decoded by this process, and in the shorter ring written over.
      kill(child, SIGCONT);
      EXPECT_EQ(report_of(child).digest, digest_of(alone));
    }
    EXPECT_FALSE(is_there());
  }
}

TEST_F(SharedProcesses, AForkedChildOfAMemberIsNone) {
  Feed own = feed(8, 4);
  std::vector<Delivered> batches = own.take(3);
  const pid_t forked = fork();
  if (forked == 0) {
    pause();  // with all that it has of the member
    _exit(0);
  }
  children_.push_back(forked);
  for (Delivered& batch : own.all()) batches.push_back(std::move(batch));
  EXPECT_EQ(batches, expected(4));
  own.destroy();
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace stoker::testing
