// The trainer's memory, measured from outside: at most what its printed plan says, and not more in
// the tenth epoch than in the second.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/train_runs.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// MiB that no plan counts: heap of the libraries, stacks of some twenty threads and their malloc
// arenas, compiled kernels of oneDNN, the run's own lists. 25 to 36 were measured.
constexpr double kProgramMebibytes = 56;
// MiB that ten epochs may add: metrics, receipts, arenas that fill up. 0.7 was measured, all of it
// in the first epochs; a list of images or a feed that is kept would be several.
constexpr double kGrowthMebibytes = 2.5;
constexpr double kMemoryPatience = 120;  // seconds

struct Usage {
  double peak = 0;     // MiB, without what is mapped from files (program, libraries)
  double present = 0;  // MiB, likewise
};

Usage usage_of(pid_t process) {
  std::istringstream lines(read_text("/proc/" + std::to_string(process) + "/status"));
  double peak = 0, resident = 0, files = 0;
  for (std::string line; std::getline(lines, line);) {
    const double mebibytes = std::atof(line.c_str() + line.find_first_of('\t')) / 1024;
    if (line.starts_with("VmHWM:")) peak = mebibytes;
    if (line.starts_with("VmRSS:")) resident = mebibytes;
    if (line.starts_with("RssFile:")) files = mebibytes;
  }
  return {peak - files, resident - files};
}

// Returns the number after `words` in a line of the plan in config.json.
double planned(const std::string& run_folder, const std::string& begin, const std::string& words) {
  const auto config = nlohmann::json::parse(read_text(run_folder + "/config.json"));
  for (const std::string line : config["plan"]) {
    const size_t at = line.find(words);
    if (line.starts_with(begin) && at != std::string::npos) {
      return std::atof(line.c_str() + at + words.size());
    }
  }
  ADD_FAILURE() << "no line " << begin << " ... " << words;
  return 0;
}

class TrainMemory : public TrainRuns {
 protected:
  std::vector<std::string> words(const std::string& model, const std::string& name) const {
    return {STOKER_PROGRAM, "train", "--data",        data(), "--model", model,
            "--batch",      "20",    "--micro-batch", "10",   "--size",  "32",
            "--precision",  "fp32",  "--epochs",      "1000", "--out",   run_folder(name)};
  }
  // Returns the plan's number for pictures that are not unusual.
  double promised(const std::string& name) const {
    return planned(run_folder(name), "memory: ", ": ");
  }
};

// The total includes every other line, also the frames of CMYK pictures.
TEST_F(TrainMemory, InAllIsAll) {
  ASSERT_EQ(run_program(with(command("all", 1), {"--workers", "3"})).exit_code, 0);
  const std::string run = run_folder("all");
  double lines = planned(run, "memory, checkpoints", ": ");
  for (const std::string feed : {"memory, feed:", "memory, feed of the evaluation:"}) {
    for (const std::string part : {"ring ", "slots ", "scratch up to ", "frames up to "}) {
      lines += planned(run, feed, part);
    }
  }
  const double all = planned(run, "memory: ", "expected, ");
  EXPECT_GT(all, lines);  // by the engine's
  EXPECT_LT(all, lines + 64);
  EXPECT_GT(planned(run, "memory, feed:", "frames up to "), 3 * 500);  // three workers' together
}

TEST_F(TrainMemory, OfCheckpointsIsOneCopyOfTheState) {
  // With eleven million parameters, a copy too many is visible.
  const int64_t state = 2 * total_count(parameter_table(make_net("resnet18", {32, 32}, 10)));
  const double copy = static_cast<double>(state) * sizeof(float) / (1 << 20);
  for (int epoch = 1; epoch <= 2; ++epoch) {  // the first ends with a checkpoint, the second begins
    RunningProgram program(with(words("resnet18", "b"), {"--resume", "--keep", "1"}));
    EXPECT_TRUE(program.wait_until([&] { return count_metrics(run_folder("b"), "epoch") >= epoch; },
                                   kMemoryPatience));
    const Usage usage = usage_of(program.pid());
    program.send(SIGKILL);
    EXPECT_GT(usage.peak, copy);
    EXPECT_NEAR(planned(run_folder("b"), "memory, checkpoints", ": "), copy, 1);
    EXPECT_LE(usage.peak, promised("b") + kProgramMebibytes) << "the plan: " << promised("b");
  }
}

// Adam has a third copy of the weights, and so has its checkpoint; parts add one more sum.
TEST_F(TrainMemory, OfAdamAndPartsIsInThePlan) {
  const int64_t state = 3 * total_count(parameter_table(make_net("resnet18", {32, 32}, 10)));
  const double copy = static_cast<double>(state) * sizeof(float) / (1 << 20);
  RunningProgram program(
      with(words("resnet18", "c"), {"--optimizer", "adam", "--accumulate", "2"}));
  EXPECT_TRUE(program.wait_until([&] { return count_metrics(run_folder("c"), "epoch") >= 1; },
                                 kMemoryPatience));
  const Usage usage = usage_of(program.pid());
  program.send(SIGKILL);
  EXPECT_NEAR(planned(run_folder("c"), "memory, checkpoints", ": "), copy, 1);
  EXPECT_LE(usage.peak, promised("c") + kProgramMebibytes) << "the plan: " << promised("c");
  EXPECT_GT(usage.peak, 2 * copy);  // the engine's states and the checkpoint's
}

TEST_F(TrainMemory, DoesNotGrowOverTenEpochsAndStaysWithinThePlan) {
  RunningProgram program(words("airnet-narrow", "a"));
  const auto after_epoch = [&](int epochs) {
    EXPECT_TRUE(program.wait_until(
        [&] { return count_metrics(run_folder("a"), "epoch") >= epochs; }, kMemoryPatience));
    return usage_of(program.pid());
  };
  const Usage second = after_epoch(2), tenth = after_epoch(10);
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGTERM);
  RecordProperty("peak_mebibytes", std::to_string(tenth.peak));
  EXPECT_GT(second.present, 5);
  EXPECT_LE(tenth.peak - second.peak, kGrowthMebibytes) << second.peak << " -> " << tenth.peak;
  EXPECT_LE(tenth.peak, promised("a") + kProgramMebibytes) << "the plan: " << promised("a");
}

}  // namespace
}  // namespace stoker
