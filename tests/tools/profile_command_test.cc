// `stoker profile` as a user calls it: a feed, a training, and invalid options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"
#include "tools/command/command.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

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
  EXPECT_EQ(json["format"], "stoker profile 2");
  EXPECT_GT(json["measured"]["steps"], 0);
  EXPECT_GT(json["replayed"]["steps"], 0);
  EXPECT_EQ(json["feed"]["rows"], 8);
  EXPECT_EQ(json["dropped_spans"], 0);
  // Either a machine says what it took, or why not.
  EXPECT_THAT(result.out, HasSubstr("\nenergy: "));
  for (const std::string of : {"cpu", "gpu"}) {
    EXPECT_EQ(json["energy"][of + "_joules_per_1000_images"].is_null(),
              json["energy"]["why_not"].contains(of + "s"));
  }
  EXPECT_FALSE(json["slowest_files"].empty());
  const std::string file = json["slowest_files"][0]["name"];
  EXPECT_TRUE(std::filesystem::exists(data_ + "/" + file)) << file;
  EXPECT_THAT(json["verdict"]["headline"].get<std::string>(), HasSubstr("the device"));
  const std::string page = read_text(out_ + "/profile.html");
  EXPECT_THAT(page, HasSubstr(json["verdict"]["headline"]));
  // The page draws these lists by their names in the JSON.
  for (const std::string list : {"recommendations", "larger_machine", "evidence", "unknown"}) {
    EXPECT_TRUE(json["verdict"][list].is_array()) << list;
    EXPECT_THAT(page, HasSubstr("verdict." + list));
  }
  const Json trace = Json::parse(read_text(out_ + "/trace.json"));
  EXPECT_GT(trace["traceEvents"].size(), 100u);
}

TEST_F(ProfileCommand, JsonIsAllThatIsPrinted) {
  const ProgramResult result =
      run_stoker({"profile", "--data", data_, "--demand", "300", "--batch", "8", "--size", "32",
                  "--seconds", "0.5", "--workers", "1", "--json", "--out", out_});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_EQ(Json::parse(result.out), profile_json());
  EXPECT_TRUE(std::filesystem::exists(out_ + "/profile.html"));
}

// The run's own first epoch used to bring the files back, so that the rest was measured warm.
TEST_F(ProfileCommand, ColdStaysColdForAsLongAsItMeasures) {
  const ProgramResult result =
      run_stoker({"profile", "--data", data_, "--demand", "300", "--batch", "8", "--size", "32",
                  "--seconds", "0.6", "--workers", "1", "--no-trace", "--cold", "--out", out_});
  if (result.exit_code == kExitUsage && result.err.find("stays in memory") != std::string::npos) {
    GTEST_SKIP() << result.err;
  }
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_THAT(result.err, HasSubstr("put out of the page cache, and again before each read"));
  const Json measured = profile_json()["measured"];
  EXPECT_EQ(measured["cached_share"], 0);  // share of the files that were in memory
  EXPECT_GT(measured["steps"], 6);         // more than the 40 files of one epoch
}

TEST_F(ProfileCommand, OptionsOfAnEmulatedDeviceAreRefusedBesideATraining) {
  const ProgramResult result =
      run_stoker({"profile", "--cold", "--out", out_, "--", "train", "--data", data_});
  EXPECT_EQ(result.exit_code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("--cold is for an emulated device"));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(ProfileCommand, ATrainingIsProfiledAndLeavesNoCheckpoint) {
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
                                           "--micro-batch",
                                           "8",
                                           "--workers",
                                           "1",
                                           "--threads",
                                           "1",
                                           "--out",
                                           folder_.path() + "/run"});
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_THAT(result.out, HasSubstr("VERDICT"));
  EXPECT_THAT(result.err, HasSubstr("left out: --out and the receipt, for which a training hashes "
                                    "every sample; a profile ends by its --seconds"));
  const Json json = profile_json();
  EXPECT_EQ(json["left_out"], Json::array({"--out"}));
  EXPECT_GT(json["measured"]["steps"], 0);
  EXPECT_GT(json["measured"]["step"]["compute_s"], 0);
  EXPECT_GT(json["measured"]["step"]["update_s"], 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/run"));
  EXPECT_GT(json["checkpoint"]["seconds"], 0);
  EXPECT_GT(json["checkpoint"]["bytes"], 100000);
  EXPECT_EQ(json["checkpoint"]["every_steps"], 5) << "an epoch";
  EXPECT_THAT(result.out,
              HasSubstr("time with one every 5 steps [one that was written to " + out_));
  for (const auto& entry : std::filesystem::directory_iterator(out_)) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::StartsWith("profile."));
  }
}

#ifdef STOKER_FAKE_CUDA_DIR
// The driver's library is found by name: first a fake one, then a file that is none.
TEST_F(ProfileCommand, SaysWhatTheGpusDidInEachPhase) {
  const auto profile = [&](const std::string& libraries, const std::string& seconds) {
    return run_program({"env", "LD_LIBRARY_PATH=" + libraries, STOKER_PROGRAM, "profile", "--data",
                        data_, "--demand", "100", "--batch", "4", "--size", "32", "--seconds",
                        seconds, "--workers", "1", "--no-trace", "--out", out_});
  };
  const ProgramResult result = profile(STOKER_FAKE_CUDA_DIR, "2.5");
  ASSERT_EQ(result.exit_code, kExitOk) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("GPU 0 (cuda:0): busy 87% (87 to 87%), 1755 of 1980 MHz, memory 10.0 "
                        "of 80.0 GiB"));
  const Json json = profile_json();
  EXPECT_FALSE(json.contains("no_gpus"));
  for (const char* phase : {"measured", "replayed"}) {
    const Json& gpus = json[phase]["gpus"];
    ASSERT_EQ(gpus.size(), 2u) << phase;
    EXPECT_EQ(gpus[0]["cuda"], "cuda:0");
    EXPECT_EQ(gpus[0]["name"], "Fake GPU");
    EXPECT_GT(gpus[0]["readings"], 0);
    EXPECT_NEAR(gpus[0]["busy_share"], 0.87, 1e-9);
    EXPECT_NEAR(gpus[0]["pcie_to_gpu_bytes_per_second"], 1000 * 1024, 1e-6);
    EXPECT_TRUE(gpus[1]["busy_share"].is_null());  // it does not report it
  }
  std::ofstream(folder_.path() + "/libnvidia-ml.so.1") << "not a library";
  ASSERT_EQ(profile(folder_.path(), "0.6").exit_code, kExitOk);
  EXPECT_TRUE(profile_json()["measured"]["gpus"].empty());
  EXPECT_THAT(profile_json()["no_gpus"].get<std::string>(), HasSubstr("no NVIDIA driver"));
}
#endif

TEST_F(ProfileCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run_stoker({"profile"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_, "--demand", "-1"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--data", data_, "--", "train"}).exit_code, kExitUsage);
  EXPECT_EQ(run_stoker({"profile", "--", "eval"}).exit_code, kExitUsage);
  // Fails before the run: an hour of measuring would be lost.
  const ProgramResult lost = run_stoker(
      {"profile", "--data", data_, "--demand", "9", "--seconds", "3600", "--out", "/proc/none"});
  EXPECT_EQ(lost.exit_code, kExitFailed);
  EXPECT_THAT(lost.err, HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace stoker
