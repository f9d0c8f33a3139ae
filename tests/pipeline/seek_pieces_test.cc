// Samples of which a feed reads only what their rows show: the rows are those of whole files, and a
// file that changed is never taken for the one that its index was made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "decode/jpeg/seek_index.h"
#include "pipeline/seek_index/build.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/concat_source.h"
#include "pipeline/source/forwarding_source.h"
#include "pipeline/source/subset_source.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/cache_folder.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"

namespace stoker::testing {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;
using ::testing::HasSubstr;

constexpr int kPieceSamples = 12;
constexpr Size kPieceSize{420, 500};

std::string picture(uint32_t seed, int orientation = 0) {
  JpegKind kind{.quality = 97};
  kind.sampling_x = kind.sampling_y = 2;
  kind.exif_orientation = orientation;
  const Bytes bytes = make_jpeg(kPieceSize, kind, seed);
  return {bytes.begin(), bytes.end()};
}

// So that stamps are trusted.
void make_old(const std::string& path, int hours = 5) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

class SeekPiecesTest : public ::testing::Test {
 protected:
  std::string path(int i) const {
    return folder_.path() + "/data/c" + std::to_string(i % 2) + "/" + std::to_string(100 + i) +
           ".jpg";
  }
  void write(int i, const std::string& bytes, int hours = 5) {
    folder_.write(path(i).substr(folder_.path().size() + 1), bytes);
    make_old(path(i), hours);
  }
  void write_all(int orientation = 0) {
    for (int i = 0; i < kPieceSamples; ++i)
      write(i, picture(static_cast<uint32_t>(i) + 1, orientation));
  }
  std::unique_ptr<Source> open() const { return open_source(folder_.path() + "/data", Split::all); }

  LoaderOptions options(double epochs = 4) const {
    LoaderOptions options{.batch_size = 4, .epochs = epochs};
    // Workers read ahead, so that it would depend on time which rows find an index that a row
    // before them left.
    options.feed.workers = 0;
    options.digests = true;
    options.feed.max_bad = kPieceSamples;
    return options;
  }

  std::vector<Delivered> rows(const Source& source, const LoaderOptions& options) {
    Feed feed(source, augment_, options);
    std::vector<Delivered> delivered = feed.all();
    stats_ = feed.loader().stats();
    return delivered;
  }
  std::vector<Delivered> plain_rows(const Source& source, LoaderOptions options) {
    options.feed.seek_index = "off";
    return rows(source, options);
  }
  void expect_same_rows(const Source& source, const LoaderOptions& options) {
    const auto plain = plain_rows(source, options);
    EXPECT_EQ(stats_.seek_index.unread_bytes, 0);
    EXPECT_EQ(rows(source, options), plain);
    EXPECT_EQ(stats_.seek_index.refused, 0);
  }

  const TempFolder folder_;
  const CacheFolder cache_{folder_.path() + "/cache"};
  AugmentSpec augment_{"random_resized_crop(24, scale=(0.05, 0.4)) | flip"};
  LoaderStats stats_;
};

TEST_F(SeekPiecesTest, GiveTheSameRows) {
  write_all();
  const auto source = open();
  for (const PixelPolicy policy : {PixelPolicy::exact, PixelPolicy::fast}) {
    for (const int workers : {0, 2}) {
      fs::remove_all(folder_.path() + "/cache");
      LoaderOptions with = options();
      with.feed.workers = workers;
      with.feed.decode.pixels = policy;
      expect_same_rows(*source, with);
      if (workers > 0) continue;  // see options()
      // In three epochs, most rows show less than a half of their image.
      EXPECT_GT(stats_.seek_index.unread_bytes, 2 * kPieceSamples * 32 << 10);
    }
  }
}

TEST_F(SeekPiecesTest, GiveTheSameRowsOfSeveralViews) {
  write_all();
  augment_ = AugmentSpec(
      "views(random_resized_crop(24, scale=(0.05, 0.2)), random_resized_crop(16, "
      "scale=(0.02, 0.1)) | flip | color_jitter(0.4))");
  expect_same_rows(*open(), options());
  EXPECT_GT(stats_.seek_index.unread_bytes, 0);
}

TEST_F(SeekPiecesTest, GiveTheSameRowsWhereTheImageIsTurned) {
  for (const int orientation : {1, 6}) {
    write_all(orientation);
    fs::remove_all(folder_.path() + "/cache");
    LoaderOptions with = options();
    with.feed.decode.exif = ExifPolicy::apply;
    expect_same_rows(*open(), with);
    EXPECT_EQ(stats_.seek_index.unread_bytes > 0, orientation == 1);
    with.feed.decode.exif = ExifPolicy::ignore;
    expect_same_rows(*open(), with);
    EXPECT_GT(stats_.seek_index.unread_bytes, 0);
  }
}

TEST_F(SeekPiecesTest, AreReadFromShardsListsAndViews) {
  std::string tar, list = "path,label\n";
  for (int i = 0; i < kPieceSamples; ++i) {
    const std::string bytes = picture(static_cast<uint32_t>(i) + 1), name = std::to_string(100 + i);
    tar += tar_member(name + ".cls", std::to_string(i % 2)) + tar_member(name + ".jpg", bytes);
    list += name + ".jpg," + std::to_string(i % 2) + "\n";
    make_old(folder_.write("list/" + name + ".jpg", bytes));
  }
  make_old(folder_.write("tar/0.tar", tar + tar_end()));
  make_old(folder_.write("list/list.csv", list));
  const auto shard = open_source(folder_.path() + "/tar/0.tar", Split::all);
  const auto listed = open_source(folder_.path() + "/list/list.csv", Split::all);
  const SubsetSource subset(*shard, std::vector<SampleId>{7, 1, 4, 9});
  const ConcatSource both({shard.get(), listed.get()});
  for (const Source* source :
       std::initializer_list<const Source*>{shard.get(), listed.get(), &subset, &both}) {
    fs::remove_all(folder_.path() + "/cache");
    expect_same_rows(*source, options());
    EXPECT_GT(stats_.seek_index.unread_bytes, 0) << source->root();
  }
}

// A view that changes what it forwards is read as a whole.
TEST_F(SeekPiecesTest, AreNotReadThroughAForeignView) {
  class Tail final : public ForwardingSource {
   public:
    using ForwardingSource::ForwardingSource;
  };
  write_all();
  const auto source = open();
  const Tail view(*source);
  expect_same_rows(view, options());
  EXPECT_GT(stats_.seek_index.used, 0);
  EXPECT_EQ(stats_.seek_index.unread_bytes, 0);
}

TEST_F(SeekPiecesTest, AreNotReadOfFilesThatWereJustWritten) {
  write_all();
  // In the future, so that they stay new however long this takes.
  for (int i = 0; i < kPieceSamples; ++i) make_old(path(i), -5);
  expect_same_rows(*open(), options());
  EXPECT_GT(stats_.seek_index.used, 0);
  EXPECT_EQ(stats_.seek_index.unread_bytes, 0);
}

TEST_F(SeekPiecesTest, ATouchedFileIsReadAsAWholeOnce) {
  write_all();
  rows(*open(), options());
  for (int i = 0; i < kPieceSamples; ++i) make_old(path(i), 3);
  LoaderOptions once = options(2);
  expect_same_rows(*open(), once);
  EXPECT_GT(stats_.seek_recorded, 0);  // with the new stamps
  once.epochs = 1;
  expect_same_rows(*open(), once);
  EXPECT_EQ(stats_.seek_recorded, 0);
  EXPECT_GT(stats_.seek_index.unread_bytes, 0);
}

TEST_F(SeekPiecesTest, AChangedFileIsNeverTakenForTheOldOne) {
  write_all();
  rows(*open(), options());
  ASSERT_GT(stats_.seek_index.unread_bytes, 0);
  for (int i = 0; i < kPieceSamples; i += 2) {
    std::string other = picture(static_cast<uint32_t>(i) + 100);
    const std::string old = picture(static_cast<uint32_t>(i) + 1);
    // Half of them get the size, too: bytes behind the end of the image are no part of it.
    if (i % 4 == 0 && other.size() < old.size()) other.resize(old.size());
    write(i, other, 4);
  }
  const auto source = open();
  const auto plain = plain_rows(*source, options(2));
  EXPECT_EQ(rows(*source, options(2)), plain);
}

// Neither size nor time say that these changed: the sums do, where a row shows them.
TEST_F(SeekPiecesTest, DamageThatNoStampShowsIsSeen) {
  write_all();
  rows(*open(), options());
  for (int i = 0; i < kPieceSamples; ++i) {
    std::string bytes = picture(static_cast<uint32_t>(i) + 1);
    for (size_t at = bytes.size() / 8; at < bytes.size(); at += 4096) bytes[at] ^= 0x15;
    write(i, bytes);
    // The same time to the nanosecond.
    fs::last_write_time(path(i), fs::last_write_time(path(0)));
  }
  const auto source = open();
  const auto plain = plain_rows(*source, options(2));
  EXPECT_EQ(rows(*source, options(2)), plain);
}

TEST_F(SeekPiecesTest, AFileThatIsGoneIsABadSample) {
  write_all();
  const auto source = open();
  rows(*source, options());
  fs::remove(path(3));
  fs::resize_file(path(5), 20'000);
  const auto plain = plain_rows(*source, options(2));
  EXPECT_EQ(stats_.bad_samples, 4);  // two, twice
  EXPECT_EQ(rows(*source, options(2)), plain);
  EXPECT_EQ(stats_.bad_samples, 4);
}

TEST_F(SeekPiecesTest, AnIndexOfACommandHasThemToo) {
  write_all();
  const auto source = open();
  const std::string chosen = folder_.path() + "/chosen.bin";
  ASSERT_TRUE(
      build_seek_indexes(*source, chosen, {.step = SeekStep::eight, .workers = 2, .go_on = {}}));
  LoaderOptions once = options(1);
  const auto plain = plain_rows(*source, once);
  once.feed.seek_index = chosen;
  EXPECT_EQ(rows(*source, once), plain);
  EXPECT_GT(stats_.seek_index.unread_bytes, 0);
}

class ReadPiecesTest : public SeekPiecesTest {
 protected:
  // Reads two pieces of sample `id`, and compares them with what read() gives.
  static bool are_right(const Source& source, SampleId id, const FileStamp& stamp,
                        MayWait may_wait) {
    Bytes buffer, first(1000), second(50'000);
    std::span<const uint8_t> bytes;
    EXPECT_TRUE(source.read(id, buffer, bytes).ok);
    const BytePiece pieces[] = {{0, first}, {60'000, second}};
    if (!source.storage().read_pieces(id, stamp, pieces, may_wait)) return false;
    EXPECT_TRUE(std::equal(first.begin(), first.end(), bytes.begin()));
    EXPECT_TRUE(std::equal(second.begin(), second.end(), bytes.begin() + 60'000));
    return true;
  }
};

TEST_F(ReadPiecesTest, OnlyIfTheStampIsRightAndTheyLieInside) {
  write_all();
  std::string tar;
  for (int i = 0; i < 3; ++i) {
    tar += tar_member(std::to_string(i) + ".jpg", picture(static_cast<uint32_t>(i) + 1));
  }
  make_old(folder_.write("tar/0.tar", tar + tar_end()));
  const auto folder = open();
  const auto shard = open_source(folder_.path() + "/tar/0.tar", {.label_from = "none"});
  for (const Source* source : {folder.get(), shard.get()}) {
    const FileStamp stamp = source->storage().stamp(1);
    ASSERT_TRUE(stamp.is_known());
    EXPECT_TRUE(are_right(*source, 1, stamp, MayWait::yes));
    EXPECT_FALSE(are_right(*source, 1, {stamp.bytes + 1, stamp.modified_ns}, MayWait::yes));
    EXPECT_FALSE(are_right(*source, 1, {stamp.bytes, stamp.modified_ns + 1}, MayWait::yes));
    EXPECT_FALSE(are_right(*source, 1, {}, MayWait::yes));
    Bytes buffer, out(10);
    std::span<const uint8_t> bytes;
    ASSERT_TRUE(source->read(1, buffer, bytes).ok);
    const auto size = std::ssize(bytes);
    for (const int64_t offset : {size - 9, size, size + 100, int64_t{1} << 40}) {
      const BytePiece outside[] = {{offset, out}};
      EXPECT_FALSE(source->storage().read_pieces(1, stamp, outside, MayWait::yes)) << offset;
    }
    const BytePiece inside[] = {{size - 10, out}};
    EXPECT_TRUE(source->storage().read_pieces(1, stamp, inside, MayWait::yes));
  }
}

}  // namespace
}  // namespace stoker::testing
