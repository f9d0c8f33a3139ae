// Seek indexes that a Loader makes on its way through the first epoch: used from the second, kept
// for the next run, shared by processes, and without any influence on pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <thread>

#include "decode/jpeg/seek_index.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/seek_index/indexes.h"
#include "pipeline/seek_index/recorded.h"
#include "pipeline/source/forwarding_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/cache_folder.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

constexpr int kRecordedSamples = 20;

// A file that is large enough for places to be noted.
Bytes large_jpeg(uint32_t seed) {
  JpegKind kind{.quality = 97};
  return make_jpeg({240, 200}, kind, seed);
}

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

class SeekRecordingTest : public ::testing::Test {
 protected:
  SeekRecordingTest() {
    for (int i = 0; i < kRecordedSamples; ++i) write(i, static_cast<uint32_t>(i) + 1);
  }

  void write(int i, uint32_t seed) {
    const std::string name = std::to_string(100 + i) + ".jpg";
    folder_.write("data/c" + std::to_string(i % 2) + "/" + name, text(large_jpeg(seed)));
  }
  std::unique_ptr<Source> open() const { return open_source(folder_.path() + "/data", Split::all); }
  std::string path() const { return default_seek_index_path(*open()); }

  LoaderOptions options(double epochs, int workers = 2) const {
    return {.batch_size = 5,
            .epochs = epochs,
            .feed = {.workers = workers, .decode = {.pixels = PixelPolicy::fast}},
            .digests = true};
  }

  std::vector<Delivered> rows(const LoaderOptions& options) {
    ::testing::internal::CaptureStderr();
    {
      const auto source = open();
      Feed feed(*source, crop_spec(), options);
      delivered_ = feed.all();
      stats_ = feed.loader().stats();
    }
    warnings_ = ::testing::internal::GetCapturedStderr();
    return delivered_;
  }
  std::vector<Delivered> plain_rows(LoaderOptions options) {
    options.feed.seek_index = "off";
    return rows(options);
  }

  TempFolder folder_;
  const CacheFolder cache_{folder_.path() + "/cache"};
  std::vector<Delivered> delivered_;
  LoaderStats stats_;
  std::string warnings_;
};

TEST_F(SeekRecordingTest, TheSecondEpochUsesWhatTheFirstLeft) {
  for (const int workers : {0, 2}) {
    std::filesystem::remove_all(folder_.path() + "/cache");
    const auto plain = plain_rows(options(4, workers));
    EXPECT_EQ(stats_.seek_recorded, 0);
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_EQ(rows(options(4, workers)), plain);
    EXPECT_EQ(warnings_, "");
    EXPECT_EQ(stats_.seek_recorded, kRecordedSamples);
    // Three epochs; large crops use none. Workers read ahead, perhaps before there is an index.
    if (workers == 0) {
      EXPECT_GT(stats_.seek_index.used, kRecordedSamples);
    }
    EXPECT_EQ(stats_.seek_index.refused, 0);

    // The next run finds them, also for a single epoch.
    const auto once = plain_rows(options(1, workers));
    EXPECT_EQ(rows(options(1, workers)), once);
    EXPECT_EQ(stats_.seek_recorded, 0);
    EXPECT_GT(stats_.seek_index.used, kRecordedSamples / 2);
  }
}

TEST_F(SeekRecordingTest, NothingIsRecordedWithoutASecondEpochOrForAChosenFile) {
  rows(options(1));
  EXPECT_EQ(stats_.seek_recorded, 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
  const std::string chosen = folder_.path() + "/chosen.bin";
  { SeekIndexWriter(chosen).finish(); }
  const auto size = std::filesystem::file_size(chosen);
  LoaderOptions with_file = options(3);
  with_file.feed.seek_index = chosen;
  rows(with_file);
  EXPECT_EQ(stats_.seek_recorded, 0);
  EXPECT_EQ(std::filesystem::file_size(chosen), size);
  // Nor for one beside the data.
  std::filesystem::rename(chosen, folder_.path() + "/data/" + kSeekIndexName);
  rows(options(3));
  EXPECT_EQ(stats_.seek_recorded, 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

class SizedSource final : public ForwardingSource {
 public:
  SizedSource(const Source& source, int64_t size) : ForwardingSource(source), info_(source.info()) {
    info_.size = size;
  }
  const SourceInfo& info() const override { return info_; }

 private:
  SourceInfo info_;
};

// The table of a source of any size would take too much memory.
TEST_F(SeekRecordingTest, NothingIsRecordedOfTooManySamples) {
  const auto source = open();
  EXPECT_TRUE(SeekIndexes(SizedSource(*source, kMaxRecordedSamples), "auto", true).records());
  EXPECT_FALSE(SeekIndexes(SizedSource(*source, kMaxRecordedSamples + 1), "auto", true).records());
}

// Files that changed since get new indexes, and the others keep theirs.
TEST_F(SeekRecordingTest, AStaleIndexIsMadeAnew) {
  rows(options(3));
  for (int i = 0; i < kRecordedSamples / 2; ++i) write(i, 1000 + static_cast<uint32_t>(i));
  const auto plain = plain_rows(options(3));
  EXPECT_EQ(rows(options(3)), plain);
  EXPECT_EQ(warnings_, "");
  EXPECT_GT(stats_.seek_index.refused, 0);
  const auto once = plain_rows(options(1));
  EXPECT_EQ(rows(options(1)), once);
  EXPECT_EQ(stats_.seek_index.refused, 0);
  EXPECT_EQ(warnings_, "");
}

// A file of an older version is replaced.
TEST_F(SeekRecordingTest, AnOlderFileIsReplaced) {
  SealedHeader old(kSeekFileKind);
  old.version = 1;
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  folder_.write(std::filesystem::relative(path(), folder_.path()).string(),
                std::string(reinterpret_cast<const char*>(&old), sizeof old));
  rows(options(2));
  EXPECT_THAT(warnings_, HasSubstr("older version"));
  EXPECT_EQ(stats_.seek_recorded, kRecordedSamples);
  rows(options(1));
  EXPECT_EQ(warnings_, "");
  EXPECT_GT(stats_.seek_index.used, 0);
}

TEST_F(SeekRecordingTest, ItsMemoryIsPlanned) {
  const auto source = open();
  const auto planned = [&](const std::string& seek_index) {
    LoaderOptions with = options(2);
    with.feed.seek_index = seek_index;
    Feed feed(*source, crop_spec(), with);
    return feed.loader().memory_plan().total_bytes();
  };
  EXPECT_GE(planned("auto"), planned("off") + 8 * kRecordedSamples + kMaxRowIndexBytes);
}

// A folder for the cache that cannot be made costs nothing but the indexes.
TEST_F(SeekRecordingTest, WithoutAPlaceForTheFileTheFeedGoesOn) {
  setenv("XDG_CACHE_HOME", "/proc/no/such/place", 1);
  const auto plain = plain_rows(options(2));
  EXPECT_EQ(rows(options(2)), plain);
  EXPECT_EQ(warnings_, "");
  EXPECT_EQ(stats_.seek_recorded, 0);
}

// Imitates a full disk: no file may grow beyond a few indexes.
TEST_F(SeekRecordingTest, AFullDiskIsReportedAndTheFeedGoesOn) {
  const auto plain = plain_rows(options(3));
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{500, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const auto full = rows(options(3));
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(full, plain);
  EXPECT_LT(stats_.seek_recorded, kRecordedSamples);
  EXPECT_GT(stats_.seek_recorded, 0);
  EXPECT_THAT(warnings_, HasSubstr("no more seek indexes are recorded: cannot write in "));
  EXPECT_EQ(warnings_.find("no more"), warnings_.rfind("no more")) << warnings_;
}

TEST_F(SeekRecordingTest, WhatCannotBeSavedIsReported) {
  std::filesystem::create_directories(path());
  rows(options(2));
  EXPECT_EQ(stats_.seek_recorded, kRecordedSamples);
  EXPECT_THAT(warnings_,
              HasSubstr("the seek indexes of this run are lost: cannot write " + path()));
}

Bytes index_number(int number) { return Bytes(static_cast<size_t>(20 + number), uint8_t(number)); }

std::vector<int> samples_with_index(const Source& source, const std::string& path) {
  std::string problem;
  const auto file = SeekIndexFile::open(path, problem);
  std::vector<int> found;
  Bytes buffer;
  for (SampleId id = 0; file && id < source.size(); ++id) {
    const std::span<const uint8_t> index = file->read(source.name(id), buffer).index;
    if (index.empty()) continue;
    EXPECT_EQ(Bytes(index.begin(), index.end()), index_number(static_cast<int>(id)));
    found.push_back(static_cast<int>(id));
  }
  return found;
}

// Each of several processes sees its part of an epoch.
TEST_F(SeekRecordingTest, WhatSeveralSaveAtOnceIsJoined) {
  const auto source = open();
  constexpr int kSavers = 5;
  std::vector<std::thread> savers;
  for (int s = 0; s < kSavers; ++s) {
    savers.emplace_back([&, s] {
      RecordedIndexes recorded(folder_.path() + "/cache/stoker", source->size());
      for (int id = s; id < kRecordedSamples; id += kSavers) {
        EXPECT_TRUE(recorded.add(id, {{}, Bytes(3, uint8_t(255))}));
        EXPECT_TRUE(recorded.add(id, {{}, index_number(id)}));  // a longer one replaces it
      }
      EXPECT_EQ(recorded.count(), kRecordedSamples / kSavers);
      recorded.save(*source, path());
    });
  }
  for (std::thread& saver : savers) saver.join();
  EXPECT_EQ(samples_with_index(*source, path()).size(), size_t{kRecordedSamples});
  // Nothing but the lists and the file is left in the folder.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/cache/stoker")) {
    files += entry.path().string().starts_with(path());
  }
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace stoker::testing
