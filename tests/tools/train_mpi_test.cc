// stoker train under mpirun: two processes train as two replicas, stop together, and neither
// outlives the other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TrainMpi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TempFolder>();
    make_small_shapes(data_->path());
  }
  static void TearDownTestSuite() { data_.reset(); }

  std::string folder(const std::string& name) const { return out_.path() + "/" + name; }
  // A tiny run: 40 samples, 10 steps per epoch.
  std::vector<std::string> train(const std::string& name, int epochs) const {
    return {STOKER_PROGRAM,  "train",
            "--data",        data_->path(),
            "--model",       "airnet-narrow",
            "--batch",       "4",
            "--micro-batch", "2",
            "--last-batch",  "pad",
            "--eval-every",  "0",
            "--threads",     "1",
            "--workers",     "1",
            "--precision",   "fp32",
            "--epochs",      std::to_string(epochs),
            "--out",         folder(name)};
  }
  // The same in several processes, with a time limit that only a hang reaches.
  static std::vector<std::string> under_mpirun(const std::vector<std::string>& command,
                                               const std::string& processes = "2") {
    std::vector<std::string> words = {"timeout",
                                      "-k",
                                      "5",
                                      "300",
                                      "env",
                                      "OMPI_ALLOW_RUN_AS_ROOT=1",
                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                      STOKER_MPIEXEC,
                                      "--oversubscribe",
                                      "-np",
                                      processes};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::string weights(const std::string& name, int step) const {
    char checkpoint[32];
    std::snprintf(checkpoint, sizeof checkpoint, "step_%08d", step);
    return read_text(folder(name) + "/checkpoints/" + checkpoint + "/model.safetensors");
  }
  // Returns the process of this rank that writes to the folder; 0: there is none.
  pid_t process_of(const std::string& name, int rank) const {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string path = entry.path().string();
      const std::string command = read_text(path + "/cmdline");
      if (command.find(STOKER_PROGRAM) != 0 || command.find(folder(name)) == std::string::npos) {
        continue;
      }
      const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
      if (read_text(path + "/environ").find(variable) != std::string::npos) {
        return std::stoi(entry.path().filename().string());
      }
    }
    return 0;
  }

  static inline std::unique_ptr<TempFolder> data_;
  TempFolder out_;
};

TEST_F(TrainMpi, TwoProcessesTrainAsTwoReplicas) {
  auto one = train("one", 2);
  one.insert(one.end(), {"--devices", "cpu:4"});
  ASSERT_EQ(run_program(one).exit_code, 0);
  auto two = train("two", 2);
  two.insert(two.end(), {"--devices", "cpu:2"});
  const ProgramResult result = run_program(under_mpirun(two));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("2 processes x 2 x 1 sample,"));
  EXPECT_EQ(result.out.find("\ntrained "), result.out.rfind("\ntrained ")) << "printed twice";
  ASSERT_NE(weights("one", 20), "");
  EXPECT_TRUE(weights("one", 20) == weights("two", 20)) << "the weights differ";
  // They also evaluate as one: the result is printed once, and is the same.
  const std::vector<std::string> eval = {
      STOKER_PROGRAM, "eval", "--checkpoint", folder("two"), "--data", data_->path(), "--json"};
  const ProgramResult alone = run_program(eval), together = run_program(under_mpirun(eval));
  ASSERT_EQ(together.exit_code, 0) << together.err;
  const auto a = nlohmann::json::parse(alone.out);
  const auto b = nlohmann::json::parse(together.out, nullptr, false);
  ASSERT_TRUE(b.is_object()) << together.out;
  EXPECT_EQ(b["samples"], 20);
  EXPECT_EQ(b["top1"], a["top1"]);
  EXPECT_NEAR(b["loss"], a["loss"], 1e-9);
  const ProgramResult diff = run_stoker({"receipt", "diff", folder("one"), folder("two")});
  EXPECT_EQ(diff.exit_code, 0) << diff.out << diff.err;
}

TEST_F(TrainMpi, AParameterServerInTheFirstProcessServesAll) {
  auto one = train("one", 1);
  one.insert(one.end(), {"--devices", "cpu:4"});
  ASSERT_EQ(run_program(one).exit_code, 0);
  for (const char* wire : {"fp32", "int8"}) {
    auto two = train(wire, 1);
    two.insert(two.end(),
               {"--devices", "cpu:2", "--reduce", "parameter-server", "--grad-wire", wire});
    const ProgramResult result = run_program(under_mpirun(two));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr(std::string("exchange: parameter-server, gradients as ") + wire));
    ASSERT_NE(weights(wire, 10), "");
    EXPECT_EQ(weights("one", 10) == weights(wire, 10), std::string(wire) == "fp32");
  }
}

// Process 0 writes the checkpoints of all, and gives every process its own when the run goes on.
TEST_F(TrainMpi, IndependentReplicasAreThoseOfOneProcess) {
  auto one = train("one", 2);
  one.insert(one.end(), {"--devices", "cpu:2", "--reduce", "independent"});
  ASSERT_EQ(run_program(one).exit_code, 0);
  auto two = train("two", 2);
  two.insert(two.end(), {"--reduce", "independent"});
  auto part = two;
  part.insert(part.end(), {"--max-steps", "10"});  // the first epoch
  ASSERT_EQ(run_program(under_mpirun(part)).exit_code, 0);
  two.push_back("--resume");
  const ProgramResult result = run_program(under_mpirun(two));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("and those of the other replicas after 10 steps"));
  for (const char* replica : {"/replica_0", "/replica_1"}) {
    for (const char* file : {"model", "state"}) {
      const std::string name =
          std::string(replica) + "/checkpoints/step_00000020/" + file + ".safetensors";
      ASSERT_NE(read_text(folder("one") + name), "") << name;
      EXPECT_TRUE(read_text(folder("one") + name) == read_text(folder("two") + name)) << name;
    }
  }
}

TEST_F(TrainMpi, ASignalToOneStopsBothAndTheRunGoesOnExactly) {
  auto whole = train("whole", 12);
  whole.insert(whole.end(), {"--devices", "cpu:2"});
  ASSERT_EQ(run_program(whole).exit_code, 0);
  auto words = train("both", 12);
  words.insert(words.end(), {"--checkpoint-steps", "7"});
  {
    RunningProgram program(under_mpirun(words));
    ASSERT_TRUE(program.wait_for_file(
        folder("both") + "/checkpoints/step_00000007/model.safetensors", 1, 60));
    const pid_t second = process_of("both", 1);
    ASSERT_GT(second, 0);
    kill(second, SIGTERM);
    const ProgramResult stopped = program.wait();
    EXPECT_NE(stopped.exit_code, 0);
    EXPECT_THAT(stopped.out, HasSubstr("interrupted; to go on"));
    EXPECT_EQ(weights("both", 120), "") << "the run ended before the signal came";
  }
  words.push_back("--resume");
  const ProgramResult resumed = run_program(under_mpirun(words));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  ASSERT_NE(weights("whole", 120), "");
  EXPECT_TRUE(weights("whole", 120) == weights("both", 120)) << "the weights differ";
}

TEST_F(TrainMpi, AKilledProcessTakesTheOtherDown) {
  auto words = train("kill", 2000);
  words.insert(words.end(), {"--checkpoint-steps", "7"});
  RunningProgram program(under_mpirun(words));
  ASSERT_TRUE(program.wait_for_file(folder("kill") + "/checkpoints/step_00000007/model.safetensors",
                                    1, 60));
  const pid_t second = process_of("kill", 1);
  ASSERT_GT(second, 0);
  kill(second, SIGKILL);
  const ProgramResult result = program.wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.exit_code, 124) << "it hung";
  EXPECT_THAT(result.err + result.out, HasSubstr("rank 1"));
  EXPECT_EQ(process_of("kill", 0), 0);
}

// Gradients go from process to process, so process 0 waits for 1, which waits for 2. The message
// must still name the stopped process: 2, and later 0. On a busy machine it may also name others.
TEST_F(TrainMpi, AStoppedProcessIsNamed) {
  auto words = train("stop", 3000);
  words.insert(words.end(), {"--batch", "6", "--checkpoint-steps", "7"});
  RunningProgram program(under_mpirun(words, "3"));
  ASSERT_TRUE(program.wait_for_file(folder("stop") + "/checkpoints/step_00000007/model.safetensors",
                                    1, 60));
  for (const int rank : {2, 0}) {
    const pid_t process = process_of("stop", rank);
    ASSERT_GT(process, 0);
    kill(process, SIGSTOP);
    const std::string named = "stoker: waiting for rank " + std::to_string(rank) + " on ";
    EXPECT_TRUE(
        program.wait_until([&] { return program.err().find(named) != std::string::npos; }, 120))
        << program.err();
    kill(process, SIGCONT);
  }
  kill(process_of("stop", 1), SIGTERM);
  EXPECT_THAT(program.wait().out, HasSubstr("interrupted; to go on"));
}

TEST_F(TrainMpi, OneThatCannotStartEndsAllWithItsReason) {
  const std::string script =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then extra='--seed 99'; fi; exec \"$@\" $extra";
  auto words = train("bad", 2);
  words.insert(words.begin(), {"bash", "-c", script, "bash"});
  const ProgramResult result = run_program(under_mpirun(words));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("process 1 was given other ones than process 0"));
}

}  // namespace
}  // namespace stoker
