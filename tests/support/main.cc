// The main() of all test programs. A run of no test at all (a filter that fits none, a shard
// without one) is a failure.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Tests start this program again, to run other tests of it: those are all of them, not those of a
// shard.
class WholeChildren final : public ::testing::Environment {
 public:
  void SetUp() override {
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
  }
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ::testing::AddGlobalTestEnvironment(new WholeChildren);
  const int code = RUN_ALL_TESTS();
  if (::testing::GTEST_FLAG(list_tests) ||
      ::testing::UnitTest::GetInstance()->test_to_run_count() > 0)
    return code;
  std::fprintf(stderr, "no test fits the filter, or is in this shard\n");
  return 1;
}
