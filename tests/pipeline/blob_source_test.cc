// Sources of shards and lists: names, labels, classes, bytes; the index in the cache; blobs that
// change under a source.
#include "pipeline/source/blob/blob_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/files/read_piece.h"
#include "pipeline/source/blob/blob_index.h"
#include "pipeline/source/format/unpack.h"
#include "tests/support/format_maker.h"
#include "tests/support/parquet_maker.h"
#include "tests/support/source_contents.h"
#include "tests/support/tar_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string tar_of(const std::vector<MadeSample>& samples) {
  return made_format("Tar").make(samples);
}

std::unique_ptr<Source> open_all(const std::string& path, SourceOptions options = {}) {
  options.cache_dir = "";
  return open_source(path, options);
}

std::string blob_error(const std::string& path, const SourceOptions& options = {}) {
  return thrown_by<std::exception>([&] { open_all(path, options); });
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

TEST(BlobSourceTest, LabelsOfTwoKindsInOneShardAreRefused) {
  const TempFolder folder;
  const std::string tar = folder.write("b.tar", tar_of({{"2", "two", 1}, {"3", "three", "cat"}}));
  EXPECT_EQ(blob_error(folder.path()), tar +
                                           ": at byte 2560: sample 1 has text for its label, and "
                                           "the samples before it have a number");
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

// Returns a Parquet file of 20 images of 1000 bytes in one page, of two classes.
std::string parquet_of(int codec, const std::string& first_class = "") {
  MadeColumn images{.names = {"image"}, .codec = codec},
      labels{.names = {"label"}, .type = kMadeInt32};
  for (int i = 0; i < 20; ++i) {
    images.values.push_back(plain_bytes(std::string(1000, static_cast<char>('a' + i))));
    labels.values.push_back(plain_int32(i % 2));
  }
  MadeParquet file{.columns = {images, labels}};
  if (!first_class.empty()) {
    file.metadata = {{"huggingface", R"({"info": {"features": {"label": {"names": [")" +
                                         first_class + R"(", "dog"]}}}})"}};
  }
  return file.bytes();
}

TEST(BlobSourceTest, FilesThatNameOtherClassesAreRefused) {
  const TempFolder folder;
  for (const std::string name : {"a", "b"}) {
    folder.write(name + ".parquet", parquet_of(kMadePlain, "first of " + name));
  }
  EXPECT_THAT(open_all(folder.path() + "/b.parquet")->class_names(),
              ElementsAre("first of b", "dog"));
  EXPECT_EQ(blob_error(folder.path()), folder.path() +
                                           "/b.parquet: it names other classes (2) than " +
                                           folder.path() + "/a.parquet (2)");
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

// A file without a name lies in a tmpfs on every system.
TEST(BlobSourceTest, ShardsInTmpfsLieInMemory) {
  const Descriptor memory(memfd_create("shard", 0));
  const std::string tar = tar_of({{"1", "one", 0}, {"2", "two", 0}});
  ASSERT_EQ(write(memory.get(), tar.data(), tar.size()), std::ssize(tar));
  const TempFolder folder;
  folder.link("/proc/self/fd/" + std::to_string(memory.get()), "a.tar");
  const auto source = open_all(folder.path() + "/a.tar");
  EXPECT_EQ(text_of(*source, 0), "one");  // opens the shard, for which a cached read may not wait
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(cached_text_of(*source, 0), "one");
    EXPECT_EQ(cached_text_of(*source, 1), "two");
  }
}

TEST(BlobSourceTest, PiecesOfTmpfsAreWholeOrNotThere) {
  const Descriptor memory(memfd_create("piece", 0));
  ASSERT_EQ(write(memory.get(), "abc", 3), 3);
  struct stat status;
  ASSERT_EQ(fstat(memory.get(), &status), 0);
  std::vector<uint8_t> out(2);
  for (const dev_t device : {dev_t{0}, status.st_dev, status.st_dev}) {
    EXPECT_TRUE(read_piece_cached(memory.get(), device, 1, out));
    EXPECT_THAT(out, ElementsAre('b', 'c'));
    EXPECT_FALSE(read_piece_cached(memory.get(), device, 2, out));
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

}  // namespace
}  // namespace stoker
