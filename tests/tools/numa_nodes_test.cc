#include "tools/machine/numa_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

TEST(NumaNodes, ListsOfCpusAreRanges) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
}

TEST(NumaNodes, OnlyThoseWithCpusOfOurs) {
  const std::vector<int> ours = numa_nodes("/no/such").front().cpus;
  ASSERT_FALSE(ours.empty());
  TempFolder folder;
  folder.write("node1/cpulist", std::to_string(ours.front()) + "\n");
  folder.write("node0/cpulist", "100000-100003\n");  // not ours
  folder.write("has_cpu", "1\n");
  const std::vector<NumaNode> nodes = numa_nodes(folder.path());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].id, 1);
  EXPECT_EQ(nodes[0].cpus, std::vector<int>{ours.front()});
}

}  // namespace
}  // namespace stoker
