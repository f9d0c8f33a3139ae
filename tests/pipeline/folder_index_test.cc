#include "pipeline/source/folder_index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTenSeconds = 10'000'000'000;

// A folder of two classes whose list has been cached as if the folder had not changed for a while.
class CachedIndex : public ::testing::Test {
 protected:
  CachedIndex() : query_{folder_.path(), {""}, {""}}, cache_(index_cache_path(dir(), query_)) {
    folder_.write("a/1.jpg");
    folder_.write("a/sub/2.jpg");
    folder_.write("b/3.jpg");
    scan_and_save();
  }
  std::string dir() const { return cache_folder_.path() + "/made/on/demand"; }
  void scan_and_save() {
    ScannedFolder scanned = scan_folder(query_);
    scanned.started_ns += kTenSeconds;
    expected_ = scanned.index.fingerprint();
    ASSERT_TRUE(save_index(cache_, query_, scanned));
  }
  bool loads() {
    FolderIndex index;
    if (!load_index(cache_, query_, index)) return false;
    EXPECT_EQ(index.fingerprint(), expected_);
    return true;
  }

  TempFolder folder_, cache_folder_;
  FolderQuery query_;
  std::string cache_;
  uint64_t expected_ = 0;
};

TEST_F(CachedIndex, RemembersWhatIsLeftOutAndWhatHasTwoLabels) {
  folder_.write("a/x.gif");
  folder_.write("a/sub/y.GIF");
  folder_.write("b/README");
  folder_.write("c.png");
  folder_.link(folder_.path() + "/a/1.jpg", "b/again.jpg");
  folder_.link(folder_.path() + "/a/1.jpg", "a/same_label.jpg");
  folder_.link(folder_.path() + "/a/sub", "b/folder");
  folder_.link(folder_.path() + "/nowhere.jpg", "b/gone.jpg");
  folder_.link(folder_.path() + "/nowhere.jpg", "a/gone.jpg");
  scan_and_save();
  FolderIndex index;
  ASSERT_TRUE(load_index(cache_, query_, index));
  const std::vector<FolderRemark> left_out = {{"", 1, "b/README", ""},
                                              {".gif", 3, "a/sub/y.GIF", ""}};
  EXPECT_EQ(index.left_out, left_out);
  EXPECT_EQ(index.beside, (std::vector<FolderRemark>{{".png", 1, "c.png", ""}}));
  ASSERT_EQ(index.two_labels.size(), 1u);
  EXPECT_EQ(index.two_labels[0].files, 2);
  EXPECT_EQ(index.two_labels[0].first, "a/1.jpg");
  EXPECT_EQ(index.two_labels[0].second, "b/again.jpg");
}

TEST_F(CachedIndex, IsStaleWhenAnyFolderChanged) {
  const std::vector<std::function<void()>> changes = {
      [&] { folder_.write("a/4.jpg"); },
      [&] { folder_.write("a/sub/4.jpg"); },
      [&] { fs::remove(folder_.path() + "/b/3.jpg"); },
      [&] { fs::rename(folder_.path() + "/a/1.jpg", folder_.path() + "/a/9.jpg"); },
      [&] { folder_.make_folder("c"); },
      [&] { fs::remove_all(folder_.path() + "/b"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    ASSERT_TRUE(loads()) << i;
    usleep(20'000);  // more than a tick of the file system's clock
    changes[i]();
    EXPECT_FALSE(loads()) << i;
    scan_and_save();
  }
}

// tar and rsync do this: the folder's time is set back after its content changed.
TEST_F(CachedIndex, IsStaleEvenIfTheTimeWasPutBack) {
  const fs::path path = folder_.path() + "/b";
  const auto time = fs::last_write_time(path);
  usleep(20'000);
  folder_.write("b/4.jpg");
  fs::last_write_time(path, time);
  EXPECT_FALSE(loads());
}

TEST_F(CachedIndex, ContentOfFilesDoesNotMatter) {
  folder_.write("a/1.jpg", "other bytes");
  EXPECT_TRUE(loads());
}

// A forged list with a correct checksum.
TEST_F(CachedIndex, IsIgnoredWhenItsOffsetsLeadOutside) {
  using Change = std::function<void(FolderIndex&)>;
  const auto loads_with = [&](const Change& change) {
    ScannedFolder scanned = scan_folder(query_);
    scanned.started_ns += kTenSeconds;
    change(scanned.index);
    EXPECT_TRUE(save_index(cache_, query_, scanned));
    FolderIndex index;
    return load_index(cache_, query_, index);
  };
  EXPECT_TRUE(loads_with([](FolderIndex&) {}));
  const std::vector<Change> changes = {
      [](FolderIndex& index) { index.names[2] = index.text.size(); },
      [](FolderIndex& index) { index.folders[1].path = ~uint64_t{0}; },
      [](FolderIndex& index) { index.text.back() = 'x'; },
      [](FolderIndex& index) { index.folders[2].label = 2; },
      [](FolderIndex& index) { index.folders[0].label = -1; },
      [](FolderIndex& index) { index.folders[0].first_file = 1; },
      [](FolderIndex& index) { index.folders[2].first_file = 1; },
      [](FolderIndex& index) { index.folders[2].first_file = 3; },
      [](FolderIndex& index) { index.folders.clear(); },
      [](FolderIndex& index) { index.names.clear(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) EXPECT_FALSE(loads_with(changes[i])) << i;
}

TEST_F(CachedIndex, IsOfOneQuery) {
  FolderQuery other = query_;
  other.class_parts = {"", "a"};
  FolderIndex index;
  EXPECT_NE(index_cache_path(dir(), other), cache_);
  EXPECT_FALSE(load_index(cache_, other, index));  // as after a collision of the hashed names
}

TEST_F(CachedIndex, IsNotMadeOfAFolderThatJustChanged) {
  folder_.write("a/5.jpg");
  EXPECT_FALSE(save_index(cache_, query_, scan_folder(query_)));
}

TEST_F(CachedIndex, AnUnwritableCacheIsNoError) {
  ScannedFolder scanned = scan_folder(query_);
  scanned.started_ns += kTenSeconds;
  EXPECT_FALSE(save_index("/proc/nothing/index.bin", query_, scanned));
  cache_folder_.write("file");
  EXPECT_FALSE(save_index(cache_folder_.path() + "/file/index.bin", query_, scanned));
}

TEST(FolderIndex, AFolderThatCannotBeReadIsAnErrorWithItsPath) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TempFolder folder;
  folder.write("a/1.jpg");
  const std::string closed = folder.make_folder("a/closed");
  fs::permissions(closed, fs::perms::none);
  EXPECT_EQ(thrown_by<std::runtime_error>([&] {
              scan_folder({folder.path(), {""}, {""}});
            }),
            closed + ": Permission denied");
  fs::permissions(closed, fs::perms::owner_all);
}

TEST(FolderIndex, AFolderThatIsNotThereIsAnErrorWithItsPath) {
  const TempFolder folder;
  EXPECT_EQ(thrown_by<std::runtime_error>([&] {
              scan_folder({folder.path(), {"train"}, {"train"}});
            }),
            folder.path() + "/train: No such file or directory");
}

TEST(FolderIndex, ManyFoldersComeInOrderWhateverTheThreadsDo) {
  const TempFolder folder;
  for (int c = 0; c < 40; ++c) {
    for (int i = 0; i < 5; ++i) {
      folder.write("class" + std::to_string(c) + "/" + std::to_string(i) + ".jpg");
    }
  }
  const FolderQuery query{folder.path(), {""}, {""}};
  const FolderIndex first = scan_folder(query).index;
  ASSERT_EQ(first.size(), 200);
  for (SampleId id = 0; id < first.size(); ++id) {
    EXPECT_EQ(first.folder_of(id).label, id / 5);
    EXPECT_EQ(first.folder_path(id), first.class_names[static_cast<size_t>(id / 5)]);
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(scan_folder(query).index.fingerprint(), first.fingerprint());
}

}  // namespace
}  // namespace stoker
