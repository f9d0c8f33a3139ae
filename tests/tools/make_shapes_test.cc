// The drawn data set: the same pictures for the same seed, in class folders, readable as JPEG.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <vector>

#include "tests/tools/cli_harness.h"
#include "tools/data/jpeg_writer.h"
#include "tools/data/shapes.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::map<std::string, std::string> files_below(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), root).string()] = read_text(entry.path().string());
    }
  }
  return files;
}

TEST(MakeShapes, FillsClassFoldersOfBothSplits) {
  TempFolder folder;
  const ProgramResult result = run_stoker({"make-shapes", "--out", folder.path() + "/s", "--count",
                                           "30", "--test-count", "10", "--size", "20"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto files = files_below(folder.path() + "/s");
  EXPECT_EQ(files.size(), 40u);
  for (const std::string& name : shape_names()) {
    EXPECT_EQ(files.count("train/" + name + "/" + name + "_000002.jpg"), 1u);
    EXPECT_EQ(files.count("test/" + name + "/" + name + "_000000.jpg"), 1u);
  }
  for (const auto& [name, bytes] : files) {
    EXPECT_EQ(bytes.substr(0, 2), "\xff\xd8") << name;
    EXPECT_EQ(bytes.substr(bytes.size() - 2), "\xff\xd9") << name;
  }
}

TEST(MakeShapes, IsAFunctionOfTheSeedAndNotOfTheThreads) {
  TempFolder folder;
  const auto draw = [&](const std::string& name, const std::string& seed,
                        const std::string& workers) {
    const ProgramResult result =
        run_stoker({"make-shapes", "--out", folder.path() + "/" + name, "--count", "40", "--size",
                    "16", "--seed", seed, "--workers", workers});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return files_below(folder.path() + "/" + name);
  };
  const auto first = draw("a", "5", "1");
  EXPECT_EQ(first, draw("b", "5", "4"));
  EXPECT_NE(first, draw("c", "6", "1"));
}

TEST(MakeShapes, AFullDiskIsOneLineWithThePath) {
  TempFolder folder;
  fs::create_directories(folder.path() + "/s/train/arrow");
  fs::create_symlink("/dev/full", folder.path() + "/s/train/arrow/arrow_000000.jpg");
  const ProgramResult result =
      run_stoker({"make-shapes", "--out", folder.path() + "/s", "--count", "10", "--size", "16"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("arrow_000000.jpg: No space left on device"));
}

TEST(MakeShapes, RefusesSizesAndCountsOutOfRange) {
  for (const auto& [option, value] : std::map<std::string, std::string>{
           {"--size", "0"}, {"--count", "0"}, {"--workers", "0"}, {"--seed", "x"}}) {
    const ProgramResult result = run_stoker({"make-shapes", "--out", "unused", option, value});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_THAT(result.err, HasSubstr(option));
    EXPECT_THAT(result.err, HasSubstr(value));
  }
}

TEST(Shapes, ClassesAndImagesDiffer) {
  const auto paint = [](int64_t split, int64_t index) {
    std::vector<uint8_t> pixels(32 * 32 * 3);
    paint_shape(1, split, index, {pixels.data(), 32, 32, 96});
    return pixels;
  };
  EXPECT_EQ(paint(0, 3), paint(0, 3));
  EXPECT_NE(paint(0, 3), paint(0, 13));
  EXPECT_NE(paint(0, 3), paint(1, 3));
}

TEST(JpegWriter, SaysWhyItCannotEncode) {
  uint8_t pixel[3] = {};
  EXPECT_THROW(encode_jpeg({pixel, 0, 1, 3}, 90), std::runtime_error);
}

}  // namespace
}  // namespace stoker
