// Tests with paths that are not regular files: a run reads the files in its folder to the end,
// which a pipe and a device do not have.
#include "pipeline/files/durable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/metrics.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class NotAFile : public ::testing::TestWithParam<const char*> {
 protected:
  // Makes a pipe that nobody writes to, or a link to a device.
  std::string make(const std::string& name) const {
    const std::string path = folder_.path() + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    if (std::string(GetParam()) == "pipe") {
      EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    } else {
      folder_.link(GetParam(), name);
    }
    return path;
  }

  TempFolder folder_;
};

TEST_P(NotAFile, IsNeitherReadNorWritten) {
  const std::string path = make("it");
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { read_whole_file(path); }),
              AllOf(HasSubstr(path), HasSubstr("not a regular file")));
  const std::string_view piece = "x";
  EXPECT_THAT(thrown_by<std::runtime_error>([&] {
                write_flushed(path, {&piece, 1});
              }),
              HasSubstr(path));
}

TEST_P(NotAFile, InTheMetricsPlaceIsOneError) {
  for (const char* name : {"metrics.jsonl", "metrics.csv"}) {
    const std::string path = make(name);
    EXPECT_THAT(thrown_by<std::runtime_error>([&] { MetricsLog log(folder_.path(), 0); }),
                AllOf(HasSubstr(path), HasSubstr("not a regular file")));
    fs::remove(path);
  }
}

TEST_P(NotAFile, InACheckpointMakesItTorn) {
  make("step_00000001/trainer.json");
  std::vector<std::string> torn;
  EXPECT_EQ(newest_checkpoint(folder_.path(), &torn), "");
  ASSERT_EQ(torn.size(), 1u);
  EXPECT_THAT(torn[0], HasSubstr("not a regular file"));
}

INSTANTIATE_TEST_SUITE_P(DurableFile, NotAFile,
                         ::testing::Values("pipe", "/dev/full", "/dev/zero", "/dev/null"),
                         [](const auto& kind) { return fs::path(kind.param).filename().string(); });

TEST(DurableFile, AFolderIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { read_whole_file(folder.path()); }),
              HasSubstr(folder.path()));
}

TEST(DurableFile, ALinkToAFileIsRead) {
  const TempFolder folder;
  folder.write("real", "text");
  folder.link("real", "link");
  EXPECT_EQ(read_whole_file(folder.path() + "/link"), "text");
}

TEST(DurableFile, IsReadInPieces) {
  const TempFolder folder;
  std::string content(200'000, 'a');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i >> 7);
  const std::string path = folder.write("big", content);
  std::string pieces;
  read_pieces(path, [&](std::string_view piece) {
    EXPECT_LE(piece.size(), size_t{1} << 16);
    pieces += piece;
  });
  EXPECT_TRUE(pieces == content);
  std::string part(100'000, '\0');
  read_part(path, 99'999, part);
  EXPECT_TRUE(part == content.substr(99'999, 100'000));
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { read_part(path, 100'001, part); }),
              AllOf(HasSubstr(path), HasSubstr("ends 1 bytes too early")));
}

}  // namespace
}  // namespace stoker
