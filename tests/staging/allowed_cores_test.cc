#include "staging/allowed_cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/one_core.h"
#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

TEST(AllowedCores, ReadsAQuota) {
  EXPECT_DOUBLE_EQ(parse_cpu_quota("150000 100000"), 1.5);
  EXPECT_EQ(parse_cpu_quota("max 100000"), 0);
  EXPECT_EQ(parse_cpu_quota("-1 100000"), 0);
  EXPECT_EQ(parse_cpu_quota(""), 0);
}

TEST(AllowedCores, TheLeastQuotaOfAGroupAndThoseAboveItCounts) {
  const TempFolder folder;
  const std::string root = folder.path();
  std::filesystem::create_directories(root + "/a/b");
  EXPECT_EQ(group_quota(root, "/a/b"), 0);
  EXPECT_EQ(group_quota(root, ""), 0);
  std::ofstream(root + "/a/cpu.max") << "150000 100000\n";
  EXPECT_DOUBLE_EQ(group_quota(root, "/a/b"), 1.5);
  std::ofstream(root + "/a/b/cpu.max") << "400000 100000\n";
  EXPECT_DOUBLE_EQ(group_quota(root, "/a/b"), 1.5);
  std::ofstream(root + "/cpu.max") << "50000 100000\n";
  EXPECT_DOUBLE_EQ(group_quota(root, "/a/b"), 0.5);
  EXPECT_DOUBLE_EQ(group_quota(root, "/"), 0.5);
}

TEST(AllowedCores, BothVersionsOfControlGroupsAreRead) {
  const TempFolder folder;
  const std::string root = folder.path();
  EXPECT_EQ(read_core_limits(root).quota, 0);
  std::ofstream(root + "/cpu.max") << "150000 100000\n";
  EXPECT_DOUBLE_EQ(read_core_limits(root).quota, 1.5);
  std::filesystem::remove(root + "/cpu.max");
  std::filesystem::create_directories(root + "/cpu");
  std::ofstream(root + "/cpu/cpu.cfs_quota_us") << "250000\n";
  std::ofstream(root + "/cpu/cpu.cfs_period_us") << "100000\n";
  EXPECT_DOUBLE_EQ(read_core_limits(root).quota, 2.5);
  std::filesystem::create_directories(root + "/cpu/a/b");
  std::ofstream(root + "/cpu/a/cpu.cfs_quota_us") << "50000\n";
  std::ofstream(root + "/cpu/a/cpu.cfs_period_us") << "100000\n";
  const std::string groups = folder.write("groups", "3:cpuset:/\n2:cpu,cpuacct:/a/b\n0::/\n");
  EXPECT_DOUBLE_EQ(read_core_limits(root, groups).quota, 0.5);
}

TEST(UsableCores, AreTheLeastOfAffinityAndQuotaAndAtLeastOne) {
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 0}, 1), 8);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 3, .quota = 0}, 1), 3);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 2}, 1), 2);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 1.5}, 1), 2);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 1, .quota = 4}, 1), 1);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 0.1}, 1), 1);
}

TEST(UsableCores, AreSharedAmongProcessesThatNobodyHasBound) {
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 0}, 2), 4);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 4, .quota = 0}, 2), 4);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 4, .quota = 6}, 2), 3);
  EXPECT_EQ(usable_cores({.machine = 8, .affinity = 8, .quota = 0}, 1000), 1);
}

TEST(AllowedCores, AreThoseOfTheAffinity) {
  on_one_core([] {
    EXPECT_GT(allowed_cores(), 0);
    EXPECT_LE(allowed_cores(), 1);
    EXPECT_EQ(usable_cores(), 1);
    EXPECT_EQ(usable_cores(4), 1);
  });
}

}  // namespace
}  // namespace stoker
