// Tests of sums over GPUs, if there are any: replicas that share the first GPU, and NCCL with one
// rank for each GPU.
#include <gtest/gtest.h>

#include "tests/train/cuda_collective_harness.h"

namespace stoker::testing {
namespace {

class CudaCollectiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = query_cuda();
    if (!status.problem.empty()) GTEST_SKIP() << status.problem;
    for (size_t i = 0; i < status.devices.size(); ++i) gpus_.push_back(static_cast<int>(i));
  }
  std::vector<int> gpus_;
};

TEST_F(CudaCollectiveTest, OnOneGpu) {
  CollectiveHarness harness({0, 0, 0});
  for (int parts : {1, 2}) harness.check(*harness.make(ReduceKind::automatic), parts);
}

TEST_F(CudaCollectiveTest, OnTheHost) {
  CollectiveHarness harness({0, 0});
  harness.check(*harness.make(ReduceKind::host), 2);
}

TEST_F(CudaCollectiveTest, ByNccl) {
  CollectiveHarness harness(gpus_);
  for (int parts : {1, 2}) harness.check(*harness.make(ReduceKind::nccl), parts);
  harness.check(*harness.make(ReduceKind::nccl, 300), 1, 300);
}

TEST_F(CudaCollectiveTest, BatchNormsMeet) {
  CollectiveHarness({0, 0, 0}).check_norms();
  if (gpus_.size() > 1) CollectiveHarness(gpus_).check_norms();
}

TEST_F(CudaCollectiveTest, InRanges) {
  CollectiveHarness apart(gpus_), together({0, 0, 0});
  apart.check(*apart.make(ReduceKind::nccl, 500), 2, 500, 3);
  together.check(*together.make(ReduceKind::device), 2, 0, 3);
  together.check(*together.make(ReduceKind::host), 1, 0, 3);
  together.check(*together.make_server(2), 2, 0, 3);
  apart.check(*apart.make_server(1), 1, 0, 3);
}

}  // namespace
}  // namespace stoker::testing
