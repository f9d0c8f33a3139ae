#include "train/run/metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "pipeline/files/durable_file.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

std::vector<std::string> lines(const std::string& path) {
  std::istringstream text(read_whole_file(path));
  std::vector<std::string> result;
  for (std::string line; std::getline(text, line);) result.push_back(line);
  return result;
}

StepReport step_report(int64_t step) {
  StepReport report;
  report.step = step;
  report.epoch = (step - 1) / 10;
  report.step_in_epoch = step - report.epoch * 10;
  report.steps_per_epoch = 10;
  report.loss = 2.5;
  report.accuracy = 0.25;
  return report;
}

TEST(RateMeter, MedianAndJitterAsTfCnnBenchmarks) {
  RateMeter meter(100, 0);
  EXPECT_EQ(meter.rate().images_per_second, 0);
  for (const int speed : {100, 200, 400, 500, 1000}) {
    meter.add(static_cast<int64_t>(100 * 1e9 / speed));
  }
  EXPECT_NEAR(meter.rate().images_per_second, 400, 1e-3);
  EXPECT_NEAR(meter.rate().jitter, 1.4826 * 200, 1e-3);  // deviations 0 100 200 300 600
  meter.add(static_cast<int64_t>(100 * 1e9 / 300));
  EXPECT_NEAR(meter.rate().images_per_second, 350, 1e-3);
}

TEST(RateMeter, ForgetsStepsBeyondItsWindow) {
  RateMeter meter(10, 3);
  for (int i = 0; i < 10; ++i) meter.add(1'000'000'000);
  for (int i = 0; i < 3; ++i) meter.add(500'000'000);
  EXPECT_NEAR(meter.rate().images_per_second, 20, 1e-9);
  EXPECT_EQ(meter.rate().jitter, 0);
}

TEST(MetricsLog, WritesARowPerReport) {
  const TempFolder folder;
  {
    MetricsLog log(folder.path(), 0);
    log.add(step_report(5));
    EpochReport epoch;
    epoch.step = 10;
    epoch.loss = NAN;
    epoch.eval = EvalResult{{.top1 = 0.5, .top5 = 1, .loss = 1.25, .samples = 7}};
    log.add(epoch);
  }
  const auto json = lines(folder.path() + "/metrics.jsonl");
  ASSERT_EQ(json.size(), 2u);
  const auto first = nlohmann::json::parse(json[0]), second = nlohmann::json::parse(json[1]);
  EXPECT_EQ(first["kind"], "step");
  EXPECT_EQ(first["step"], 5);
  EXPECT_EQ(first["epochs_done"], 0.5);
  EXPECT_EQ(first["loss"], 2.5);
  EXPECT_EQ(second["kind"], "epoch");
  EXPECT_TRUE(second["loss"].is_null());
  EXPECT_EQ(second["eval_top1"], 0.5);
  const auto csv = lines(folder.path() + "/metrics.csv");
  ASSERT_EQ(csv.size(), 3u);
  for (const std::string& line : csv) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 15) << line;
  }
  EXPECT_EQ(csv[0].substr(0, 16), "kind,epoch,step,");
  EXPECT_EQ(csv[1].substr(0, 9), "step,0,5,");
}

TEST(MetricsLog, AWarningIsARowOfItsOwn) {
  const TempFolder folder;
  {
    MetricsLog log(folder.path(), 0);
    log.add_warning(3, "cuda:0: no graphs: \"that\"\n\xff");
    log.add(step_report(5));
  }
  const auto json = lines(folder.path() + "/metrics.jsonl");
  ASSERT_EQ(json.size(), 2u);
  const auto row = nlohmann::json::parse(json[0]);
  EXPECT_EQ(row["kind"], "warning");
  EXPECT_EQ(row["step"], 3);
  EXPECT_EQ(row["warning"], "cuda:0: no graphs: \"that\"\n\xef\xbf\xbd");
  EXPECT_EQ(lines(folder.path() + "/metrics.csv").size(), 2u) << "the header and the step";
}

TEST(MetricsLog, AResumedRunDropsRowsThatItWillWriteAgain) {
  const TempFolder folder;
  {
    MetricsLog log(folder.path(), 0);
    for (int64_t step = 1; step <= 20; ++step) log.add(step_report(step));
  }
  const std::string torn = read_whole_file(folder.path() + "/metrics.jsonl") + R"({"kind": "st)";
  replace_file(folder.path() + "/metrics.jsonl", torn);
  {
    MetricsLog log(folder.path(), 12);
    log.add(step_report(13));
  }
  EXPECT_EQ(lines(folder.path() + "/metrics.jsonl").size(), 13u);
  const auto csv = lines(folder.path() + "/metrics.csv");
  ASSERT_EQ(csv.size(), 14u);
  EXPECT_EQ(csv[13].substr(0, 10), "step,1,13,");
  { MetricsLog log(folder.path(), 0); }
  EXPECT_EQ(lines(folder.path() + "/metrics.csv").size(), 1u);
}

// Nothing is written in the working directory, nor in the root, where "" + "/metrics.jsonl" would
// be.
TEST(MetricsLog, WritesNothingWithoutAFolder) {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  {
    MetricsLog log("", 0);
    log.add(step_report(1));
  }
  EXPECT_TRUE(std::filesystem::is_empty("."));
  EXPECT_FALSE(std::filesystem::exists("/metrics.jsonl"));
  std::filesystem::current_path(before);
}

// A row that cannot be written is an error with the path.
TEST(MetricsLog, AFileThatTakesNoMoreIsAnError) {
  const TempFolder folder;
  MetricsLog log(folder.path(), 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1 << 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string why;
  for (int64_t step = 1; step <= 100 && why.empty(); ++step) {
    try {
      log.add(step_report(step));
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(why, "cannot write " + folder.path() + "/metrics.jsonl: File too large");
}

}  // namespace
}  // namespace stoker
