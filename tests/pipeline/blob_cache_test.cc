// The index of a data set in blobs: kept in the cache, made anew, damaged, stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/blob/index_builder.h"
#include "pipeline/source/blob/index_writer.h"
#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

// More samples than a segment, and enough to be kept in the cache.
class BlobCacheTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSamples = 150'000;

  BlobCacheTest() {
    std::string list = "path,label\n";
    for (int64_t i = 0; i < kSamples; ++i) {
      list += "p/" + std::to_string(i) + ".jpg," + std::to_string(i % 7) + "\n";
    }
    path_ = folder_.write("list.csv", list);
    settle(path_);
  }

  std::unique_ptr<Source> open() { return open_source(path_, {.cache_dir = cache_.path()}); }
  std::vector<std::string> cached() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(cache_.path())) {
      files.push_back(entry.path().string());
    }
    return files;
  }
  static void expect_all(const Source& source) {
    ASSERT_EQ(source.size(), kSamples);
    for (SampleId id = 0; id < kSamples; id += id < 131'000 ? 997 : 1) {
      ASSERT_EQ(source.name(id), "p/" + std::to_string(id) + ".jpg");
      ASSERT_EQ(source.label(id), id % 7);
    }
  }

  const TempFolder folder_, cache_;
  std::string path_;
};

TEST_F(BlobCacheTest, SmallIndexesAreNotKept) {
  const std::string path = folder_.write("small.csv", "path,label\na.jpg,1\n");
  settle(path);
  EXPECT_EQ(open_source(path, {.cache_dir = cache_.path()})->size(), 1);
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(BlobCacheTest, WithoutACacheFolderNothingIsLeft) {
  const fs::path temporary = fs::temp_directory_path();
  expect_all(*open_source(path_, {.cache_dir = ""}));
  expect_all(*open_source(path_, {.cache_dir = "/proc/no/such/folder"}));
  for (const auto& entry : fs::directory_iterator(temporary)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with("stoker-" + std::to_string(getpid()) + "-")) << name;
  }
}

TEST_F(BlobCacheTest, ADamagedTableIsMadeAgain) {
  open();
  const std::string index = cached()[0];
  const auto bytes = static_cast<int64_t>(fs::file_size(index));
  for (const int64_t at : {int64_t{0}, int64_t{9}, int64_t{25}, bytes - 1, bytes - 40}) {
    damage_byte(index, at);
    EXPECT_EQ(BlobIndex::open(index), nullptr) << at;
    expect_all(*open());
    EXPECT_NE(BlobIndex::open(index), nullptr) << at;
  }
  fs::resize_file(index, 20);
  expect_all(*open());
}

TEST_F(BlobCacheTest, ADamagedSegmentMakesItsSamplesBad) {
  folder_.write("p/0.jpg", "zero");
  folder_.write("p/149999.jpg", "last");
  open();
  const std::string index = cached()[0];
  damage_byte(index, sizeof(SealedHeader) + 24 * 100 + 3);
  const auto source = open();
  EXPECT_EQ(text_of(*source, 0), "error: the index of the samples is damaged; delete " + index);
  EXPECT_EQ(source->label(1), 0);
  EXPECT_EQ(source->name(1), "#1");
  EXPECT_EQ(text_of(*source, 149'999), "last");
}

// Threads lock as processes do: each opens the lock's file for itself.
TEST_F(BlobCacheTest, ThoseWhoOpenAtOnceMakeOneIndex) {
  std::atomic<int> makers = 0;
  std::vector<std::unique_ptr<Source>> sources(4);
  std::vector<std::thread> threads;
  for (auto& source : sources) {
    threads.emplace_back([&] {
      bool is_new = true;
      const auto go_on = [&](int64_t, int64_t) {
        makers += std::exchange(is_new, false) ? 1 : 0;
        return true;
      };
      source = open_source(path_, {.cache_dir = cache_.path(), .go_on = go_on});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& source : sources) expect_all(*source);
  EXPECT_EQ(makers, 1);
  EXPECT_EQ(cached().size(), 1u);  // and no lock is left
}

TEST_F(BlobCacheTest, AnotherFieldIsAnotherIndex) {
  open();
  const auto other = open_source(path_, {.label_from = "none", .cache_dir = cache_.path()});
  EXPECT_THAT(other->class_names(), IsEmpty());
  expect_all(*open());
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(BlobCacheTest, OtherClassNamesAreAnotherIndex) {
  EXPECT_EQ(open()->class_names()[3], "3");
  folder_.write("classes.txt", "a\nb\nc\nd\ne\nf\ng\n");
  EXPECT_EQ(open()->class_names()[3], "d");
}

TEST_F(BlobCacheTest, AnIndexOfOtherDataIsMadeAgain) {
  open();
  const std::string path = cached()[0];
  // With the stamps of the list that is opened, so that only its key tells it apart.
  const std::string other = folder_.write("other/list.csv", "path,label\nx,1\n");
  const std::vector<FileStamp> stamps = stamps_of(blob_set_of({path_}));
  fs::copy_file(path_, other, fs::copy_options::overwrite_existing);
  fs::last_write_time(other, fs::last_write_time(path_));
  build_index({blob_set_of({other}), {"", "none"}, {}, {}}, stamps, "key", path);
  ASSERT_EQ(BlobIndex::open(path)->table().stamps, stamps);
  expect_all(*open());
}

// Claims that no index of ours makes, though its seals hold.
TEST_F(BlobCacheTest, AForgedIndexGivesNoWrongLabelsAndReadsNothingOutside) {
  open();
  const std::string path = cached()[0];
  BlobTable table = BlobIndex::open(path)->table();
  BlobIndexWriter writer(path);
  const auto stored = static_cast<uint64_t>(BlobStorage::bytes);
  writer.add(0, 0,
             std::vector<BlobEntry>{{.place = stored, .length = 4, .label = 7},
                                    {.place = stored, .length = 4, .label = -1},
                                    {.place = uint64_t{1} << 50 | stored, .length = 4},
                                    {.place = stored, .length = 0xffffffff},
                                    {.place = 99, .length = 4, .label = 6}},
             "");
  writer.finish(std::move(table), {});
  const auto source = open();
  ASSERT_EQ(source->size(), 5);
  EXPECT_EQ(labels_of(*source), (std::vector<int>{0, 0, 0, 0, 6}));
  EXPECT_EQ(text_of(*source, 0), "path");
  const std::string damaged = "error: the index of the samples is damaged; delete " + path;
  for (const SampleId id : {2, 3, 4}) {
    EXPECT_EQ(text_of(*source, id), damaged) << id;
    EXPECT_EQ(cached_text_of(*source, id), "not cached") << id;
  }
}

TEST_F(BlobCacheTest, ABlobThatChangesMeanwhileIsAnError) {
  const BlobIndexRequest request{blob_set_of({path_}), {}, {}, {}};
  std::vector<FileStamp> stamps = stamps_of(request.set);
  const std::string index = cache_.path() + "/index";
  build_index(request, stamps, "key", index);
  ASSERT_NE(BlobIndex::open(index), nullptr);
  fs::remove(index);
  ++stamps[0].modified_ns;
  EXPECT_EQ(thrown_by<std::runtime_error>([&] { build_index(request, stamps, "key", index); }),
            path_ + ": it changed while its index was made");
  EXPECT_THAT(cached(), IsEmpty());
}

TEST_F(BlobCacheTest, MakingAnIndexCanBeStopped) {
  const auto stop = [](int64_t done, int64_t total) { return done < 0 || total < 0; };
  EXPECT_EQ(thrown_by<std::runtime_error>(
                [&] { open_source(path_, {.cache_dir = cache_.path(), .go_on = stop}); }),
            "stopped while the index was made");
  EXPECT_THAT(cached(), IsEmpty());
}

}  // namespace
}  // namespace stoker
