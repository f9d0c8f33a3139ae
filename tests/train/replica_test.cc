// Tests of the values of --devices.
#include "train/run/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "staging/device_list.h"
#include "train/collective/collective.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(Devices, NamesOfReplicas) {
  EXPECT_EQ(parse_devices("cpu"), Names({"cpu:0"}));
  EXPECT_EQ(parse_devices("cpu:3"), Names({"cpu:0", "cpu:1", "cpu:2"}));
  EXPECT_EQ(parse_devices("cuda:0"), Names({"cuda:0"}));
  EXPECT_EQ(parse_devices("cuda:2,0"), Names({"cuda:2", "cuda:0"}));
  EXPECT_EQ(parse_devices("cuda:0*2,1"), Names({"cuda:0", "cuda:0", "cuda:1"}));
}

TEST(Devices, CpuReplicasAreOfEachProcessGpusAreDealtOut) {
  EXPECT_EQ(parse_devices("cpu:2", 1, 2), Names({"cpu:0", "cpu:1"}));
  EXPECT_EQ(parse_devices("cuda:0,1,2,3", 1, 2), Names({"cuda:2", "cuda:3"}));
  EXPECT_EQ(parse_devices("cuda:0,1", 0, 2), Names({"cuda:0"}));
  EXPECT_EQ(parse_devices("cuda:0", 3, 4), Names({"cuda:0"}));  // each process sees a different GPU
  EXPECT_THROW(parse_devices("cuda:0,1,2", 0, 2), std::invalid_argument);
}

TEST(Devices, RefusesWhatIsNoDevice) {
  for (const char* text :
       {"", "cpu:", "cpu:0", "cpu:-1", "cpu:x", "cpu:2x", "cpu:999", "gpu:0", "cuda:", "cuda:x",
        "cuda:0,", "cuda:,1", "cuda:0*0", "cuda:0*", "cuda:0*300", "cudax"}) {
    try {
      parse_devices(text);
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("'") + text + "'"));
    }
  }
  EXPECT_TRUE(on_gpus({"cuda:0", "cuda:1"}));
  EXPECT_FALSE(on_gpus({"cpu:0"}));
  EXPECT_THROW(on_gpus({"cpu:0", "cuda:1"}), std::invalid_argument);
}

TEST(Devices, AGpuThatIsNotThereIsOneClearLine) {
  const CudaStatus status = query_cuda();
  if (status.problem.empty()) GTEST_SKIP() << "there is a GPU";
  for (const char* text : {"cuda:all", "cuda:0"}) {
    try {
      const NetSpec net;
      for (const std::string& name : parse_devices(text)) make_replica(name, net, {});
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(status.problem));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(NoCollective, LeavesAnOnlyPartAlone) {
  const auto alone = make_no_collective(1);
  std::vector<float> part = {1, 2};
  const float* pointer = part.data();
  alone->all_reduce(0, {&pointer, 1}, part);
  EXPECT_EQ(part, std::vector<float>({1, 2}));
  std::vector<float> other = {10, 20}, result(2);
  const float* two[] = {part.data(), other.data()};
  alone->all_reduce(0, two, result);
  EXPECT_EQ(result, std::vector<float>({11, 22}));
}

}  // namespace
}  // namespace stoker
