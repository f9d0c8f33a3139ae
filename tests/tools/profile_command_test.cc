// `stoker profile` as a user calls it: a feed, a training, and what makes no sense.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"
#include "tools/command.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class ProfileCommand : public ::testing::Test {
 protected:
  ProfileCommand() { make_small_shapes(data_); }
  Json profile_json() const { return Json::parse(read_text(out_ + "/profile.json")); }

  TempFolder folder_;
  const std::string data_ = folder_.path() + "/shapes", out_ = folder_.path() + "/out";
};

TEST_F(ProfileCommand, AFeedGetsAVerdictAndItsFiles) {
  const ProgramResult result =
      run_stoker({"profile", "--data", data_, "--demand", "300", "--batch", "8", "--size", "32",
                  "--seconds", "0.6", "--workers", "1", "--out", out_});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_THAT(result.out, HasSubstr("VERDICT"));
  EXPECT_THAT(result.out, HasSubstr("warm-up"));
  const Json json = profile_json();
  EXPECT_EQ(json["format"], "stoker profile 1");
  EXPECT_GT(json["measured"]["steps"], 0);
  EXPECT_GT(json["replayed"]["steps"], 0);
  EXPECT_EQ(json["feed"]["rows"], 8);
  EXPECT_EQ(json["dropped_spans"], 0);
  EXPECT_FALSE(json["slowest_files"].empty());
  const std::string file = json["slowest_files"][0]["name"];
  EXPECT_TRUE(std::filesystem::exists(data_ + "/" + file)) << file;
  EXPECT_THAT(json["verdict"]["headline"].get<std::string>(), HasSubstr("the device"));
  EXPECT_THAT(read_text(out_ + "/profile.html"), HasSubstr(json["verdict"]["headline"]));
  const Json trace = Json::parse(read_text(out_ + "/trace.json"));
  EXPECT_GT(trace["traceEvents"].size(), 100u);
}

TEST_F(ProfileCommand, ATrainingIsProfiledAndSavesNothing) {
  const ProgramResult result = run_stoker({"profile",
                                           "--seconds",
                                           "0.6",
                                           "--out",
                                           out_,
                                           "--no-trace",
                                           "--",
                                           "train",
                                           "--data",
                                           data_,
                                           "--model",
                                           "airnet-narrow",
                                           "--batch",
                                           "8",
                                           "--rows-per-shard",
                                           "8",
                                           "--workers",
                                           "1",
                                           "--threads",
                                           "1",
                                           "--out",
                                           folder_.path() + "/run"});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_THAT(result.out, HasSubstr("VERDICT"));
  const Json json = profile_json();
  EXPECT_GT(json["measured"]["steps"], 0);
  EXPECT_GT(json["measured"]["step"]["compute_s"], 0);
  EXPECT_GT(json["measured"]["step"]["update_s"], 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/run"));
  EXPECT_FALSE(std::filesystem::exists(out_ + "/trace.json"));
}

TEST_F(ProfileCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run_stoker({"profile"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_, "--demand", "-1"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_, "--", "train"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--", "eval"}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace stoker
