// Tests with the variables that launchers set, and with variables left over from others.
#include "train/collective/process/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace stoker {
namespace {

using ::testing::HasSubstr;

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

const Environment kTorchrun = {{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node7"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "none"}};
const Environment kMpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                             {"PMIX_RANK", "1"}};
// From a real batch script: it has a rank and a number of tasks, but is a single process.
const Environment kBatchScript = {
    {"SLURM_JOB_ID", "200505"}, {"SLURM_NTASKS", "4"},  {"SLURM_TASKS_PER_NODE", "1(x4)"},
    {"SLURM_PROCID", "0"},      {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"},
    {"SLURM_GTIDS", "0"}};
const Environment kStep = with(kBatchScript, {{"SLURM_STEP_ID", "0"},
                                              {"SLURM_STEP_NUM_TASKS", "7"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                                              {"SLURM_PROCID", "5"},
                                              {"SLURM_LOCALID", "1"},
                                              {"SLURM_NODEID", "2"}});

void expect(const Launch& launch, int rank, int world, int local_rank, int local_world,
            const std::string& by) {
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.world, world);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.local_world, local_world);
  EXPECT_EQ(launch.by, by);
}

void expect_refused(const Environment& environment, const std::vector<std::string>& words) {
  try {
    const Launch launch = find_launch(environment);
    ADD_FAILURE() << launch.rank << " of " << launch.world << " by " << launch.by;
  } catch (const std::invalid_argument& error) {
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(Launch, NobodyStartedIt) {
  expect(find_launch({}), 0, 1, 0, 1, "");
  expect(find_launch({{"PATH", "/bin"}, {"MASTER_ADDR", "x"}, {"PMIX_RANK", "3"}}), 0, 1, 0, 1, "");
}

TEST(Launch, Torchrun) {
  const Launch launch = find_launch(kTorchrun);
  expect(launch, 5, 8, 1, 4, "torchrun");
  EXPECT_EQ(launch.master_address, "node7");
  EXPECT_EQ(launch.master_port, 29500);
  EXPECT_EQ(launch.meeting_address, "node7:29501");  // torchrun listens on the port itself
  // Set by hand, as for PyTorch's env://: one machine is assumed.
  expect(find_launch({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), 1, 2, 1, 2, "torchrun");
}

TEST(Launch, Mpirun) {
  expect(find_launch(kMpirun), 1, 2, 1, 2, "mpirun");
  expect(find_launch({{"PMI_RANK", "2"},
                      {"PMI_SIZE", "4"},
                      {"MPI_LOCALRANKID", "0"},
                      {"MPI_LOCALNRANKS", "2"}}),
         2, 4, 0, 2, "mpiexec");
}

TEST(Launch, Srun) {
  expect(find_launch(kStep), 5, 7, 1, 2, "srun");
  expect(find_launch(
             with(kStep, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}})),
         6, 7, 0, 1, "srun");
  expect(find_launch(with(kStep, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}})), 5, 7, 1, 2, "srun");
}

TEST(Launch, AnAllocationIsNotALaunch) {
  const Launch script = find_launch(kBatchScript);
  expect(script, 0, 1, 0, 1, "");
  EXPECT_THAT(script.note, HasSubstr("4 tasks"));
  const Launch shell = find_launch({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "2"}});
  expect(shell, 0, 1, 0, 1, "");
  EXPECT_THAT(shell.note, HasSubstr("2 tasks"));
  // Newer Slurm runs salloc's shell as a step of one.
  expect(find_launch(with(kBatchScript,
                          {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}})),
         0, 1, 0, 1, "srun");
}

TEST(Launch, WhereGpusMeet) {
  const auto address = [](const Environment& more) {
    return find_launch(with(kStep, more)).meeting_address;
  };
  EXPECT_EQ(address({}), "");
  EXPECT_EQ(address({{"MASTER_ADDR", "node1"}}), "");
  EXPECT_EQ(address({{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "2000"}}), "10.0.0.1:2001");
  EXPECT_EQ(address({{"MASTER_ADDR", "fe80::1"}, {"MASTER_PORT", "65535"}}), "[fe80::1]:65534");
  EXPECT_EQ(address({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "2"}, {"NCCL_COMM_ID", "a:7"}}),
            "a:7");
}

TEST(Launch, TheInnermostLauncherCounts) {
  expect(find_launch(with(kMpirun, kBatchScript)), 1, 2, 1, 2, "mpirun");
  expect(find_launch(with(kMpirun, kStep)), 1, 2, 1, 2, "mpirun");
  expect(find_launch(with(kTorchrun, kStep)), 5, 8, 1, 4, "torchrun");
  expect(find_launch(with(kTorchrun, kMpirun)), 5, 8, 1, 4, "torchrun");
}

TEST(Launch, VariablesSetByHandMustAgree) {
  const Environment same = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  expect(find_launch(with(kMpirun, same)), 1, 2, 1, 2, "mpirun");
  expect_refused(with(kMpirun, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
                 {"process 0 of 2", "process 1 of 2", "mpirun"});
  expect_refused(with(kStep, same), {"process 1 of 2", "process 5 of 7", "srun"});
}

TEST(Launch, RefusesWhatIsIncompleteOrImpossible) {
  expect_refused({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE = 2", "no RANK"});
  expect_refused({{"RANK", "0"}}, {"RANK = 0", "no WORLD_SIZE"});
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, {"LOCAL_WORLD_SIZE"});
  expect_refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK is 2", "WORLD_SIZE is 2"});
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE is 0"});
  expect_refused({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, {"'-1'"});
  expect_refused({{"RANK", "one"}, {"WORLD_SIZE", "2"}}, {"RANK", "'one'"});
  expect_refused({{"OMPI_COMM_WORLD_RANK", "0"}}, {"OMPI_COMM_WORLD_SIZE"});
  expect_refused(with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}), {"LOCAL_RANK is 2"});
  expect_refused(with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}), {"LOCAL_SIZE is 3"});
  expect_refused({{"SLURM_STEP_NUM_TASKS", "2"}}, {"SLURM_PROCID"});
  expect_refused(with(kStep, {{"SLURM_LOCALID", "2"}}), {"SLURM_LOCALID is 2"});
}

}  // namespace
}  // namespace stoker
