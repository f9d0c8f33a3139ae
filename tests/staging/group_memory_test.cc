#include "staging/group_memory.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

class GroupMemoryTest : public ::testing::Test {
 protected:
  GroupMemory read(const std::string& groups) const {
    return read_group_memory(root_.path(), root_.write("groups", groups));
  }
  TempFolder root_;
};

TEST_F(GroupMemoryTest, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(read("0::/a/b\n").limit_bytes, -1);
  EXPECT_EQ(read("").free_bytes, -1);
}

// The process may be in a group below the one that has the limit.
TEST_F(GroupMemoryTest, TheLeastOfAGroupAndThoseAboveItCounts) {
  root_.write("a/b/memory.max", "max\n");
  root_.write("a/b/memory.current", "100\n");
  EXPECT_EQ(read("0::/a/b\n").limit_bytes, -1);
  root_.write("a/memory.max", "1000\n");
  root_.write("a/memory.current", "900\n");
  GroupMemory memory = read("0::/a/b\n");
  EXPECT_EQ(memory.limit_bytes, 1000);
  EXPECT_EQ(memory.free_bytes, 100);
  root_.write("memory.max", "2000\n");
  root_.write("memory.current", "1990\n");
  memory = read("0::/a/b\n");
  EXPECT_EQ(memory.limit_bytes, 1000);
  EXPECT_EQ(memory.free_bytes, 10);
  root_.write("a/b/memory.max", "50\n");  // has already more
  EXPECT_EQ(read("0::/a/b\n").free_bytes, 0);
}

TEST_F(GroupMemoryTest, Version1IsReadAboveAndBelowTheRoot) {
  const std::string groups = "12:cpu,cpuacct:/x\n4:memory:/docker/7\n0::/\n";
  root_.write("memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  root_.write("memory/memory.usage_in_bytes", "5000\n");
  EXPECT_EQ(read(groups).limit_bytes, -1);
  root_.write("memory/docker/7/memory.limit_in_bytes", "4000\n");
  root_.write("memory/docker/7/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(read(groups).limit_bytes, 4000);
  EXPECT_EQ(read(groups).free_bytes, 3000);
  root_.write("memory/docker/memory.limit_in_bytes", "3500\n");
  root_.write("memory/docker/memory.usage_in_bytes", "3400\n");
  EXPECT_EQ(read(groups).free_bytes, 100);
}

TEST_F(GroupMemoryTest, WhatIsFreeIsTheLessOfTheMachinesAndTheGroups) {
  const std::string meminfo =
      root_.write("meminfo", "MemTotal:  900 kB\nMemAvailable:   100 kB\nCached:  7 kB\n");
  EXPECT_EQ(free_memory({}, meminfo), 100 * 1024);
  EXPECT_EQ(free_memory({.limit_bytes = 5000, .free_bytes = 400}, meminfo), 400);
  EXPECT_EQ(free_memory({.limit_bytes = 1 << 30, .free_bytes = 1 << 29}, meminfo), 100 * 1024);
  EXPECT_EQ(free_memory({.limit_bytes = 5000, .free_bytes = 400}, "/none"), 400);
  EXPECT_EQ(free_memory({}, "/none"), -1);
}

}  // namespace
}  // namespace stoker
