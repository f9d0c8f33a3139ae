// Several processes on one cache, and kill -9 at any moment: what the cache gives is right.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "tests/pipeline/sample_cache_support.h"
#include "tests/support/child_test.h"
#include "tests/support/object_server.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

constexpr const char* kServer = "STOKER_TEST_CACHE_SERVER";
constexpr const char* kCacheFolder = "STOKER_TEST_CACHE_FOLDER";
constexpr const char* kCacheEpochs = "STOKER_TEST_CACHE_EPOCHS";
constexpr const char* kCacheSeed = "STOKER_TEST_CACHE_SEED";

StoreOptions options_for(const std::string& folder, int64_t bytes) {
  return {.read_ahead_bytes = 1 << 18, .cache = folder, .cache_bytes = bytes / 2};
}

// The other process: this program, with this test alone.
TEST(SampleCacheProcess, ReadsEpochs) {
  if (std::getenv(kServer) == nullptr) GTEST_SKIP() << "it is started by the tests below";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const CachedData data(std::getenv(kServer));
  const auto window = data.window(options_for(std::getenv(kCacheFolder), data.bytes()));
  data.read_epochs(*window, std::atoll(std::getenv(kCacheEpochs)),
                   static_cast<uint64_t>(std::atoll(std::getenv(kCacheSeed))));
}

class SampleCacheProcessesTest : public ::testing::Test {
 protected:
  SampleCacheProcessesTest() {
    for (int64_t i = 0; i < CachedData::kObjects; ++i) {
      server_.put(CachedData::path(i), data_.content(i), data_.etag());
    }
  }

  pid_t start(int64_t epochs, uint64_t seed) {
    return start_child_test("SampleCacheProcess.*", {{kServer, server_.url("")},
                                                     {kCacheFolder, folder_.path()},
                                                     {kCacheEpochs, std::to_string(epochs)},
                                                     {kCacheSeed, std::to_string(seed)}});
  }
  StoreOptions options() const { return options_for(folder_.path(), data_.bytes()); }
  // How many samples the cache has; those that it gives are right.
  int64_t right_samples() const {
    const auto cache = SampleCache::open(options(), data_.samples());
    int64_t count = 0;
    std::unique_ptr<uint8_t[]> buffer;
    for (SampleId id = 0; id < CachedData::kSamples; ++id) {
      const auto bytes = cache->read(id, MayWait::yes, buffer);
      if (bytes.empty()) continue;
      ++count;
      EXPECT_TRUE(std::ranges::equal(bytes, data_.sample(id))) << id;
    }
    return count;
  }

  ObjectServer server_;
  TempFolder folder_;
  const CachedData data_{server_.url("")};
};

TEST_F(SampleCacheProcessesTest, ThreeReadOneCacheInDifferentOrders) {
  const pid_t first = start(3, 1), second = start(3, 2);
  const auto window = data_.window(options());
  data_.read_epochs(*window, 3, 3);
  EXPECT_EQ(wait_for_child(first), 0);
  EXPECT_EQ(wait_for_child(second), 0);
  const StoredBytes sizes = data_.window(options())->stored_bytes();
  EXPECT_EQ(sizes.kept_bytes, sizes.cache_bytes);
  EXPECT_EQ(right_samples(), sizes.cache_samples);
  // A sample that one of them keeps spares the others a request.
  const StoredBytes alone{.bytes = sizes.bytes, .cache_bytes = sizes.cache_bytes};
  EXPECT_LE(static_cast<double>(window->stats().bytes), alone.leaving(3) + (1 << 18));
}

TEST_F(SampleCacheProcessesTest, KillsAtAnyMomentLeaveItRight) {
  constexpr int kKills = 60;
  std::mt19937 random(5);
  int64_t most = 0;
  std::atomic<pid_t> child = 0;
  std::atomic<int64_t> requests_left = 0;
  server_.set_script([&](const SeenRequest&) {
    if (--requests_left < 0 && child > 0) kill(child, SIGKILL);
    return Fault{};
  });
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    // It is killed in the midst of its work: so many requests after its first one.
    requests_left = static_cast<int64_t>(random() % 60);
    child = start(1'000'000, random());
    const int status = wait_for_child(child);
    child = 0;
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const int64_t kept = right_samples();
    EXPECT_GE(kept, most);
    most = std::max(most, kept);
  }
  server_.set_script({});
  EXPECT_GT(most, 100);
  const auto window = data_.window(options());
  data_.read_epochs(*window, 2);  // compares every byte
  EXPECT_EQ(right_samples(), window->stored_bytes().cache_samples);
}

}  // namespace
}  // namespace stoker
