// stoker info and --devices on a machine with fake GPUs, without GPUs, and with half of what they
// need.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_harness.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Runs the program on the fake driver with `variables` set.
ProgramResult run_with_gpus(const std::vector<std::string>& variables,
                            const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"env", std::string("LD_LIBRARY_PATH=") + STOKER_FAKE_CUDA_DIR,
                                      std::string("STOKER_PLUGIN_DIR=") + STOKER_FAKE_CUDA_DIR};
  command.insert(command.end(), variables.begin(), variables.end());
  command.push_back(STOKER_PROGRAM);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command);
}

TEST(InfoDevices, ListsThem) {
  const ProgramResult result = run_with_gpus({}, {"info"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("cuda:0: Fake GPU A, 8.0 GiB, compute capability 9.0, PCIe 5.0 x16, 4 "
                        "NVLinks\n"));
  EXPECT_THAT(result.out, HasSubstr("cuda:1: Fake GPU B, 16.0 GiB, compute capability 9.0, PCIe "
                                    "1.0 x16 (5.0 x16 at most)\n"));
  EXPECT_THAT(result.out, HasSubstr("driver     580.65.06, CUDA 13.0\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("not usable")));
}

TEST(InfoDevices, PrintsJson) {
  const ProgramResult result = run_with_gpus({}, {"info", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto info = nlohmann::json::parse(result.out);
  ASSERT_EQ(info["devices"].size(), 3U);
  const auto& gpu = info["devices"][2];
  EXPECT_EQ(gpu["name"], "cuda:1");
  EXPECT_EQ(gpu["model"], "Fake GPU B");
  EXPECT_EQ(gpu["memory_bytes"], int64_t{16} << 30);
  EXPECT_EQ(gpu["compute_capability"], "9.0");
  EXPECT_EQ(gpu["pcie_generation_max"], 5);
  EXPECT_EQ(gpu["nvlinks"], 0);
  EXPECT_EQ(gpu["usable"], true);
  EXPECT_EQ(info["cuda"]["driver"], "580.65.06");
  EXPECT_EQ(info["cuda"]["driver_cuda"], "13.0");
  EXPECT_EQ(info["cuda"]["problem"], "");
}

TEST(InfoDevices, SaysWhyThereIsNone) {
  EXPECT_THAT(run_with_gpus({"CUDA_VISIBLE_DEVICES="}, {"info"}).out,
              HasSubstr("no GPU: no GPU is visible with CUDA_VISIBLE_DEVICES=\"\"\n"));
  EXPECT_THAT(run_with_gpus({"FAKE_CUDA_INIT=34"}, {"info"}).out,
              HasSubstr("no GPU: libcuda.so.1 is the CUDA toolkit's stub, not an NVIDIA driver\n"));
  const ProgramResult missing = run_with_gpus({"STOKER_PLUGIN_DIR=/nowhere"}, {"info"});
  EXPECT_EQ(missing.exit_code, 0);
  EXPECT_THAT(missing.out, HasSubstr("cuda:1: Fake GPU B"));
  EXPECT_THAT(missing.out,
              HasSubstr("GPUs are not usable: libstoker_cuda.so is not in /nowhere\n"));
  const auto info =
      nlohmann::json::parse(run_with_gpus({"STOKER_PLUGIN_DIR=/nowhere"}, {"info", "--json"}).out);
  EXPECT_EQ(info["devices"][1]["usable"], false);
  EXPECT_EQ(info["cuda"]["problem"], "libstoker_cuda.so is not in /nowhere");
}

// The program as it is, with its plugin, on this machine, whatever it has.
TEST(InfoDevices, StartsAnywhere) {
  const ProgramResult result = run_stoker({"info", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto info = nlohmann::json::parse(result.out);
  const std::string problem = info["cuda"]["problem"];
  EXPECT_EQ(problem.empty(), info["devices"].size() > 1) << problem;
  EXPECT_THAT(problem, Not(HasSubstr("libstoker_cuda.so")));
}

}  // namespace
}  // namespace stoker
