// The file of seek indexes: found by names; a Loader delivers the same with it and without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "decode/jpeg/seek_index.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/forwarding_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kFileSamples = 24;

// Writes the indexes of every sample except the last, whose file came later.
void write_indexes(const Source& source, const std::string& path) {
  SeekIndexWriter writer(path);
  SeekIndexBuilder builder;
  Bytes buffer, index;
  for (SampleId id = 0; id < source.size() - 1; ++id) {
    std::span<const uint8_t> bytes;
    ASSERT_TRUE(source.read(id, buffer, bytes).ok);
    ASSERT_TRUE(builder.build(bytes, id % 2 == 0 ? SeekStep::row : SeekStep::eight, index));
    writer.add(source.name(id), {source.storage().stamp(id), index});
  }
  writer.finish();
}

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

LoaderOptions fast(const std::string& seek_index) {
  return {.batch_size = 5,
          .epochs = 2,
          .feed = {.workers = 2, .decode = {.pixels = PixelPolicy::fast}, .seek_index = seek_index},
          .digests = true};
}

class SeekIndexFileTest : public ::testing::Test {
 protected:
  std::vector<Delivered> rows(const LoaderOptions& options, LoaderStats& stats) {
    ::testing::internal::CaptureStderr();
    Feed feed(*source_, crop_spec(), options);
    std::vector<Delivered> all = feed.all();
    stats = feed.loader().stats();
    fingerprint_ = feed.loader().fingerprint();
    warnings_ = ::testing::internal::GetCapturedStderr();
    return all;
  }

  TempFolder folder_;
  const std::string path_ = folder_.path() + "/seek/indexes.bin";
  std::unique_ptr<FakeSource> source_ = jpeg_source(kFileSamples);
  uint64_t fingerprint_ = 0;
  std::string warnings_;
};

TEST_F(SeekIndexFileTest, GivesBackWhatWasWritten) {
  std::string problem = "?";
  EXPECT_EQ(SeekIndexFile::open(path_, problem), nullptr);
  EXPECT_EQ(problem, "");  // there is no file
  {
    SeekIndexWriter writer(path_);
    for (int i = 0; i < 100; ++i) {
      const Bytes index(static_cast<size_t>(i), uint8_t(i));
      writer.add("name" + std::to_string(i), {{1000 + i, -i}, index});
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
    writer.finish();
  }
  EXPECT_EQ(files_in(folder_.path() + "/seek"), 1u);
  const auto file = SeekIndexFile::open(path_, problem);
  ASSERT_NE(file, nullptr) << problem;
  EXPECT_EQ(file->count(), 100);
  EXPECT_EQ(file->table_bytes(), 1600);
  EXPECT_EQ(file->largest_index_bytes(), 99 + 16);
  Bytes buffer;
  for (int i = 99; i >= 0; --i) {
    const StoredIndex stored = file->read("name" + std::to_string(i), buffer);
    EXPECT_EQ(Bytes(stored.index.begin(), stored.index.end()),
              Bytes(static_cast<size_t>(i), uint8_t(i)));
    if (i > 0) {
      EXPECT_EQ(stored.stamp, (FileStamp{1000 + i, -i}));
    }
  }
  EXPECT_TRUE(file->read("name100", buffer).index.empty());
  EXPECT_EQ(SeekIndexFile::open(folder_.path(), problem), nullptr);
  EXPECT_NE(problem, "");
}

// Pictures with room for objects, and none on them.
class BareSource final : public ForwardingSource {
 public:
  explicit BareSource(const Source& source) : ForwardingSource(source), info_(source.info()) {
    info_.annotations.objects = true;
  }
  const SourceInfo& info() const override { return info_; }
  ReadStatus read_annotations(SampleId, std::span<const uint8_t>, Annotations& out) const override {
    out.clear();
    return {};
  }

 private:
  SourceInfo info_;
};

TEST_F(SeekIndexFileTest, RowsOfSeveralSamplesUseTheirIndexes) {
  write_indexes(*source_, path_);
  const BareSource source(*source_);
  const auto rows_with = [&](const std::string& index, LoaderStats& stats) {
    Feed feed(source, AugmentSpec("mosaic(32) | random_crop(24)"), fast(index));
    std::vector<Delivered> rows = feed.all();
    stats = feed.loader().stats();
    return rows;
  };
  LoaderStats stats;
  const std::vector<Delivered> plain = rows_with("off", stats);
  EXPECT_EQ(stats.seek_index.used, 0);
  EXPECT_EQ(rows_with(path_, stats), plain);
  EXPECT_GT(stats.seek_index.used, kFileSamples);  // more than one picture of a row
  EXPECT_EQ(stats.seek_index.refused, 0);
}

TEST_F(SeekIndexFileTest, ALoaderDeliversTheSame) {
  write_indexes(*source_, path_);
  LoaderStats stats;
  const std::vector<Delivered> plain = rows(fast("off"), stats);
  const uint64_t fingerprint = fingerprint_;
  EXPECT_EQ(stats.seek_index.used, 0);
  for (const int workers : {0, 2}) {
    LoaderOptions options = fast(path_);
    options.feed.workers = workers;
    EXPECT_EQ(rows(options, stats), plain);
    EXPECT_GT(stats.seek_index.used, kFileSamples);  // whole crops use none
    EXPECT_EQ(stats.seek_index.refused, 0);
    EXPECT_EQ(fingerprint_, fingerprint);
    EXPECT_EQ(warnings_, "");
  }
  LoaderOptions exact = fast("off");
  exact.feed.decode.pixels = PixelPolicy::exact;
  const auto exact_plain = rows(exact, stats);
  EXPECT_EQ(stats.seek_index.used, 0);
  exact.feed.seek_index = path_;
  EXPECT_EQ(rows(exact, stats), exact_plain);
  EXPECT_GT(stats.seek_index.used, kFileSamples);
}

TEST_F(SeekIndexFileTest, AStaleOneIsWarnedOfOnceAndChangesNothing) {
  write_indexes(*source_, path_);
  for (SampleId id = 0; id < kFileSamples; ++id) source_->replace(id, jpeg_file(90, 70, 100 + id));
  source_->replace(3, text_bytes("no picture"));
  LoaderStats stats;
  const std::vector<Delivered> plain = rows(fast("off"), stats);
  EXPECT_EQ(rows(fast(path_), stats), plain);
  EXPECT_EQ(stats.seek_index.used, 0);
  EXPECT_GT(stats.seek_index.refused, 1);
  EXPECT_EQ(std::count(warnings_.begin(), warnings_.end(), '\n'), 1) << warnings_;
  EXPECT_THAT(warnings_, HasSubstr(path_));
  EXPECT_THAT(warnings_, HasSubstr("fake/"));
}

TEST_F(SeekIndexFileTest, ADamagedOneIsWarnedOfOnceAndAMissingOneIsAnError) {
  LoaderStats stats;
  const std::vector<Delivered> plain = rows(fast("auto"), stats);  // there is none: no warning
  EXPECT_EQ(warnings_, "");
  const std::string damaged = folder_.write("damaged.bin", "what is this");
  EXPECT_EQ(rows(fast(damaged), stats), plain);
  EXPECT_EQ(std::count(warnings_.begin(), warnings_.end(), '\n'), 1) << warnings_;
  EXPECT_THAT(warnings_, HasSubstr(damaged));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { Feed feed(*source_, crop_spec(), fast(path_)); }),
              HasSubstr(path_ + ": no such file"));
}

TEST_F(SeekIndexFileTest, ItsMemoryIsPlanned) {
  write_indexes(*source_, path_);
  const auto plan = [&](const std::string& seek_index) {
    Feed feed(*source_, crop_spec(), fast(seek_index));
    return feed.loader().memory_plan().total_bytes();
  };
  EXPECT_GE(plan(path_), plan("off") + 16 * (kFileSamples - 1));
}

}  // namespace
}  // namespace stoker::testing
