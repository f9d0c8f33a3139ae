// SampleCache and SampleWindow: what leaves the store, and what damage, other sizes and full disks
// and several processes do. (kept_files_test.cc kills one thread at each of its system calls.)
#include "pipeline/source/blob/sample_cache.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "pipeline/files/durable_file.h"
#include "tests/pipeline/sample_cache_support.h"
#include "tests/support/child_test.h"
#include "tests/support/object_server.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SampleCacheTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSamples = CachedData::kSamples;

  SampleCacheTest() { serve(data_); }
  void serve(const CachedData& data) {
    for (int64_t i = 0; i < CachedData::kObjects; ++i) {
      server_.put(CachedData::path(i), data.content(i), data.etag());
    }
  }
  // A cache for this share of the bytes.
  StoreOptions options(double share) const {
    return {.read_ahead_bytes = 1 << 20,
            .cache = folder_.path(),
            .cache_bytes = static_cast<int64_t>(share * static_cast<double>(data_.bytes()))};
  }
  std::unique_ptr<SampleCache> cache(const StoreOptions& options) const {
    return SampleCache::open(options, data_.samples());
  }
  // Fills a cache, and returns its sizes.
  StoredBytes fill(const StoreOptions& options) const {
    const auto window = data_.window(options);
    data_.read_epochs(*window, 1);
    return window->stored_bytes();
  }
  std::string refusal(const StoreOptions& options, const StoredSamples& samples) const {
    return message_of([&] { SampleCache::open(options, samples); });
  }
  ObjectServer server_;
  TempFolder folder_;
  const CachedData data_{server_.url("")};
};

class SharesTest : public SampleCacheTest, public ::testing::WithParamInterface<double> {};
INSTANTIATE_TEST_SUITE_P(Shares, SharesTest, ::testing::Values(0.25, 0.5, 0.75));

TEST_P(SharesTest, HitsAreTheShareAndBytesFollowTheFormulaExactly) {
  constexpr int kEpochs = 4;
  const double f = GetParam();
  const auto window = data_.window(options(f));
  const StoredBytes sizes = window->stored_bytes();
  EXPECT_EQ(sizes.samples, kSamples);
  EXPECT_EQ(sizes.bytes, data_.bytes());
  EXPECT_NEAR(sizes.share(), f, 0.001);
  EXPECT_NEAR(static_cast<double>(sizes.cache_samples) / kSamples, f, 0.005);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    data_.read_epochs(*window, 1, static_cast<uint64_t>(epoch));
    const StoreStats stats = window->stats();
    EXPECT_EQ(stats.cache_hits, epoch * sizes.cache_samples);
    EXPECT_EQ(stats.cache_hits + stats.cache_misses, (epoch + 1) * kSamples);
    EXPECT_EQ(static_cast<double>(stats.bytes), sizes.leaving(epoch + 1));
    EXPECT_EQ(stats.cache_kept_bytes, sizes.cache_bytes);
  }
  EXPECT_EQ(data_.right_samples(*cache(options(f))), sizes.cache_samples);
}

TEST_P(SharesTest, AFeedThatLooksOverTheEndsOfEpochsComesToTheSame) {
  constexpr int kEpochs = 5;
  StoreOptions small = options(GetParam());
  small.read_ahead_bytes = data_.bytes() / 100;
  const auto window = data_.window(small);
  data_.read_epochs(*window, kEpochs);
  const StoredBytes sizes = window->stored_bytes();
  const StoreStats stats = window->stats();
  const double wanted = sizes.leaving(kEpochs);
  EXPECT_NEAR(static_cast<double>(stats.bytes), wanted, 0.01 * wanted);
  EXPECT_NEAR(static_cast<double>(stats.cache_hits) / ((kEpochs - 1) * kSamples), GetParam(),
              0.005);
  EXPECT_EQ(stats.cache_hits + stats.cache_misses, kEpochs * kSamples);
}

TEST_F(SampleCacheTest, ALaterRunBeginsWithWhatIsThere) {
  const StoredBytes first = fill(options(0.5));
  EXPECT_EQ(first.kept_bytes, 0);
  const auto window = data_.window(options(0.5));
  const StoredBytes sizes = window->stored_bytes();
  EXPECT_EQ(sizes.kept_bytes, first.cache_bytes);
  for (uint64_t epoch = 0; epoch < 2; ++epoch) data_.read_epochs(*window, 1, epoch);
  EXPECT_EQ(window->stats().cache_hits, 2 * sizes.cache_samples);
  EXPECT_EQ(static_cast<double>(window->stats().bytes), sizes.leaving(2));
}

TEST_F(SampleCacheTest, WhatFitsAsAWholeIsFetchedOnce) {
  const StoredBytes sizes = fill(options(1));
  EXPECT_EQ(sizes.cache_samples, kSamples);
  const int64_t before = server_.requests();
  const auto window = data_.window(options(1));
  // An endless look-ahead of samples that take no memory.
  const auto ahead = window->look_ahead([next = SampleId{0}](SampleId& id) mutable {
    id = next++ % kSamples;
    return NextSample::found;
  });
  for (SampleId id = 0; id < 2 * kSamples; ++id) data_.read(*window, id % kSamples);
  EXPECT_EQ(window->stats().cache_hits, 2 * kSamples);
  EXPECT_EQ(server_.requests(), before);
}

TEST_F(SampleCacheTest, SamplesThatNobodyAnnouncedAreKeptAndFound) {
  const auto window = data_.window(options(1));
  for (SampleId id = 0; id < 100; ++id) data_.read(*window, id);
  for (SampleId id = 0; id < 100; ++id) data_.read(*window, id);
  EXPECT_EQ(window->stats().cache_hits, 100);
  EXPECT_EQ(window->stats().cache_misses, 100);
}

TEST_F(SampleCacheTest, AReadThatMayNotWaitDoesNotWriteEither) {
  const auto window = data_.window(options(1));
  const auto ahead = window->look_ahead([next = SampleId{0}](SampleId& id) mutable {
    id = next++;
    return id < 50 ? NextSample::found : NextSample::end;
  });
  data_.read(*window, 49);  // the last one: the others are here or come soon
  int used = 0;
  const auto use = [&](std::span<const uint8_t>) { return ++used > 0; };
  for (SampleId id = 0; id < 49; ++id) EXPECT_FALSE(window->read(id, MayWait::no, use));
  EXPECT_EQ(used, 0);
  EXPECT_EQ(window->stats().cache_kept_bytes, CachedData::length(49));
  EXPECT_TRUE(window->read(7, MayWait::yes, use));
  EXPECT_EQ(window->stats().cache_kept_bytes, CachedData::length(49) + CachedData::length(7));
}

TEST_F(SampleCacheTest, ALargerCacheGoesOnAndASmallerOneIsCut) {
  const StoredBytes half = fill(options(0.5));
  const StoredBytes more = cache(options(0.75))->sizes();
  EXPECT_EQ(more.kept_bytes, half.cache_bytes);
  EXPECT_EQ(data_.right_samples(*cache(options(0.75))), half.cache_samples);
  const StoredBytes less = cache(options(0.25))->sizes();
  EXPECT_EQ(less.kept_bytes, less.cache_bytes);
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(less.cache + "/samples")), less.cache_bytes);
  EXPECT_EQ(data_.right_samples(*cache(options(0.75))), less.cache_samples);
}

TEST_F(SampleCacheTest, DamageIsAMissThatIsMended) {
  const StoredBytes sizes = fill(options(0.5));
  damage_byte(sizes.cache + "/seals", 8 * 17 + 3);
  damage_byte(sizes.cache + "/seals", 8 * 400);
  damage_byte(sizes.cache + "/samples", sizes.cache_bytes / 2);
  damage_byte(sizes.cache + "/samples", 5);
  const auto window = data_.window(options(0.5));
  data_.read_epochs(*window, 1);
  EXPECT_EQ(window->stats().cache_hits, sizes.cache_samples - 4);
  data_.read_epochs(*window, 1);
  EXPECT_EQ(window->stats().cache_hits, 2 * sizes.cache_samples - 4);
}

TEST_F(SampleCacheTest, ZerosAndShortFilesAreMisses) {
  const StoredBytes sizes = fill(options(0.5));
  fs::resize_file(sizes.cache + "/samples", static_cast<uintmax_t>(sizes.cache_bytes / 3));
  const int64_t left = data_.right_samples(*cache(options(0.5)));
  EXPECT_GT(left, sizes.cache_samples / 4);
  EXPECT_LT(left, sizes.cache_samples / 2);
  fs::resize_file(sizes.cache + "/seals", 8 * 10 + 4);
  EXPECT_EQ(data_.right_samples(*cache(options(0.5))), 10);
  const auto window = data_.window(options(0.5));
  data_.read_epochs(*window, 2);
  EXPECT_EQ(window->stats().cache_hits, sizes.cache_samples + 10);
}

TEST_F(SampleCacheTest, OtherDataHaveAnotherFolder) {
  const StoredBytes sizes = fill(options(0.5));
  const CachedData changed(server_.url(""), 2);
  serve(changed);
  const auto window = changed.window(options(0.5));
  EXPECT_NE(window->stored_bytes().cache, sizes.cache);
  changed.read_epochs(*window, 2);  // compares every byte
  EXPECT_EQ(window->stats().cache_hits, sizes.cache_samples);

  StoredSamples other = data_.samples();
  other.root = "s3://other";
  EXPECT_NE(SampleCache::open(options(0.5), other)->folder(), sizes.cache);
  other = data_.samples();
  other.queries = " 01";
  EXPECT_NE(SampleCache::open(options(0.5), other)->folder(), sizes.cache);
  other = data_.samples();
  other.count = kSamples - 1;
  EXPECT_NE(SampleCache::open(options(0.5), other)->folder(), sizes.cache);
  other = data_.samples();
  other.locate = [&](SampleId id) {
    SampleAddress place = data_.samples().locate(id);
    if (id == 1'234) ++place.offset;
    return place;
  };
  EXPECT_NE(SampleCache::open(options(0.5), other)->folder(), sizes.cache);
  EXPECT_EQ(cache(options(0.5))->folder(), sizes.cache);
}

TEST_F(SampleCacheTest, AFolderThatSaysItIsOfOtherDataBeginsAnew) {
  const StoredBytes sizes = fill(options(0.5));
  const std::string about = sizes.cache + "/about";
  const std::string text = read_whole_file(about);
  EXPECT_THAT(text, HasSubstr(server_.url("")));
  EXPECT_THAT(text, HasSubstr("3000 samples"));
  std::ofstream(about) << text << "x";
  EXPECT_EQ(cache(options(0.5))->sizes().kept_bytes, 0);
  EXPECT_EQ(read_whole_file(about), text);
  fill(options(0.5));
  fs::remove(about);
  EXPECT_EQ(cache(options(0.5))->sizes().kept_bytes, sizes.cache_bytes);
}

TEST_F(SampleCacheTest, HalfACacheAndObjectsWithoutVersionsAreRefused) {
  EXPECT_EQ(SampleCache::open({}, data_.samples()), nullptr);
  EXPECT_THAT(refusal({.cache = folder_.path()}, data_.samples()), HasSubstr("needs cache_size"));
  EXPECT_THAT(refusal({.cache_bytes = 5}, data_.samples()), HasSubstr("needs cache, a folder"));
  EXPECT_THAT(refusal({.cache = "s3://a/b", .cache_bytes = 5}, data_.samples()),
              HasSubstr("no folder of this machine"));
  folder_.write("file");
  EXPECT_THAT(refusal({.cache = folder_.path() + "/file", .cache_bytes = 5}, data_.samples()),
              HasSubstr(folder_.path() + "/file/"));
  StoredSamples plain = data_.samples();
  const auto object = std::make_shared<const StoredObject>(StoredObject{"/a", 1, kUnversioned});
  plain.locate = [&](SampleId) { return SampleAddress{object, 0, 1}; };
  EXPECT_THAT(refusal(options(0.5), plain), HasSubstr("no version of /a"));
  EXPECT_THROW(open_source(folder_.path(), {.store = options(0.5)}), std::invalid_argument);
}

TEST_F(SampleCacheTest, ASizeForNothingKeepsNothing) {
  const StoredBytes sizes = fill({.cache = folder_.path(), .cache_bytes = 1});
  EXPECT_EQ(sizes.cache_samples, 0);
  EXPECT_EQ(sizes.leaving(3), 3.0 * static_cast<double>(data_.bytes()));
}

// ---- Disks that are full

TEST_F(SampleCacheTest, ALimitOnFilesEndsTheKeepingAndNotTheRun) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto window = data_.window(options(0.75));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  data_.read_epochs(*window, 2);
  const StoreStats stats = window->stats();
  EXPECT_THAT(stats.cache_problem, HasSubstr("File too large"));
  EXPECT_LT(stats.cache_kept_bytes, 1 << 20);
  EXPECT_EQ(stats.cache_hits + stats.cache_misses, 2 * kSamples);
  EXPECT_GT(data_.right_samples(*cache(options(0.75))), 0);
}

// A small file system in memory. As root only; else the test is left out.
class SmallDiskTest : public SampleCacheTest {
 protected:
  static constexpr int64_t kBytes = 2 << 20;

  void SetUp() override {
    disk_ = folder_.make_folder("disk");
    if (mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=2m") != 0) {
      GTEST_SKIP() << "only root may mount";
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    if (!is_mounted_) return;
    EXPECT_EQ(umount(disk_.c_str()), 0);
  }
  StoreOptions options(double share) const {
    StoreOptions there = SampleCacheTest::options(share);
    there.cache = disk_;
    return there;
  }
  void make_read_only() const {
    ASSERT_EQ(mount("", disk_.c_str(), "", MS_REMOUNT | MS_RDONLY, "size=2m"), 0);
  }

  std::string disk_;
  bool is_mounted_ = false;
};

TEST_F(SmallDiskTest, AFullDiskMakesTheCacheSmallerAndNotTheRunShorter) {
  const auto window = data_.window(options(0.75));
  ASSERT_GT(window->stored_bytes().cache_bytes, 2 * kBytes);
  data_.read_epochs(*window, 3);
  const StoreStats stats = window->stats();
  EXPECT_THAT(stats.cache_problem, HasSubstr("No space left on device"));
  EXPECT_THAT(describe_cache(stats), HasSubstr("No space left on device"));
  EXPECT_GT(stats.cache_kept_bytes, kBytes / 4);
  EXPECT_LE(stats.cache_kept_bytes, kBytes);
  EXPECT_EQ(stats.cache_hits + stats.cache_misses, 3 * kSamples);
  const int64_t kept = data_.right_samples(*cache(options(0.75)));
  EXPECT_GE(stats.cache_hits, 2 * kept);
}

TEST_F(SmallDiskTest, ADiskThatIsFullAtTheBeginningIsACacheOfNothing) {
  std::ofstream(disk_ + "/rest") << std::string(kBytes + 1, 'x');
  const auto window = data_.window(options(0.5));
  data_.read_epochs(*window, 2);
  EXPECT_EQ(window->stats().cache_hits, 0);
  EXPECT_THAT(window->stats().cache_problem, HasSubstr("No space left on device"));
}

TEST_F(SmallDiskTest, AFolderThatMayOnlyBeReadIsRead) {
  const StoreOptions small{.cache = disk_, .cache_bytes = kBytes / 2};
  const StoredBytes sizes = fill(small);
  damage_byte(sizes.cache + "/samples", 5);
  make_read_only();
  const auto window = data_.window(small);
  EXPECT_THAT(window->stored_bytes().problem, HasSubstr("Read-only file system"));
  data_.read_epochs(*window, 2);
  EXPECT_EQ(window->stats().cache_hits, 2 * (sizes.cache_samples - 1));
  EXPECT_EQ(window->stats().cache_kept_bytes, 0);
  const CachedData other(server_.url(""), 2);
  EXPECT_THAT(refusal(small, other.samples()), HasSubstr("Read-only file system"));
}

constexpr const char* kServer = "STOKER_TEST_CACHE_SERVER";
constexpr const char* kCacheFolder = "STOKER_TEST_CACHE_FOLDER";
constexpr const char* kCacheEpochs = "STOKER_TEST_CACHE_EPOCHS";
constexpr const char* kCacheSeed = "STOKER_TEST_CACHE_SEED";

// The other process: this program, with this test alone.
TEST(SampleCacheProcess, ReadsEpochs) {
  if (std::getenv(kServer) == nullptr) GTEST_SKIP() << "it is started by the tests below";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const CachedData data(std::getenv(kServer));
  const auto window = data.window(StoreOptions{.read_ahead_bytes = 1 << 18,
                                               .cache = std::getenv(kCacheFolder),
                                               .cache_bytes = data.bytes() / 2});
  data.read_epochs(*window, std::atoll(std::getenv(kCacheEpochs)),
                   static_cast<uint64_t>(std::atoll(std::getenv(kCacheSeed))));
}

class SampleCacheProcessesTest : public SampleCacheTest {
 protected:
  pid_t start(const std::string& epochs, uint64_t seed) const {
    return start_child_test("SampleCacheProcess.*", {{kServer, server_.url("")},
                                                     {kCacheFolder, folder_.path()},
                                                     {kCacheEpochs, epochs},
                                                     {kCacheSeed, std::to_string(seed)}});
  }
  StoreOptions half_cached() const {
    StoreOptions half = options(0.5);
    half.read_ahead_bytes = 1 << 18;
    return half;
  }
};

TEST_F(SampleCacheProcessesTest, ThreeReadOneCacheInDifferentOrders) {
  const StoreOptions half = half_cached();
  const pid_t first = start("3", 1), second = start("3", 2);
  const auto window = data_.window(half);
  data_.read_epochs(*window, 3, 3);
  EXPECT_EQ(wait_for_child(first), 0);
  EXPECT_EQ(wait_for_child(second), 0);
  const StoredBytes sizes = data_.window(half)->stored_bytes();
  EXPECT_EQ(sizes.kept_bytes, sizes.cache_bytes);
  EXPECT_EQ(data_.right_samples(*cache(half)), sizes.cache_samples);
  // A sample that one of them keeps spares the others a request.
  const StoredBytes alone{.bytes = sizes.bytes, .cache_bytes = sizes.cache_bytes};
  EXPECT_LE(static_cast<double>(window->stats().bytes), alone.leaving(3) + (1 << 18));
}

// KeptFiles kills one thread at each of its system calls; this kills in the midst of requests.
TEST_F(SampleCacheProcessesTest, KillsAmongRequestsLeaveItRight) {
  const StoreOptions half = half_cached();
  std::mt19937 random(5);
  int64_t most = 0;
  std::atomic<pid_t> child = 0;
  std::atomic<int64_t> requests_left = 0;
  server_.set_script([&](const SeenRequest&) {
    if (--requests_left < 0 && child > 0) kill(child, SIGKILL);
    return Fault{};
  });
  for (int kills = 0; kills < 30; ++kills) {
    requests_left = static_cast<int64_t>(random() % 60);
    child = start("1000000", random());
    const int status = wait_for_child(child);
    child = 0;
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const int64_t kept = data_.right_samples(*cache(half));
    EXPECT_GE(kept, most);
    most = kept;
  }
  server_.set_script({});
  EXPECT_GT(most, 100);
  const auto window = data_.window(half);
  data_.read_epochs(*window, 2);  // compares every byte
  EXPECT_EQ(data_.right_samples(*cache(half)), window->stored_bytes().cache_samples);
}

}  // namespace
}  // namespace stoker
