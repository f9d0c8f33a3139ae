// Sources of shards and lists: names, labels, classes, bytes; the index in the cache; blobs that
// change under a source.
#include "pipeline/source/blob/blob_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/format/unpack.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tfrecord_maker.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct MadeSample {
  std::string key, image, label;
};

std::string tar_of(const std::vector<MadeSample>& samples) {
  std::string tar;
  for (const MadeSample& sample : samples) {
    tar += tar_member(sample.key + ".jpg", sample.image);
    if (!sample.label.empty()) tar += tar_member(sample.key + ".cls", sample.label);
  }
  return tar + tar_end();
}

std::string tfrecord_of(const std::vector<std::pair<std::string, int64_t>>& samples) {
  std::string file;
  for (const auto& [image, label] : samples) {
    file += make_record(make_example({{"image/encoded", bytes_feature({image})},
                                      {"image/class/label", int64_feature({label})}}));
  }
  return file;
}

std::unique_ptr<Source> open_all(const std::string& path, SourceOptions options = {}) {
  options.cache_dir = "";
  return open_source(path, options);
}

std::string blob_error(const std::string& path, const SourceOptions& options = {}) {
  try {
    open_all(path, options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(BlobSourceTest, TarShardsAreOneSourceInTheOrderOfTheirNames) {
  const TempFolder folder;
  folder.write("b.tar", tar_of({{"n/3", "three", "1"}}));
  folder.write("a.tar", tar_of({{"1", "one", "2"}, {"2", "two", "0"}}));
  const auto source = open_all(folder.path());
  EXPECT_THAT(names_of(*source), ElementsAre("a.tar/1.jpg", "a.tar/2.jpg", "b.tar/n/3.jpg"));
  EXPECT_THAT(labels_of(*source), ElementsAre(2, 0, 1));
  EXPECT_THAT(source->class_names(), ElementsAre("0", "1", "2"));
  EXPECT_EQ(text_of(*source, 0), "one");
  EXPECT_EQ(text_of(*source, 2), "three");
  EXPECT_EQ(cached_text_of(*source, 1), "two");
  EXPECT_EQ(source->root(), folder.path());
  EXPECT_EQ(source->encoding(), SampleEncoding::image_file);
  EXPECT_THAT(source->notes(), IsEmpty());
}

TEST(BlobSourceTest, TextsBecomeClassesInSortedOrderOverAllShards) {
  const TempFolder folder;
  folder.write("a.tar", tar_of({{"1", "one", "zebra"}, {"2", "two", "cat"}}));
  folder.write("b.tar", tar_of({{"3", "three", "dog"}, {"4", "four", "zebra"}}));
  const auto source = open_all(folder.path());
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog", "zebra"));
  EXPECT_THAT(labels_of(*source), ElementsAre(2, 0, 1, 2));
}

TEST(BlobSourceTest, ClassNamesLieBesideTheShards) {
  const TempFolder folder;
  folder.write("a.tar", tar_of({{"1", "one", "1"}, {"2", "two", "0"}}));
  folder.write("classes.txt", "cat\r\ndog\nhorse\n");
  EXPECT_THAT(open_all(folder.path())->class_names(), ElementsAre("cat", "dog", "horse"));
  folder.write("classes.txt", "cat");
  EXPECT_EQ(blob_error(folder.path()),
            folder.path() + "/a.tar#0: its label is 1, and there are 1 class names");
  folder.write("classes.txt", std::string("a\0b", 3));
  EXPECT_EQ(blob_error(folder.path()),
            folder.path() +
                "/classes.txt: it has a NUL byte, and should have a class name per "
                "line");
}

TEST(BlobSourceTest, RecordsAreNamedByTheirNumber) {
  const TempFolder folder;
  folder.write("train-00000-of-00002", tfrecord_of({{"one", 1}, {"two", 2}}));
  folder.write("train-00001-of-00002", tfrecord_of({{"three", 1}}));
  const auto source = open_all(folder.path() + "/train-*");
  EXPECT_THAT(names_of(*source), ElementsAre("train-00000-of-00002#0", "train-00000-of-00002#1",
                                             "train-00001-of-00002#0"));
  EXPECT_EQ(text_of(*source, 2), "three");
  EXPECT_EQ(source->class_names().size(), 3u);
}

TEST(BlobSourceTest, NumbersGoOnInTheNextSegment) {
  const TempFolder folder;
  constexpr int64_t kRows = 2 * BlobSegment::kMaxSamples + 5;
  std::vector<std::pair<std::string, int64_t>> rows;
  for (int64_t i = 0; i < kRows; ++i) rows.emplace_back(std::to_string(i), i % 3);
  folder.write("a.tfrecord", tfrecord_of({{"first", 1}}));
  folder.write("b.tfrecord", tfrecord_of(rows));
  const auto source = open_all(folder.path());
  ASSERT_EQ(source->size(), kRows + 1);
  for (const int64_t row : {int64_t{0}, BlobSegment::kMaxSamples - 1, BlobSegment::kMaxSamples,
                            2 * BlobSegment::kMaxSamples, kRows - 1}) {
    EXPECT_EQ(source->name(row + 1), "b.tfrecord#" + std::to_string(row));
    EXPECT_EQ(text_of(*source, row + 1), std::to_string(row));
    EXPECT_EQ(source->label(row + 1), row % 3);
  }
}

TEST(BlobSourceTest, AListNamesFilesBesideIt) {
  const TempFolder folder;
  folder.write("pictures/one.jpg", "one");
  const std::string elsewhere = folder.write("other/two.jpg", "two");
  const std::string list = folder.write(
      "pictures/list.csv", "path,label\none.jpg,dog\n" + elsewhere + ",cat\nmissing.jpg,dog\n");
  const auto source = open_all(list);
  EXPECT_THAT(names_of(*source), ElementsAre("one.jpg", elsewhere, "missing.jpg"));
  EXPECT_THAT(labels_of(*source), ElementsAre(1, 0, 1));
  EXPECT_EQ(text_of(*source, 0), "one");
  EXPECT_EQ(text_of(*source, 1), "two");
  EXPECT_EQ(text_of(*source, 2), "error: open: No such file or directory");
}

TEST(BlobSourceTest, WithoutLabelsThereAreNoClasses) {
  const TempFolder folder;
  folder.write("a.tar", tar_of({{"1", "one", ""}, {"2", "two", ""}}));
  const auto source = open_all(folder.path(), {.label_from = "none"});
  EXPECT_THAT(source->class_names(), IsEmpty());
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 0));
  folder.write("classes.txt", "cat\ndog\n");
  EXPECT_THAT(open_all(folder.path(), {.label_from = "none"})->class_names(), IsEmpty());
}

TEST(BlobSourceTest, LabelsOfTwoKindsAreRefused) {
  const TempFolder folder;
  folder.write("a.tar", tar_of({{"1", "one", "1"}}));
  folder.write("b.tar", tar_of({{"2", "two", "cat"}}));
  EXPECT_EQ(blob_error(folder.path()),
            folder.path() +
                "/b.tar: its labels are of another kind (numbers, text or none) than those of " +
                folder.path() + "/a.tar");
  folder.write("b.tar", tar_of({{"2", "two", "1"}, {"3", "three", "cat"}}));
  EXPECT_EQ(blob_error(folder.path()),
            folder.path() +
                "/b.tar: at byte 2560: sample 1 has text for its label, and the samples "
                "before it have a number");
}

TEST(BlobSourceTest, LabelsOutOfRangeAreRefused) {
  const TempFolder folder;
  const std::string path = folder.write("a.tar", tar_of({{"1", "one", "-1"}}));
  EXPECT_EQ(blob_error(path), path +
                                  ": at byte 512: sample 0 has label -1, which must be 0 to "
                                  "16777215; for data without labels, `label_from` none");
  folder.write("a.tar", tar_of({{"1", "one", "16777216"}}));
  EXPECT_EQ(blob_error(path),
            path + ": at byte 512: sample 0 has label 16777216, which must be 0 to 16777215");
}

TEST(BlobSourceTest, WhatIsLeftOutIsCountedAndNamed) {
  const TempFolder folder;
  folder.write("a.tar", tar_member("0.txt", "no image") + tar_of({{"1", "one", "1"}}));
  folder.write("b.tar", tar_member("8.txt", "none") + tar_member("9.txt", "none") +
                            tar_of({{"2", "two", "0"}}));
  const std::vector<SourceNote> notes = open_all(folder.path())->notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].reason, "left_out");
  EXPECT_EQ(notes[0].files, 3);
  EXPECT_EQ(notes[0].name, "a.tar/0");
  EXPECT_EQ(notes[0].message, "3 entries are left out (a key without an image), as a.tar/0");
}

// Returns a Parquet file of 20 images of 1000 bytes in one page.
std::string parquet_of(int codec) {
  MadeColumn images, labels;
  images.names = {"image"};
  images.codec = codec;
  labels.names = {"label"};
  labels.type = kMadeInt32;
  for (int i = 0; i < 20; ++i) {
    images.values.push_back(plain_bytes(std::string(1000, static_cast<char>('a' + i))));
    labels.values.push_back(plain_int32(i % 2));
  }
  MadeParquet file;
  file.columns = {images, labels};
  return file.bytes();
}

TEST(BlobSourceTest, FilesThatNameOtherClassesAreRefused) {
  const TempFolder folder;
  for (const std::string name : {"a", "b"}) {
    MadeColumn images, labels;
    images.names = {"image"};
    images.values = {plain_bytes("x")};
    labels.names = {"label"};
    labels.type = kMadeInt64;
    labels.values = {plain_int64(0)};
    MadeParquet file;
    file.columns = {images, labels};
    file.metadata = {{"huggingface", R"({"info": {"features": {"label": {"names": ["first of )" +
                                         name + "\"]}}}}"}};
    folder.write(name + ".parquet", file.bytes());
  }
  EXPECT_THAT(open_all(folder.path() + "/b.parquet")->class_names(), ElementsAre("first of b"));
  EXPECT_EQ(blob_error(folder.path()), folder.path() +
                                           "/b.parquet: it names other classes (1) than " +
                                           folder.path() + "/a.parquet (1)");
}

TEST(BlobSourceTest, ImagesOfCompressedPagesAreUnpacked) {
  const TempFolder folder;
  for (const int codec : {kMadePlain, kMadeSnappy, kMadeZstd}) {
    if (codec == kMadeZstd && !can_unpack(BlobStorage::zstd)) continue;
    const auto source = open_all(folder.write("a.parquet", parquet_of(codec)));
    ASSERT_EQ(source->size(), 20) << codec;
    EXPECT_EQ(source->name(19), "a.parquet#19");
    for (SampleId id = 0; id < 20; ++id) {
      const std::string image(1000, static_cast<char>('a' + id));
      EXPECT_EQ(text_of(*source, id), image) << codec;
      EXPECT_EQ(cached_text_of(*source, id), image) << codec;
    }
  }
}

TEST(BlobSourceTest, PagesThatAreUnpackedFromTheirBeginningAreNoted) {
  if (!can_unpack(BlobStorage::zstd)) GTEST_SKIP() << "no libzstd in this build";
  const TempFolder folder;
  const std::string path = folder.write("a.parquet", parquet_of(kMadeZstd));
  const std::vector<SourceNote> notes = open_all(path)->notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].reason, "slow");
  EXPECT_EQ(notes[0].message,
            "20 images lie in compressed pages: to read one of 1000 bytes, 10548 are unpacked on "
            "average, as in a.parquet; `stoker pack --format parquet` writes them without "
            "compression");
  folder.write("a.parquet", parquet_of(kMadePlain));
  EXPECT_THAT(open_all(path)->notes(), IsEmpty());
}

TEST(BlobSourceTest, NoSamplesAreAnError) {
  const TempFolder folder;
  const std::string a = folder.write("a.tar", tar_end());
  EXPECT_EQ(blob_error(a), a + ": it has no samples");
  folder.write("b.tar", tar_end());
  EXPECT_EQ(blob_error(folder.path()), a + " and 1 more files have no samples");
}

TEST(BlobSourceTest, FieldsAreRefusedWhereThereIsNothingToChoose) {
  const TempFolder folder;
  folder.write("cat/1.jpg");
  EXPECT_EQ(blob_error(folder.path(), {.label_from = "cls"}),
            "SourceOptions: label_from is \"cls\", and " + folder.path() +
                " is an image folder, which has no such choice");
}

TEST(BlobSourceTest, ABlobThatChangedMakesBadSamplesAndNeverWrongPixels) {
  const TempFolder folder;
  const std::string path = folder.write("a.tar", tar_of({{"1", "one", "1"}, {"2", "two", "0"}}));
  settle(path);
  const auto source = open_all(path);
  EXPECT_EQ(text_of(*source, 0), "one");  // its descriptor is open now
  fs::resize_file(path, 600);
  const std::string message =
      "error: the file was changed after its samples were listed: it has 600 bytes now and had "
      "5120";
  EXPECT_EQ(text_of(*source, 0), message);
  EXPECT_EQ(cached_text_of(*source, 0), "not cached");
  // The same size with another time.
  folder.write("a.tar", tar_of({{"1", "ONE", "1"}, {"2", "TWO", "0"}}));
  EXPECT_THAT(text_of(*source, 1), HasSubstr("the file was changed"));
  EXPECT_THAT(text_of(*open_all(path), 1), "TWO");
}

TEST(BlobSourceTest, ABlobThatWasReplacedIsReadAsItWas) {
  const TempFolder folder;
  const std::string path = folder.write("a.tar", tar_of({{"1", "one", "1"}}));
  settle(path);
  const auto opened = open_all(path), unopened = open_all(path);
  EXPECT_EQ(text_of(*opened, 0), "one");
  fs::rename(folder.write("new", tar_of({{"1", "two", "1"}})), path);
  EXPECT_EQ(text_of(*opened, 0), "one");
  EXPECT_EQ(text_of(*unopened, 0),
            "error: the file was changed after its samples were listed, at another time and to "
            "the same size");
  const auto gone = open_all(path);
  fs::remove(path);
  EXPECT_EQ(text_of(*gone, 0), "error: open: No such file or directory");
}

TEST(BlobSourceTest, MoreBlobsThanDescriptorsAreRead) {
  const TempFolder folder;
  for (int i = 0; i < 100; ++i) {
    folder.write(std::to_string(1000 + i) + ".tar",
                 tar_of({{"x", "image " + std::to_string(i), "0"}}));
  }
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 64;  // half of them for blobs
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto source = open_all(folder.path());
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(text_of(*source, i), "image " + std::to_string(i));
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(BlobSourceTest, TheFingerprintFollowsTheList) {
  const TempFolder folder;
  const auto fingerprint = [&] { return open_all(folder.path())->fingerprint(); };
  folder.write("a.tar", tar_of({{"1", "one", "1"}, {"2", "two", "0"}}));
  const uint64_t before = fingerprint();
  EXPECT_EQ(fingerprint(), before);
  folder.write("a.tar", tar_of({{"1", "one", "1"}, {"2", "TWO", "0"}}));
  EXPECT_EQ(fingerprint(), before);  // the content of a picture is not in it
  folder.write("a.tar", tar_of({{"1", "one", "0"}, {"2", "two", "0"}}));
  EXPECT_NE(fingerprint(), before);
  folder.write("a.tar", tar_of({{"1", "one", "1"}, {"3", "two", "0"}}));
  EXPECT_NE(fingerprint(), before);
}

TEST(BlobSourceTest, LabelsHaveTheSameDigestInEveryFormat) {
  const TempFolder pictures, shards;
  pictures.write("cat/1.jpg");
  pictures.write("cat/2.jpg");
  pictures.write("dog/3.jpg");
  const auto folder = make_folder_source(pictures.path(), {.cache_dir = ""});
  shards.write("a.tar", tar_of({{"1", "x", "0"}, {"2", "x", "0"}}));
  shards.write("b.tar", tar_of({{"3", "x", "1"}}));
  EXPECT_EQ(open_all(shards.path())->labels_digest(), folder->labels_digest());
  shards.write("b.tar", tar_of({{"3", "x", "0"}}));
  EXPECT_NE(open_all(shards.path())->labels_digest(), folder->labels_digest());
  EXPECT_EQ(folder->labels_digest(), folder->Source::labels_digest());
}

}  // namespace
}  // namespace stoker
