#include "pipeline/source/blob/blob_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/mds_maker.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> found(const std::string& path, Split split = Split::all) {
  const auto set = find_blobs(path, split);
  return set ? set->blobs : std::vector<std::string>{"nothing"};
}

std::string set_error(const std::string& path, Split split = Split::all) {
  return thrown_by<std::runtime_error>([&] { found(path, split); });
}

TEST(BlobFormatTest, IsToldByTheName) {
  const auto format_of = [](const std::string& name) {
    const auto format = blob_format(name);
    return std::string(format ? to_string(*format) : "none");
  };
  EXPECT_EQ(format_of("a.tar"), "tar");
  EXPECT_EQ(format_of("a.tar.gz"), "tar");  // its parser says that it must be unpacked
  EXPECT_EQ(format_of("train-00000-of-00004.parquet"), "parquet");
  EXPECT_EQ(format_of("train-00000-of-01024"), "tfrecord");
  EXPECT_EQ(format_of("train.tfrecord-00000-of-01024"), "tfrecord");
  EXPECT_EQ(format_of("shard.00000.mds"), "mds");
  EXPECT_EQ(format_of("a.csv"), "list");
  for (const char* name :
       {"a.jpg", "-of-", "of-12", "a-of-12", "a-1-of-", "tar", "a.tar.txt", ""}) {
    EXPECT_EQ(format_of(name), "none") << name;
  }
}

TEST(BlobSetTest, FindsTheBlobsOfAFolderByName) {
  const TempFolder folder;
  for (const char* name : {"b.tar", "a.tar", "c.tar", "notes.txt", ".hidden.tar", "labels.csv"}) {
    folder.write(name);
  }
  EXPECT_THAT(found(folder.path()), ElementsAre("a.tar", "b.tar", "c.tar"));
  EXPECT_EQ(find_blobs(folder.path(), Split::all)->root(), folder.path());
}

TEST(BlobSetTest, TakesPartsByFolderNameOrFirstWord) {
  const TempFolder words, folders, hub;
  for (const char* name : {"train-1.tar", "train-0.tar", "val-0.tar", "validation-0.tar"}) {
    words.write(name);
  }
  EXPECT_THAT(found(words.path(), Split::train), ElementsAre("train-0.tar", "train-1.tar"));
  EXPECT_THAT(found(words.path(), Split::test), ElementsAre("val-0.tar"));
  EXPECT_EQ(found(words.path()).size(), 4u);
  EXPECT_TRUE(has_blob_parts(words.path()));

  folders.write("train/b.parquet");
  folders.write("train/a.parquet");
  folders.write("validation/a.parquet");
  EXPECT_THAT(found(folders.path(), Split::train),
              ElementsAre("train/a.parquet", "train/b.parquet"));
  EXPECT_THAT(found(folders.path(), Split::test), ElementsAre("validation/a.parquet"));
  EXPECT_EQ(found(folders.path()).size(), 3u);
  EXPECT_TRUE(has_blob_parts(folders.path()));

  hub.write("README.md");
  hub.write("data/train-00000-of-00001.parquet");
  hub.write("data/test-00000-of-00001.parquet");
  EXPECT_THAT(found(hub.path(), Split::test), ElementsAre("data/test-00000-of-00001.parquet"));
  EXPECT_TRUE(has_blob_parts(hub.path()));
}

TEST(BlobSetTest, AFolderWithOnePartIsTakenWhole) {
  const TempFolder folder;
  folder.write("trainer-0.tar");
  folder.write("trainer-1.tar");
  EXPECT_EQ(found(folder.path(), Split::train).size(), 2u);
  EXPECT_FALSE(has_blob_parts(folder.path()));
  EXPECT_EQ(
      set_error(folder.path(), Split::test),
      folder.path() + ": no part test, val or validation there; found 2 files, as trainer-0.tar");
  const std::string test = folder.make_folder("test");
  folder.write("test/a.tar");
  EXPECT_THAT(found(test, Split::test), ElementsAre("a.tar"));
}

TEST(BlobSetTest, LeavesImageFoldersAlone) {
  const TempFolder pictures, archives, lists;
  pictures.write("cat/1.jpg");
  EXPECT_THAT(found(pictures.path()), ElementsAre("nothing"));
  // The archives that class folders were unpacked from.
  archives.write("cat.tar");
  archives.write("cat/1.JPEG");
  EXPECT_THAT(found(archives.path()), ElementsAre("nothing"));
  lists.write("labels.csv");
  lists.write("cat/1.jpg");
  EXPECT_THAT(found(lists.path()), ElementsAre("nothing"));
}

TEST(BlobSetTest, RefusesWhatIsNotClear) {
  const TempFolder formats, lists, parts;
  formats.write("a.tar");
  formats.write("a.parquet");
  EXPECT_EQ(set_error(formats.path()),
            formats.path() +
                ": it has shards of several formats: 1 tar (as a.tar) 1 parquet (as a.parquet); "
                "name those to take, as \"" +
                formats.path() + "/*.tar\"");
  lists.write("a.csv");
  lists.write("b.csv");
  EXPECT_EQ(set_error(lists.path()), lists.path() + ": it has 2 lists (as a.csv, b.csv); name one");
  parts.write("train/a.tar");
  EXPECT_EQ(set_error(parts.path(), Split::test),
            parts.path() +
                ": no folder test, val or validation with shards there, but one of the "
                "other part");
}

TEST(BlobSetTest, ExpandsBracesAndGlobs) {
  const TempFolder folder;
  for (const char* name : {"a-08.tar", "a-09.tar", "a-10.tar", "b-08.tar", "a-11.txt"}) {
    folder.write(name);
  }
  const std::string at = folder.path() + "/";
  EXPECT_THAT(found(at + "a-{08..10}.tar"), ElementsAre("a-08.tar", "a-09.tar", "a-10.tar"));
  EXPECT_THAT(found(at + "{b,a}-08.tar"), ElementsAre("b-08.tar", "a-08.tar"));
  EXPECT_THAT(found(at + "{a,b}-0{8..8}.tar"), ElementsAre("a-08.tar", "b-08.tar"));
  EXPECT_THAT(found(at + "?-08.tar"), ElementsAre("a-08.tar", "b-08.tar"));
  EXPECT_THAT(found(at + "a-*.tar"), ElementsAre("a-08.tar", "a-09.tar", "a-10.tar"));
  EXPECT_THAT(found(at + "a-08.tar"), ElementsAre("a-08.tar"));
  EXPECT_EQ(set_error(at + "c-*.tar"), at + "c-*.tar: no file is named like that");
  EXPECT_EQ(set_error(at + "a-{08..12}.tar"), at + "a-11.tar: no such file; 2 of 5 are missing");
  EXPECT_EQ(set_error(at + "a-{8..x}.tar"),
            at + "a-{8..x}.tar: {8..x} is no range of numbers, as {000..127} is one");
  EXPECT_EQ(set_error(at + "a-{9..8}.tar"),
            at + "a-{9..8}.tar: {9..8} is no range of numbers, as {000..127} is one");
  EXPECT_THAT(set_error(at + "{0..999999}{0..9}.tar"), HasSubstr("more than 1000000 paths"));
  EXPECT_EQ(set_error(at + "nothing"), at + "nothing: no such file or folder");
  EXPECT_THAT(set_error(at + "a-11.txt"), HasSubstr("its name says no format that is read"));
  EXPECT_THAT(set_error(at + "a-*"), HasSubstr("a-11.txt: its name says no format"));
}

TEST(BlobSetTest, AFileThatIsNamedLikeAPatternIsThatFile) {
  const TempFolder folder;
  folder.write("[12]/b1.tar");
  folder.write("[12]/b2.tar");
  EXPECT_THAT(found(folder.path() + "/[12]/b{1..2}.tar"), ElementsAre("b1.tar", "b2.tar"));
  folder.write("a{1,2}.tar");
  folder.write("a1.tar");
  EXPECT_THAT(found(folder.path() + "/a{1,2}.tar"), ElementsAre("a{1,2}.tar"));
}

TEST(BlobSetTest, NamesAreRelativeToTheFolderThatAllAreIn) {
  const TempFolder folder;
  const std::string a = folder.write("x/one/a.tar"), b = folder.write("x/two/b.tar");
  const BlobSet set = blob_set_of({b, a});
  EXPECT_EQ(set.root(), folder.path() + "/x");
  EXPECT_THAT(set.blobs, ElementsAre("two/b.tar", "one/a.tar"));  // the caller's order
  folder.write("c.csv");
  EXPECT_THROW(blob_set_of({a, folder.path() + "/c.csv"}), std::runtime_error);
  EXPECT_THROW(blob_set_of({}), std::runtime_error);
}

TEST(BlobSetTest, MdsShardsComeFromTheirIndex) {
  const TempFolder folder;
  folder.write("shard.00000.mds", "1234");
  folder.write("shard.00001.mds", "12");
  folder.write("left-over.mds", "1");
  folder.write("index.json", mds_index({{"shard.00001.mds", 2}, {"shard.00000.mds", 4}}));
  EXPECT_THAT(found(folder.path()), ElementsAre("shard.00001.mds", "shard.00000.mds"));
}

}  // namespace
}  // namespace stoker
