// The program with samples of several pictures: check finds what is wrong with a pair, dump writes
// all rows, and peek shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/tar_maker.h"
#include "tests/tools/cli_harness.h"
#include "tests/tools/npy_reader.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class PicturesOfProgram : public ::testing::Test {
 protected:
  PicturesOfProgram() {
    for (int i = 0; i < 4; ++i) {
      const std::string key = "p" + std::to_string(i);
      const auto grey = static_cast<char>(40 * i + 20);
      tar_ += tar_member(key + ".ppm", ppm(grey)) + tar_member(key + ".control.ppm", ppm(grey + 9));
    }
  }

  static std::string ppm(int grey) {
    return "P6\n64 48\n255\n" + std::string(size_t{3} * 64 * 48, static_cast<char>(grey));
  }
  ProgramResult run(const std::string& command, std::vector<std::string> options) {
    const std::string path = data_.write("x.tar", tar_ + tar_end());
    options.insert(options.begin(),
                   {command, "--data", path, "--image-from", "ppm", "--label-from", "none"});
    return run_stoker(options);
  }

  TempFolder data_;
  std::string tar_;
};

constexpr char kList[] =
    "pictures(same(random_crop(16) | flip), control=same(random_crop(16) | flip))";

TEST_F(PicturesOfProgram, CheckNamesTheHalf) {
  const std::vector<std::string> pairs = {"--picture-from", "control=control.ppm"};
  EXPECT_EQ(run("check", pairs).exit_code, 0);
  tar_ += tar_member("a.ppm", ppm(3)) + tar_member("b.ppm", ppm(4)) +
          tar_member("b.control.ppm", "P6\n64 48\n255\nno");
  const ProgramResult result = run("check", pairs);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("picture 'control': there is none"));
  EXPECT_THAT(result.out, HasSubstr("\"reason\":\"truncated\""));
  EXPECT_THAT(result.out, HasSubstr("x.tar/b.ppm"));
  EXPECT_THAT(result.out, HasSubstr("\"reason\":\"no_pair\""));
  EXPECT_EQ(run("check", {}).exit_code, 0);
}

TEST_F(PicturesOfProgram, DumpWritesTheRowsOfAll) {
  const ProgramResult result =
      run("dump", {"--picture-from", "control=control.ppm", "--augment", kList, "--batch", "4",
                   "--no-shuffle", "--out", data_.path() + "/out"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const NpyFile own = read_npy(data_.path() + "/out/images_00000.npy"),
                other = read_npy(data_.path() + "/out/target_control_00000.npy");
  ASSERT_EQ(own.data.size(), other.data.size());
  for (size_t i = 0; i < own.data.size(); ++i) {
    ASSERT_EQ(static_cast<uint8_t>(own.data[i]) + 9, static_cast<uint8_t>(other.data[i]));
  }
  std::istringstream lines(read_text(data_.path() + "/out/rows.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const std::string draws = nlohmann::json::parse(line)["draws"];
  const size_t end = draws.find('\n');
  ASSERT_NE(end, draws.npos);
  EXPECT_EQ(draws.substr(0, end), draws.substr(end + 1));  // of one size, drawn alike
}

TEST_F(PicturesOfProgram, PeekShowsThemBesideTheOwnOne) {
  const std::string sheet = data_.path() + "/s.png";
  const auto size_with = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--count", "2", "--columns", "1", "-o", sheet});
    const ProgramResult result = run("peek", options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(result.out.find("sheet of"));
  };
  EXPECT_EQ(size_with({"--augment", "random_crop(16)"}).substr(0, 13), "sheet of 280 ");
  EXPECT_EQ(size_with({"--picture-from", "control=control.ppm", "--augment", kList}).substr(0, 13),
            "sheet of 412 ");
}

TEST_F(PicturesOfProgram, AreRefusedWithTheOption) {
  EXPECT_THAT(run("check", {"--picture-from", "control"}).err,
              HasSubstr("--picture-from has \"control\", must be NAME=FIELD"));
  const ProgramResult missing = run("dump", {"--augment", kList, "--out", data_.path() + "/out"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("the samples have no further pictures (--picture-from)"));
  EXPECT_THAT(run("dump", {"--picture-from", "control=control.ppm", "--augment", "random_crop(16)",
                           "--out", data_.path() + "/out"})
                  .err,
              HasSubstr("the samples have the picture 'control'"));
}

}  // namespace
}  // namespace stoker
