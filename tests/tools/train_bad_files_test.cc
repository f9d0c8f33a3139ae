// Training works on a data set of which one file in twenty is bad, in every way that a file can be
// bad, and the quarantine list has exactly those files, every epoch, under both pixel policies.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/tools/train_runs.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kImages = 160;
constexpr int kBad = 8;  // 5 %

void overwrite(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(file.flush()) << path;
}

std::string noise_bytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class BadFiles : public ::testing::TestWithParam<const char*> {
 protected:
  // Name relative to the part's folder -> the code that it must be listed with.
  using List = std::map<std::string, std::string>;

  void SetUp() override {
    const ProgramResult made =
        run_stoker({"make-shapes", "--out", data_.path(), "--count", std::to_string(kImages),
                    "--test-count", "40", "--size", "48"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // Damages `count` of the part's files, spread over the classes, with each kind in turn.
  List spoil(const std::string& part, int count) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(data_.path() + "/" + part)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    List spoilt;
    for (int i = 0; i < count; ++i) {
      const fs::path& file = files[files.size() * static_cast<size_t>(i) / count + 1];
      spoilt[part + "/" + fs::relative(file, data_.path() + "/" + part).string()] =
          spoil_one(file.string(), i);
    }
    return spoilt;
  }
  static std::string spoil_one(const std::string& file, int turn) {
    const std::string whole = read_text(file);
    switch (turn % 4) {
      case 0:
        overwrite(file, std::string_view(whole).substr(0, whole.size() * 2 / 3));
        return "truncated";
      case 1:
        overwrite(file, "");
        return "empty";
      case 2:
        overwrite(file, "These are notes about a picture, and no picture.\n");
        return "not_an_image";
      default:
        overwrite(file, noise_bytes(whole.size(), static_cast<uint32_t>(turn)));
        return "not_an_image";
    }
  }
  ProgramResult train(const std::string& max_bad) const {
    return run_stoker(
        {"train", "--data",       data_.path(), "--model",     "airnet-narrow", "--batch",
         "20",    "--epochs",     "2",          "--precision", "fp32",          "--last-batch",
         "pad",   "--eval-every", "0",          "--max-bad",   max_bad,         "--micro-batch",
         "10",    "--pixels",     GetParam(),   "--out",       out_.path()});
  }
  // Returns the list of one epoch.
  List listed(const std::string& file, int epoch) const {
    List list;
    std::istringstream lines(read_text(out_.path() + "/" + file));
    for (std::string line; std::getline(lines, line);) {
      const auto row = nlohmann::json::parse(line);
      if (row["epoch"] != epoch) continue;
      EXPECT_TRUE(list.emplace(row["name"], row["reason"]).second) << "listed twice: " << line;
      EXPECT_EQ(row["path"], data_.path() + "/" + row["name"].get<std::string>());
    }
    return list;
  }

  TempFolder data_, out_;
};

TEST_P(BadFiles, TrainThroughWithAnExactList) {
  const List bad = spoil("train", kBad), bad_test = spoil("test", 2);
  ASSERT_EQ(bad.size(), size_t{kBad});
  const ProgramResult result = train("0.05");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(listed("quarantine.jsonl", 0), bad);
  EXPECT_EQ(listed("quarantine.jsonl", 1), bad);
  EXPECT_EQ(count_lines(read_text(out_.path() + "/quarantine.jsonl")), 2 * kBad);
  EXPECT_EQ(listed("quarantine_eval.jsonl", 0), bad_test);
  EXPECT_THAT(result.out, HasSubstr(std::to_string(2 * kBad) + " bad samples, listed in"));
  EXPECT_THAT(result.out, HasSubstr("of 38 images"));  // images that were evaluated
  EXPECT_EQ(result.out.find("nan"), std::string::npos) << result.out;
}

TEST_P(BadFiles, OneMoreThanTheBudgetEndsTheRunWithOneLine) {
  spoil("train", kBad);
  const ProgramResult result = train(std::to_string(kBad - 1));
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the budget is 7 of 160"));
  EXPECT_THAT(result.err, HasSubstr(out_.path() + "/quarantine.jsonl"));
}

INSTANTIATE_TEST_SUITE_P(TrainCommand, BadFiles,
                         ::testing::Values("fast", "exact", "exact-pillow12"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace stoker
