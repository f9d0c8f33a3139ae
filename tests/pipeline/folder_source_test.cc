#include "pipeline/source/folder_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/source_contents.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Source> open_folder(const TempFolder& folder, Split split = Split::all) {
  return make_folder_source(folder.path(), {.split = split, .cache_dir = ""});
}

std::string folder_error(const TempFolder& folder, Split split = Split::all) {
  return thrown_by<std::runtime_error>([&] { open_folder(folder, split); });
}

// torchvision 0.14's ImageFolder lists these files in this order: classes, then folders by path (so
// that "sub-a" comes between "sub" and "sub/deep"), then file names, all by byte.
TEST(FolderSource, ListsClassesFoldersAndFilesInTorchvisionsOrder) {
  const TempFolder folder;
  for (const char* name :
       {"b/2.jpg", "b/10.jpg", "b/sub/0.jpg", "b/sub-a/0.jpg", "b/sub/deep/er/1.png", "B/z.JPEG",
        "a b/x y.jpg", "\u00e9/\u00fc.webp", "b/\u4e2d.tif"}) {
    folder.write(name, name);
  }
  const auto source = open_folder(folder);
  EXPECT_THAT(source->class_names(), ElementsAre("B", "a b", "b", "\u00e9"));
  EXPECT_THAT(names_of(*source), ElementsAre("B/z.JPEG", "a b/x y.jpg", "b/10.jpg", "b/2.jpg",
                                             "b/\u4e2d.tif", "b/sub/0.jpg", "b/sub-a/0.jpg",
                                             "b/sub/deep/er/1.png", "\u00e9/\u00fc.webp"));
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 1, 2, 2, 2, 2, 2, 2, 3));
  for (SampleId id = 0; id < source->size(); ++id) {
    EXPECT_EQ(text_of(*source, id), source->name(id));
  }
}

TEST(FolderSource, TakesImagesOnlyAndNothingHidden) {
  const TempFolder folder;
  for (const char* name :
       {"c/a.jpg", "c/b.JPG", "c/c.Jpeg", "c/d.png", "c/e.bmp", "c/f.webp", "c/g.tif", "c/h.tiff",
        "c/i.ppm", "c/j.pgm", "c/no", "c/no.txt", "c/jpg", "c/no.jpg.txt", "c/._a.jpg",
        "c/.h/a.jpg", ".hidden/a.jpg", "loose.jpg"}) {
    folder.write(name);
  }
  const auto source = open_folder(folder);
  EXPECT_THAT(names_of(*source),
              ElementsAre("c/a.jpg", "c/b.JPG", "c/c.Jpeg", "c/d.png", "c/e.bmp", "c/f.webp",
                          "c/g.tif", "c/h.tiff", "c/i.ppm", "c/j.pgm"));
  EXPECT_THAT(source->class_names(), ElementsAre("c"));
}

TEST(FolderSource, OddNamesAreReadAndPrintable) {
  const TempFolder folder;
  const std::vector<std::string> odd = {"c/new\nline.jpg",   "c/quote\".jpg", "c/back\\slash.jpg",
                                        "c/bad\xff\xfe.jpg", "c/-rf.jpg",     "c/over\xc0\xaf.jpg"};
  for (const std::string& name : odd) folder.write(name, name);
  const auto source = open_folder(folder);
  EXPECT_THAT(names_of(*source),
              ElementsAre("c/-rf.jpg", "c/back\\x5cslash.jpg", "c/bad\\xff\\xfe.jpg",
                          "c/new\\x0aline.jpg", "c/over\\xc0\\xaf.jpg", "c/quote\".jpg"));
  EXPECT_EQ(text_of(*source, 3), "c/new\nline.jpg");
  EXPECT_EQ(text_of(*source, 2), "c/bad\xff\xfe.jpg");
}

TEST(FolderSource, FollowsLinksButNotInCircles) {
  const TempFolder folder, outside;
  outside.write("far/1.jpg", "far");
  folder.write("a/0.jpg", "zero");
  folder.link(outside.path() + "/far", "a/linked");
  folder.link(outside.path() + "/far/1.jpg", "a/file.jpg");
  folder.link(outside.path(), "whole");  // a class that is a link
  folder.link(folder.path() + "/a", "a/self");
  folder.link(folder.path(), "a/root");
  folder.link("nowhere", "a/dangling.jpg");
  const auto source = open_folder(folder);
  EXPECT_THAT(names_of(*source), ElementsAre("a/0.jpg", "a/dangling.jpg", "a/file.jpg",
                                             "a/linked/1.jpg", "whole/far/1.jpg"));
  EXPECT_EQ(text_of(*source, 2), "far");
  EXPECT_EQ(text_of(*source, 3), "far");
  EXPECT_EQ(text_of(*source, 1), "error: open: No such file or directory");
}

TEST(FolderSource, WhatCannotBeReadIsAStatus) {
  const TempFolder folder;
  folder.write("c/a.jpg", "a");
  folder.write("c/b.jpg", "b");
  folder.write("c/d.jpg", "");
  const auto source = open_folder(folder);
  std::filesystem::remove(folder.path() + "/c/a.jpg");
  EXPECT_EQ(text_of(*source, 0), "error: open: No such file or directory");
  std::filesystem::remove(folder.path() + "/c/b.jpg");
  ASSERT_EQ(mkfifo((folder.path() + "/c/b.jpg").c_str(), 0600), 0);  // would block a plain open()
  EXPECT_EQ(text_of(*source, 1), "error: not a regular file");
  EXPECT_EQ(text_of(*source, 2), "");
  ASSERT_EQ(truncate((folder.path() + "/c/d.jpg").c_str(), (int64_t{1} << 30) + 1), 0);
  EXPECT_THAT(text_of(*source, 2), HasSubstr("1073741825 bytes, the limit is 1073741824"));
}

// Returns true if the system reports that the page cache has a file; false if Linux or a container
// forbids the calls, or the file system cannot know.
bool system_knows(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  char bytes[1];
  const iovec part{bytes, sizeof bytes};
  const bool knows = preadv2(descriptor, &part, 1, 0, RWF_NOWAIT) == 1;
  close(descriptor);
  const open_how how{.flags = O_RDONLY, .mode = 0, .resolve = RESOLVE_CACHED};
  const auto cached =
      static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how));
  if (cached >= 0) close(cached);
  return knows && cached >= 0;
}

bool is_in_page_cache(const std::string& path, size_t bytes) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  close(descriptor);
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(mincore(map, bytes, pages.data()), 0);
  munmap(map, bytes);
  return std::any_of(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}

// Linux may say no if another process renames something at that moment.
bool read_cached_at_last(const Source& source, SampleId id, std::vector<uint8_t>& buffer,
                         std::span<const uint8_t>& bytes) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (source.storage().read_cached(id, buffer, bytes)) return true;
  }
  return false;
}

TEST(FolderSource, ReadsFromMemoryWhatLiesThere) {
  const TempFolder folder;
  const std::string text(100'000, 'x');
  const std::string path = folder.write("c/a.jpg", text);
  folder.write("c/b.jpg", "b");
  folder.write("c/d.jpg", "");
  const auto source = open_folder(folder);
  if (!system_knows(path)) GTEST_SKIP() << "this system does not say what lies in memory";
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ASSERT_TRUE(read_cached_at_last(*source, 0, buffer, bytes));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
  ASSERT_TRUE(read_cached_at_last(*source, 2, buffer, bytes));
  EXPECT_TRUE(bytes.empty());
  // read() reports what is wrong with a sample.
  std::filesystem::remove(folder.path() + "/c/b.jpg");
  EXPECT_FALSE(source->storage().read_cached(1, buffer, bytes));
  ASSERT_EQ(mkfifo((folder.path() + "/c/b.jpg").c_str(), 0600), 0);
  EXPECT_FALSE(source->storage().read_cached(1, buffer, bytes));
  ASSERT_EQ(truncate((folder.path() + "/c/d.jpg").c_str(), (int64_t{1} << 30) + 1), 0);
  EXPECT_FALSE(source->storage().read_cached(2, buffer, bytes));
}

// Linux begins to fetch the pages it does not have, even for who will not wait; storage that is
// quicker than this thread has them in memory by the time they are copied, so one read that
// succeeds proves nothing.
TEST(FolderSource, DoesNotReadFromMemoryWhatWasPutOut) {
  const TempFolder folder;
  const std::string text(100'000, 'x');
  const std::string path = folder.write("c/a.jpg", text);
  const auto source = open_folder(folder);
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  bool refused = false;
  for (int attempt = 0; attempt < 50 && !refused; ++attempt) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    ASSERT_EQ(fsync(descriptor), 0);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
    if (is_in_page_cache(path, text.size())) GTEST_SKIP() << "this file system keeps what it has";
    refused = !source->storage().read_cached(0, buffer, bytes);
    if (!refused) {
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
    }
    EXPECT_EQ(text_of(*source, 0), text);
  }
  EXPECT_TRUE(refused);
}

TEST(FolderSource, TheBufferGrowsAndIsReused) {
  const TempFolder folder;
  folder.write("c/a.jpg", std::string(10000, 'a'));
  folder.write("c/b.jpg", "bb");
  const auto source = open_folder(folder);
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> bytes;
  ASSERT_TRUE(source->read(0, buffer, bytes).ok);
  const uint8_t* first = buffer.data();
  EXPECT_EQ(bytes.size(), 10000u);
  ASSERT_TRUE(source->read(1, buffer, bytes).ok);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "bb");
  EXPECT_EQ(bytes.data(), first);
}

TEST(FolderSource, SplitsAreFoundByName) {
  for (const char* test_name : {"test", "val", "validation"}) {
    const TempFolder folder;
    folder.write("train/a/1.jpg");
    folder.write("train/c/1.jpg");
    folder.write(std::string(test_name) + "/b/1.jpg");
    folder.write(std::string(test_name) + "/c/2.jpg");
    const std::string test = test_name;
    const auto train = open_folder(folder, Split::train);
    EXPECT_THAT(names_of(*train), ElementsAre("train/a/1.jpg", "train/c/1.jpg"));
    const auto tested = open_folder(folder, Split::test);
    EXPECT_THAT(names_of(*tested), ElementsAre(test + "/b/1.jpg", test + "/c/2.jpg"));
    const auto all = open_folder(folder, Split::all);
    EXPECT_EQ(all->size(), 4);
    // A class has the same number everywhere, also where it has no images.
    for (const auto* source : {&train, &tested, &all}) {
      EXPECT_THAT((*source)->class_names(), ElementsAre("a", "b", "c"));
      EXPECT_EQ((*source)->root(), folder.path());
    }
    EXPECT_THAT(labels_of(*train), ElementsAre(0, 2));
    EXPECT_THAT(labels_of(*tested), ElementsAre(1, 2));
    EXPECT_NE(train->fingerprint(), tested->fingerprint());
  }
}

TEST(FolderSource, AFlatFolderIsTrainingDataAndNotTestData) {
  const TempFolder folder;
  folder.write("a/1.jpg");
  EXPECT_EQ(open_folder(folder, Split::train)->size(), 1);
  EXPECT_THAT(folder_error(folder, Split::test),
              AllOf(HasSubstr("no folder test, val or validation"), HasSubstr("entries: a")));
  const TempFolder other;
  other.write("val/a/1.jpg");
  EXPECT_THAT(folder_error(other, Split::train),
              AllOf(HasSubstr("no folder train"), HasSubstr("val")));
  EXPECT_EQ(
      make_folder_source(other.path() + "/val", {.split = Split::test, .cache_dir = ""})->size(),
      1);
}

TEST(FolderSource, AClassWithoutImagesKeepsItsNumber) {
  const TempFolder folder;
  folder.write("c/1.jpg");
  folder.make_folder("b");
  const auto source = open_folder(folder);
  EXPECT_THAT(source->class_names(), ElementsAre("b", "c"));
  EXPECT_EQ(source->label(0), 1);
}

TEST(FolderSource, ErrorsSayWhatIsThere) {
  const TempFolder folder;
  EXPECT_THAT(folder_error(folder), AllOf(HasSubstr(folder.path()), HasSubstr("it is empty")));
  folder.write("picture.jpg");
  EXPECT_THAT(folder_error(folder), AllOf(HasSubstr("no class folders"), HasSubstr("picture.jpg")));
  folder.write("a/readme.txt");
  EXPECT_THAT(folder_error(folder),
              HasSubstr("no images (jpg, jpeg, png, bmp, webp, tif, tiff) in 1"));
  EXPECT_THROW(open_source(folder.path() + "/absent", Split::all), std::runtime_error);
  EXPECT_THROW(open_source(folder.path() + "/picture.jpg", Split::all), std::runtime_error);
}

TEST(FolderSource, FingerprintFollowsTheListNotTheContent) {
  const TempFolder folder;
  folder.write("a/1.jpg", "one");
  folder.write("b/2.jpg", "two");
  const uint64_t before = open_folder(folder)->fingerprint();
  folder.write("a/1.jpg", "changed");
  EXPECT_EQ(open_folder(folder)->fingerprint(), before);
  std::filesystem::rename(folder.path() + "/b", folder.path() + "/c");
  EXPECT_NE(open_folder(folder)->fingerprint(), before);
  std::filesystem::rename(folder.path() + "/c", folder.path() + "/b");
  folder.make_folder("0");  // moves every label
  EXPECT_NE(open_folder(folder)->fingerprint(), before);
}

}  // namespace
}  // namespace stoker
