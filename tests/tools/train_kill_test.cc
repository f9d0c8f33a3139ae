// A run that is killed again and again, at different moments, and resumed, ends like one that never
// was: the same weights, metrics rows and receipt. And a reader that knows only the format can read
// its checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <bit>
#include <filesystem>
#include <sstream>

#include "pipeline/files/durable_file.h"
#include "tests/tools/train_runs.h"
#include "train/checkpoint/checkpoint.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int kKillSteps = 60;
constexpr double kKillPatience = 60;  // seconds
constexpr int kRounds = 4;            // of kills inside a write, until one has hit

class KilledRun : public TrainRuns {
 protected:
  std::vector<std::string> words(const std::string& name) const {
    return with(command(name, kKillSteps / 10), {"--checkpoint-steps", "2", "--log-interval", "1"});
  }
  // Kills the run, started or resumed, as soon as `moment` is true. Returns false if it ended
  // before.
  bool kill_when(const std::function<bool()>& moment) {
    RunningProgram program(with(words("killed"), {"--resume"}));
    const bool came = program.wait_until(moment, kKillPatience);
    program.send(SIGKILL);
    const ProgramResult result = program.wait();
    EXPECT_TRUE(result.signal == SIGKILL || result.exit_code == 0) << result.err;
    return came && result.signal == SIGKILL;
  }
  // Returns the folder of a checkpoint that is being written now, not one left by a killed run.
  fs::path under_way(fs::file_time_type since) const {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(run_folder("killed") + "/checkpoints", gone)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".tmp-step_") || name.ends_with("-old")) continue;
      const auto written = fs::last_write_time(entry.path(), gone);
      if (!gone && written > since) return entry.path();
    }
    return {};
  }
  // Kills while `file` of a checkpoint is being written ("": as soon as its folder exists). Returns
  // true if that left the checkpoint unfinished.
  bool kill_in_write(const std::string& file) {
    const auto since = fs::file_time_type::clock::now();
    fs::path folder;
    const bool killed = kill_when([&] {
      folder = under_way(since);
      return !folder.empty() && (file.empty() || fs::exists(folder / file));
    });
    return killed && fs::exists(folder);
  }
};

std::string checksum_line(const TensorInfo& tensor, std::span<const float> all) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < tensor.count; ++i) {
    sum += static_cast<uint64_t>(i + 1) *
           std::bit_cast<uint32_t>(all[static_cast<size_t>(tensor.offset + i)]);
  }
  std::string shape;
  for (const int64_t extent : tensor.shape) {
    if (!shape.empty()) shape += ',';
    shape += std::to_string(extent);
  }
  return tensor.name + " F32 " + shape + " " + std::to_string(sum);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the fields of each row about the training itself; the rest is measured time.
std::vector<std::string> trained_rows(const std::string& folder) {
  std::vector<std::string> rows;
  for (const std::string& line : lines_of(read_text(folder + "/metrics.jsonl"))) {
    rows.push_back(line.substr(0, line.find(", \"images_per_second\"")));
  }
  return rows;
}

TEST_F(KilledRun, EndsAsOneThatWasNeverKilled) {
  ASSERT_EQ(run_program(words("whole")).exit_code, 0);
  const std::string folder = run_folder("killed");
  // Before the first checkpoint; in the steps after it; at the switch to the next one.
  EXPECT_TRUE(kill_when([&] { return count_metrics(folder, "step") >= 1; }));
  EXPECT_TRUE(kill_when([&] { return fs::exists(folder + "/checkpoints/latest"); }));
  const std::string before = read_text(folder + "/checkpoints/latest");
  EXPECT_TRUE(kill_when([&] { return read_text(folder + "/checkpoints/latest") != before; }));
  // In the middle of a write; the write may be over before the signal comes, so try again.
  int unfinished = 0;
  for (const char* file : {"", "model.safetensors", "state.safetensors"}) {
    bool hit = false;
    for (int round = 0; round < kRounds && !hit; ++round) hit = kill_in_write(file);
    unfinished += hit;
  }
  EXPECT_GE(unfinished, 1) << "no kill fell into the writing of a checkpoint";
  const ProgramResult last = run_program(with(words("killed"), {"--resume"}));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  const size_t resumed = last.out.find("resumed from " + folder + "/checkpoints/step_");
  EXPECT_NE(resumed, std::string::npos) << last.out;
  EXPECT_EQ(last.out.find("resumed from", resumed + 1), std::string::npos) << "said twice";

  for (const char* file : {"model", "state"}) {
    ASSERT_NE(weights("whole", kKillSteps, file), "");
    EXPECT_TRUE(weights("whole", kKillSteps, file) == weights("killed", kKillSteps, file)) << file;
  }
  EXPECT_THAT(trained_rows(folder), ElementsAreArray(trained_rows(run_folder("whole"))));
  const ProgramResult diff = run_stoker({"receipt", "diff", run_folder("whole"), folder});
  EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
  for (const auto& entry : fs::directory_iterator(folder + "/checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-")) << entry.path();
  }
}

TEST_F(KilledRun, ItsModelIsReadByPythonFromTheFormatAlone) {
  if (run_program({"python3", "-c", ""}).exit_code != 0) GTEST_SKIP() << "no python3 here";
  ASSERT_EQ(run_program(command("a", 1)).exit_code, 0);
  const std::string path = run_folder("a") + "/checkpoints/step_00000010/model.safetensors";
  const ProgramResult python =
      run_program({"python3", STOKER_SOURCE_DIR "/tests/tools/read_safetensors.py", path});
  ASSERT_EQ(python.exit_code, 0) << python.err;

  const LoadedModel model = load_model(path);
  std::vector<std::string> expected;
  for (const TensorInfo& tensor : parameter_table(model.info.net())) {
    expected.push_back(checksum_line(tensor, model.parameters));
  }
  for (const TensorInfo& tensor : statistics_table(model.info.net())) {
    expected.push_back(checksum_line(tensor, model.statistics));
  }
  expected.push_back("metadata class_names,classes,format,recipe");
  EXPECT_EQ(lines_of(python.out), expected);
  for (const char* tensor : {"whiten.weight F32 24,3,2,2 ", "layers.0.norm1.running_var F32 32 ",
                             "head.weight F32 10,128 "}) {
    EXPECT_THAT(lines_of(python.out), Contains(HasSubstr(tensor)));
  }
}

}  // namespace
}  // namespace stoker
