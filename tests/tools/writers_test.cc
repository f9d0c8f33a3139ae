// Tests of small parts of the program.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/tools/cli_harness.h"
#include "tools/console/progress.h"
#include "tools/data/output_file.h"
#include "tools/machine/host_info.h"
#include "tools/machine/machine.h"

namespace stoker {
namespace {

TEST(Npy, WritesAHeaderThatNumpyReads) {
  TempFolder folder;
  const std::vector<int32_t> values = {1, -2, 3, 4, 5, 600};
  const std::array<int64_t, 2> shape = {2, 3};
  write_npy(folder.path() + "/x.npy", "<i4", shape, std::as_bytes(std::span(values)));
  const std::string file = read_text(folder.path() + "/x.npy");
  ASSERT_GT(file.size(), 10u);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t dict = static_cast<uint8_t>(file[8]) + 256u * static_cast<uint8_t>(file[9]);
  EXPECT_EQ((10 + dict) % 64, 0u);
  ASSERT_EQ(file.size(), 10 + dict + 24);
  EXPECT_EQ(file.substr(10, 61), "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3, ), }");
  EXPECT_EQ(file[10 + dict - 1], '\n');
  EXPECT_EQ(std::memcmp(file.data() + 10 + dict, values.data(), 24), 0);
}

TEST(Npy, AFullDiskIsAnErrorWithThePath) {
  try {
    write_npy("/dev/full", "|u1", std::array<int64_t, 1>{3}, std::vector<std::byte>(3));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/full: No space left"), std::string::npos);
  }
}

TEST(Machine, NamesWhatFiguresWereMeasuredOnAndWith) {
  const auto machine = describe_machine();
  EXPECT_GE(machine["cores_usable"].get<int>(), 1);
  EXPECT_TRUE(machine["gpus"].is_array());
  EXPECT_FALSE(machine["libraries"].empty());
  const std::string commit = machine["commit"];
  EXPECT_TRUE(commit == "unknown" || commit.size() >= 12) << commit;
  const std::string line = machine_line(machine);
  EXPECT_NE(line.find(commit), std::string::npos) << line;
  EXPECT_NE(line.find(" UTC"), std::string::npos) << line;
}

TEST(Machine, IsQuietWhileOthersTakeLittleOfItsCores) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto neighbours = [](double others) {
    MachineLoad change;
    change.time_ns = 10 * kSecond;
    change.own_cpu_ns = 15 * kSecond;
    change.busy_ns = change.own_cpu_ns + static_cast<int64_t>(20e9 * others);
    return describe_neighbours(change, 2);
  };
  EXPECT_NEAR(neighbours(0.019)["share"].get<double>(), 0.019, 1e-9);
  EXPECT_TRUE(neighbours(0.019)["quiet"].get<bool>());
  EXPECT_FALSE(neighbours(0.021)["quiet"].get<bool>());
  EXPECT_EQ(neighbours(-0.1)["share"].get<double>(), 0);  // ticks are coarser than the CPU clock
  auto machine = describe_machine();
  machine["neighbours"] = neighbours(0.5);
  EXPECT_NE(machine_line(machine).find("; not quiet: others took 50.0% of the cores' time"),
            std::string::npos)
      << machine_line(machine);
  MachineLoad unknown;  // the kernel reports nothing about the cores
  unknown.time_ns = kSecond;
  machine["neighbours"] = describe_neighbours(unknown, 2);
  EXPECT_EQ(machine_line(machine).find("quiet"), std::string::npos);
}

TEST(Progress, FormatsTimesAndCounts) {
  EXPECT_EQ(format_duration(7.6), "8 s");
  EXPECT_EQ(format_duration(187), "3:07");
  EXPECT_EQ(format_duration(7387), "2:03:07");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(1234567), "1.23M");
}

}  // namespace
}  // namespace stoker
