// stoker plan --what-if as a user calls it, and its table of cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"
#include "tools/command/command.h"
#include "tools/machine/host_info.h"
#include "tools/machine/measured_cores.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class WhatIf : public ::testing::Test {
 protected:
  WhatIf() { make_small_shapes(data_); }
  ProgramResult plan(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"env",          "TMPDIR=" + temporary_,
                                      STOKER_PROGRAM, "plan",
                                      "--gpus",       "2",
                                      "--rate",       "100",
                                      "--data",       data_,
                                      "--size",       "16",
                                      "--json",       "--seconds",
                                      "0.5"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  TempFolder folder_;
  const std::string data_ = folder_.path() + "/shapes";
  const std::string temporary_ = folder_.make_folder("temporary");
};

Json alternative_of(const Json& list, const std::string& what) {
  for (const Json& each : list) {
    if (each["what"] == what) return each;
  }
  ADD_FAILURE() << "no '" << what << "' in " << list.dump(1);
  return list.front();
}

TEST_F(WhatIf, MeasuresEachOnTheSamplesAndSortsByCost) {
  const ProgramResult result =
      plan({"--augment", "resize", "--price", "0.5", "--what-if", "tar", "--what-if", "pack=12",
            "--what-if", "pack=4000", "--what-if", "cached=1", "--what-if", "gpus=4", "--what-if",
            "augment=resize_center_crop | flip", "--what-if", "cores=xeon-amx"});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  const Json report = Json::parse(result.out);
  const Json& list = report["results"]["what_if"];
  const Json base = alternative_of(list, "as it is"), tar = alternative_of(list, "tar shards");
  const Json packed = alternative_of(list, "packed at 12 px"),
             four = alternative_of(list, "4 GPUs");
  for (const Json& each : list) {
    EXPECT_GT(each["cpu_ms_per_image"], 0) << each;
    if (each["cost_per_million"].is_null()) continue;
    EXPECT_NEAR(each["cost_per_million"].get<double>(),
                0.5 * each["core_hours_per_million"].get<double>(), 1e-9);
  }
  // The files as they are, and smaller ones.
  EXPECT_EQ(tar["storage_bytes_per_second"], base["storage_bytes_per_second"]);
  EXPECT_LT(packed["storage_bytes_per_second"].get<double>(),
            0.9 * tar["storage_bytes_per_second"].get<double>());
  // Derived from what was measured as it is.
  EXPECT_EQ(four["cpu_ms_per_image"], base["cpu_ms_per_image"]);
  EXPECT_NEAR(four["busy_cores"].get<double>(), 2 * base["busy_cores"].get<double>(), 1e-9);
  EXPECT_THAT(alternative_of(list, "100 % of the decoded pictures kept")["remark"],
              ::testing::EndsWith(" of memory or disk"));
  const auto cost = [](const Json& each) {
    return each["cost_per_million"].is_null() ? 1e300 : each["cost_per_million"].get<double>();
  };
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end(), [&](const Json& a, const Json& b) {
    return cost(a) < cost(b);
  })) << list.dump(1);
  EXPECT_THAT(report["notes"].dump(),
              HasSubstr("What if pack=4000: no picture's shorter side is longer than 4000 px."));
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));

  // Cores are compared only where this machine's have been measured.
  const bool known = read_host_info().cpu == kMeasuredCores[0].cpu;
  const std::string other = "cores of " + std::string(kMeasuredCores[1].cpu);
  if (known) {
    const Json xeon = alternative_of(list, other);
    EXPECT_NEAR(xeon["cpu_ms_per_image"].get<double>() / base["cpu_ms_per_image"].get<double>(),
                kMeasuredCores[1].image_us / kMeasuredCores[0].image_us, 1e-9);
    EXPECT_TRUE(xeon["cost_per_million"].is_null()) << "it has no price";
  } else {
    EXPECT_THAT(result.out,
                ::testing::AnyOf(HasSubstr("is not among the measured ones"), HasSubstr(other)));
  }
}

TEST_F(WhatIf, AllLeavesOutWhatThisDataCannotHave) {
  const ProgramResult result = plan({"--what-if", "all"});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  const Json report = Json::parse(result.out);
  const Json& list = report["results"]["what_if"];
  alternative_of(list, "as it is");
  alternative_of(list, "tar shards");
  alternative_of(list, "--pixels exact");
  EXPECT_TRUE(list[0]["cost_per_million"].is_null());
  EXPECT_THAT(report["notes"].dump(), HasSubstr("What if pack=512: no picture"));
}

TEST_F(WhatIf, RefusesWhatMakesNoSenseBeforeItMeasures) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    const ProgramResult result = plan(more);
    EXPECT_EQ(result.exit_code, kExitUsage) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  refused({"--what-if", "faster"}, "--what-if: 'faster' is none of all, index, tar, pack=PX");
  refused({"--what-if", "pack"}, "--what-if: 'pack' is none of");
  refused({"--what-if", "tar=3"}, "--what-if: 'tar=3' is none of");
  refused({"--price", "1"}, "--price: it is for --what-if");
  refused({"--what-if", "tar", "--price", "free"}, "--price: 'free' is not a number above 0");
  refused({"--what-if", "tar", "--price", "gpu=3"}, "--price: 'gpu' is none of the measured cores");
  refused({"--what-if", "cores=abacus"}, "--what-if cores: 'abacus' is none of");
  refused({"--what-if", "pack=1.5"}, "--what-if pack: '1.5' is not a whole number");
  refused({"--what-if", "cached=2"}, "--what-if cached: 2 is above 1");
  refused({"--what-if", "model=abacus"}, "--what-if model: 'abacus' is no model");
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));
}

// The table says what the recorded results say.
TEST(MeasuredCores, AreThoseOfTheirSources) {
  for (const MeasuredCore& core : kMeasuredCores) {
    const Json peers =
        Json::parse(read_text(std::string(STOKER_SOURCE_DIR) + "/" + std::string(core.source)));
    EXPECT_THAT(peers["machine"]["cpu"].get<std::string>(),
                ::testing::StartsWith(std::string(core.cpu) + " ("));
    std::vector<double> microseconds;
    for (const Json& turn : peers["sections"]["train"]["stoker-fast"]["turns"]) {
      microseconds.push_back(1e6 * turn[1].get<double>() / turn[0].get<double>());
    }
    std::sort(microseconds.begin(), microseconds.end());
    EXPECT_NEAR(microseconds[microseconds.size() / 2], core.image_us, 0.5) << core.name;
  }
}

}  // namespace
}  // namespace stoker
