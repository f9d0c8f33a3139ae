// stoker augment: what it lists is what --augment takes.

#include "pipeline/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(AugmentCommand, ListsEveryStageWithItsParameters) {
  const ProgramResult result = run_stoker({"augment"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const StageType* type : all_stages()) {
    EXPECT_THAT(result.out, HasSubstr(std::string("\n  ") + type->name)) << type->name;
    EXPECT_THAT(result.out, HasSubstr(std::string("\n      ") + type->help)) << type->name;
  }
  EXPECT_THAT(result.out,
              HasSubstr("\n  random_resized_crop([size], scale=(0.08, 1), ratio=(0.75, 1.33"));
  EXPECT_THAT(result.out, HasSubstr("\n      mode: constant, edge, reflect, symmetric\n"));
  EXPECT_THAT(result.out, HasSubstr("\n  cutout(size, value=127, p=1)\n"));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(AugmentCommand, ExplainsAListWithoutData) {
  const ProgramResult result = run_stoker(
      {"augment", "--augment", "resize | random_crop(padding=4) | invert | solarize(9) | equalize",
       "--size", "32"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "samples of 32 x 32 pixels (height, width)\n"
            "resize: done by the decoder while it decodes\n"
            "random_crop(padding=4): done by the decoder while it decodes\n"
            "invert: joined with its neighbours into one table of bytes\n"
            "solarize(9): joined with its neighbours into one table of bytes\n"
            "equalize: a pass of its own\n");
}

TEST(AugmentCommand, TakesTheSizeFromTheListOrTheModel) {
  const auto first_line = [](std::vector<std::string> words) {
    words.insert(words.begin(), "augment");
    const ProgramResult result = run_stoker(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  };
  const std::string crop = "random_resized_crop((16, 24)) | flip";
  EXPECT_THAT(first_line({"--augment", crop}), StartsWith("samples of 16 x 24 "));
  EXPECT_THAT(first_line({"--augment", crop, "--model", "resnet50"}),
              StartsWith("samples of 16 x 24 "));
  EXPECT_THAT(first_line({"--augment", "resize | flip", "--model", "airnet"}),
              StartsWith("samples of 32 x 32 "));
  EXPECT_THAT(first_line({"--augment", "resize | random_crop(padding=2, mode=reflect)"}),
              StartsWith("samples of 224 x 224 "));
  EXPECT_THAT(first_line({"--model", "resnet50", "--size", "96"}),
              StartsWith("samples of 96 x 96 "));
}

TEST(AugmentCommand, RefusesInOneLine) {
  const auto refusal = [](std::vector<std::string> words) {
    words.insert(words.begin(), "augment");
    const ProgramResult result = run_stoker(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(refusal({"--size", "32"}), HasSubstr("--size: it needs --augment or --model"));
  EXPECT_THAT(refusal({"--augment", ""}), HasSubstr("--augment: column 1 of '': expected a name"));
  EXPECT_THAT(refusal({"--augment", "resize(20)"}),
              HasSubstr("--augment: 'resize(size=20)' gives"));
  EXPECT_THAT(refusal({"--augment", "flip", "--view", "eval"}),
              HasSubstr("--view excludes --augment"));
}

}  // namespace
}  // namespace stoker
