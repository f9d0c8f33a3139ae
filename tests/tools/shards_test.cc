// Commands on shards and lists: what works on a folder works on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class Shards : public ::testing::Test {
 protected:
  Shards() {
    make_small_shapes(data_.path());
    for (const std::string part : {"train", "test"}) {
      const ProgramResult result =
          run_stoker({"pack", "--data", data_.path(), "--split", part, "--format", "tar", "--out",
                      place_.path() + "/" + part});
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }

  const TempFolder data_, place_;
};

TEST_F(Shards, AreCheckedAndIndexed) {
  ProgramResult result = run_stoker({"check", "--data", place_.path(), "--split", "all"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("60 images of 10 classes, 0 bad"));
  const std::string seek = place_.path() + "/seek";
  result = run_stoker({"index", "--data", place_.path(), "--out", seek});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("60 images, 60 indexed"));
}

TEST_F(Shards, ADamagedSampleIsNamedByShardAndKey) {
  const std::string shard = place_.path() + "/train/train-000000.tar";
  std::string bytes = read_text(shard);
  const size_t jpeg = bytes.find("\xff\xd8");
  bytes.replace(jpeg, 40, 40, '\0');
  place_.write("train/train-000000.tar", bytes);
  const ProgramResult result = run_stoker({"check", "--data", shard});
  EXPECT_EQ(result.exit_code, 1);
  const auto line = nlohmann::json::parse(result.out);
  EXPECT_THAT(line["name"].get<std::string>(), ::testing::MatchesRegex("train-000000.tar/.+jpg"));
  EXPECT_EQ(line["reason"], "not_an_image");
}

TEST_F(Shards, TrainAndEvaluateByTheirParts) {
  const std::string run = place_.path() + "/run";
  const std::vector<std::string> common = {"--data",   place_.path(), "--model", "airnet-narrow",
                                           "--size",   "32",          "--batch", "16",
                                           "--epochs", "1",           "--out",   run};
  std::vector<std::string> words = {"train"};
  words.insert(words.end(), common.begin(), common.end());
  ProgramResult result = run_stoker(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("of 20 images"));
  result = run_stoker({"eval", "--checkpoint", run, "--data", place_.path(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["samples"], 20);
}

TEST_F(Shards, FieldsAreObeyedOrRefused) {
  const std::string shard = place_.path() + "/train/train-000000.tar";
  ProgramResult result = run_stoker({"check", "--data", shard, "--label-from", "folder"});
  EXPECT_THAT(result.err, HasSubstr("40 images of 10 classes, 0 bad"));
  result = run_stoker({"check", "--data", shard, "--label-from", "none"});
  EXPECT_THAT(result.err, HasSubstr("40 images of 0 classes, 0 bad"));
  result = run_stoker({"check", "--data", shard, "--label-from", "colour"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--label-from takes cls, txt, json:FIELD, folder or none"));
  result = run_stoker({"check", "--data", data_.path(), "--label-from", "cls"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is an image folder, which has no such choice"));
  // Nothing can be learned from data without labels; they can be looked at.
  result = run_stoker({"train", "--data", shard, "--label-from", "none", "--model", "airnet-narrow",
                       "--out", place_.path() + "/run"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("name no classes"));
  const std::string sheet = place_.path() + "/sheet.png";
  result =
      run_stoker({"peek", "--data", shard, "--label-from", "none", "--count", "4", "-o", sheet});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(Shards, AHalfDownloadedShardIsOneError) {
  const std::string shard = place_.path() + "/train/train-000000.tar";
  std::filesystem::resize_file(shard, 3000);
  const ProgramResult result = run_stoker({"check", "--data", shard});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("--data: " + shard + ": at byte "));
  EXPECT_THAT(result.err, HasSubstr("it is probably half downloaded"));
}

TEST_F(Shards, AListAndItsPicturesFeedALoader) {
  std::string list = "path,label\n";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_.path() + "/test")) {
    if (!entry.is_regular_file()) continue;
    list += entry.path().string() + "," + entry.path().parent_path().filename().string() + "\n";
  }
  const std::string path = place_.write("list.csv", list + "missing.jpg,disc\n");
  const ProgramResult result = run_stoker({"check", "--data", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("21 images of 10 classes, 1 bad"));
  EXPECT_EQ(nlohmann::json::parse(result.out)["name"], "missing.jpg");
}

}  // namespace
}  // namespace stoker
