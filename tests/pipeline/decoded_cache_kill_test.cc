// Several processes on one cache of decoded pictures, and kill -9 at any moment: the rows are those
// without it.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "pipeline/cache/decoded_samples.h"
#include "pipeline/files/durable_file.h"
#include "tests/pipeline/decoded_cache_support.h"
#include "tests/support/child_test.h"

namespace stoker::testing {
namespace {

constexpr const char* kData = "STOKER_TEST_DECODED_DATA";
constexpr const char* kDecodedFolder = "STOKER_TEST_DECODED_FOLDER";
constexpr const char* kDecodedEpochs = "STOKER_TEST_DECODED_EPOCHS";
constexpr int64_t kDecodedBytes = int64_t{1} << 30;

// The other process: this program, with this test alone.
TEST(DecodedCacheProcess, FeedsEpochs) {
  if (std::getenv(kData) == nullptr) GTEST_SKIP() << "it is started by the tests below";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto source = open_source(std::getenv(kData), Split::all);
  const auto cache = std::make_shared<DecodedCache>(
      DecodedCacheOptions{std::getenv(kDecodedFolder), kDecodedBytes});
  feed_rows(*source, kSmall, cache, std::atof(std::getenv(kDecodedEpochs)), 2);
}

class WatchedFile {
 public:
  explicit WatchedFile(const std::string& path) : events_(inotify_init1(IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(events_, path.c_str(), IN_MODIFY), 0);
  }
  ~WatchedFile() { close(events_); }
  // Since it was watched, or since what the last call has seen.
  void wait_for_change() const {
    char events[4096];
    EXPECT_GT(::read(events_, events, sizeof events), 0);
  }

 private:
  const int events_;
};

class DecodedCacheProcessesTest : public ::testing::Test {
 protected:
  static constexpr int kSamples = 800;

  DecodedCacheProcessesTest() { pictures_.add_small(kSamples); }

  pid_t start(int epochs) const {
    return start_child_test("DecodedCacheProcess.*", {{kData, pictures_.path() + "/data"},
                                                      {kDecodedFolder, pictures_.cache_folder()},
                                                      {kDecodedEpochs, std::to_string(epochs)}});
  }
  std::shared_ptr<DecodedCache> cache() const {
    return std::make_shared<DecodedCache>(
        DecodedCacheOptions{pictures_.cache_folder(), kDecodedBytes});
  }
  // Where the one data set's seals are; it makes them.
  std::string seals() const {
    return cache()->open(*pictures_.open(), kSmall.spec(), {})->stats().folder + "/seals";
  }
  // How many pictures have one.
  static int64_t count_seals(const std::string& path) {
    const std::string bytes = read_whole_file(path);
    int64_t count = 0;
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      count += bytes.substr(at, 8) != std::string(8, '\0');
    }
    return count;
  }

  PictureFolder pictures_;
};

TEST_F(DecodedCacheProcessesTest, ThreeFillOneCacheTogether) {
  const auto source = pictures_.open();
  const pid_t first = start(3), second = start(3);
  const FedRows own = feed_rows(*source, kSmall, cache(), 3, 2);
  EXPECT_EQ(wait_for_child(first), 0);
  EXPECT_EQ(wait_for_child(second), 0);
  const FedRows plain = feed_rows(*source, kSmall, nullptr, 3, 2);
  EXPECT_EQ(own.rows, plain.rows);
  const FedRows after = feed_rows(*source, kSmall, cache(), 3, 2);
  EXPECT_EQ(after.rows, plain.rows);
  EXPECT_EQ(after.stats.cache->hits, 3 * kSamples);
}

TEST_F(DecodedCacheProcessesTest, KillsAtAnyMomentLeaveItRight) {
  constexpr int kKills = 40;
  const auto source = pictures_.open();
  const FedRows plain = feed_rows(*source, kSmall, nullptr, 1, 2);
  const std::string path = seals();
  const WatchedFile watched(path);
  std::mt19937 random(5);
  int kills = 0;
  int64_t before = 0;
  while (kills < kKills && before < kSamples - 40) {
    const pid_t child = start(1'000'000);
    // It is killed in the midst of its work: so many pictures after its first one.
    const int64_t until = before + 1 + static_cast<int64_t>(random() % 16);
    while (count_seals(path) < until) watched.wait_for_change();
    kill(child, SIGKILL);
    const int status = wait_for_child(child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ++kills;
    const int64_t now = count_seals(path);
    EXPECT_GE(now, before);
    before = now;
  }
  EXPECT_GT(kills, 3);
  // Every picture that is there is right, and the others come.
  const FedRows with = feed_rows(*source, kSmall, cache(), 1, 2);
  EXPECT_EQ(with.rows, plain.rows);
  EXPECT_GE(with.stats.cache->hits, 100);
  EXPECT_EQ(feed_rows(*source, kSmall, cache(), 1, 2).stats.cache->hits, kSamples);
}

}  // namespace
}  // namespace stoker::testing
