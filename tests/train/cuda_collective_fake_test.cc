// The three ways to sum over GPUs, with the plugin as it was compiled, on a fake CUDA and a fake
// NCCL: what is queued in which order, who waits for what, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "tests/support/fake_cuda.h"
#include "tests/train/cuda_collective_harness.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void widen(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(&to[i], &bits, sizeof bits);
  }
}

class CudaCollectiveFakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STOKER_PLUGIN_DIR", STOKER_FAKE_CUDA_DIR, 1);
    reset_fake_cuda({.max_delay_us = 60});
    fake_cuda_kernel("sum_parts_kernel", {sizeof(PartSum), sizeof(bool)}, [](void** arguments) {
      sum_parts_now(*static_cast<const PartSum*>(arguments[0]));
    });
    fake_cuda_kernel("narrow_kernel", {8, 8, 8}, [](void** arguments) {
      const auto* from = *static_cast<const float**>(arguments[0]);
      auto* to = *static_cast<uint16_t**>(arguments[1]);
      for (int64_t i = 0; i < *static_cast<int64_t*>(arguments[2]); ++i) to[i] = bf16_bits(from[i]);
    });
    fake_cuda_kernel("widen_kernel", {8, 8, 8}, [](void** arguments) {
      widen(*static_cast<const uint16_t**>(arguments[0]), *static_cast<float**>(arguments[1]),
            *static_cast<int64_t*>(arguments[2]));
    });
  }

  void expect_no_misuse() {
    EXPECT_EQ(fake_cuda_count("no context"), 0);
    EXPECT_EQ(fake_cuda_count("pageable copy"), 0);
    EXPECT_EQ(fake_cuda_count("in a host function"), 0);
    EXPECT_EQ(fake_cuda_count("cudaDeviceSynchronize"), 0);
  }
};

TEST_F(CudaCollectiveFakeTest, OnOneGpu) {
  CollectiveHarness harness({1, 1, 1});
  for (int parts : {1, 2}) harness.check(*harness.make(DeviceReduction::automatic), parts);
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0) << "no thread waits for the device";
  EXPECT_EQ(fake_cuda_count("cudaStreamSynchronize"), 2 * 3) << "but at its end";
  EXPECT_EQ(fake_cuda_count("cudaLaunchKernel"), 2 * 3 * CollectiveHarness::kSteps);
}

TEST_F(CudaCollectiveFakeTest, OneReplica) {
  CollectiveHarness harness({0});
  harness.check(*harness.make(DeviceReduction::automatic), 2);
  expect_no_misuse();
}

TEST_F(CudaCollectiveFakeTest, OnTheHost) {
  CollectiveHarness harness({0, 1});
  harness.check(*harness.make(DeviceReduction::host), 2);
  expect_no_misuse();
}

TEST_F(CudaCollectiveFakeTest, ByNccl) {
  CollectiveHarness harness({0, 1});
  for (int parts : {1, 2}) {
    const auto collective = harness.make(DeviceReduction::automatic);
    harness.check(*collective, parts);
  }
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0);
}

TEST_F(CudaCollectiveFakeTest, ByNcclWithNarrowGradients) {
  CollectiveHarness harness({0, 1});
  for (int64_t narrow : {int64_t{300}, CollectiveHarness::kCount}) {
    for (int parts : {1, 2}) {
      harness.check(*harness.make(DeviceReduction::nccl, narrow), parts, narrow);
    }
  }
  expect_no_misuse();
}

TEST_F(CudaCollectiveFakeTest, AnAbortEndsEverybodysWait) {
  CollectiveHarness harness({0, 1});
  const auto collective = harness.make(DeviceReduction::nccl);
  const DeviceReplica& first = harness.replicas()[0];
  auto memory = first.device->allocate(400, MemoryKind::device);
  auto* values = reinterpret_cast<float*>(memory->data());
  const float* part = values;
  collective->all_reduce(0, std::span(&part, 1), std::span(values, 100));  // waits on the device
  collective->abort();
  first.stream->synchronize();
  EXPECT_THROW(collective->all_reduce(1, std::span(&part, 1), std::span(values, 100)),
               std::runtime_error);
}

TEST_F(CudaCollectiveFakeTest, WaysThatTheDevicesDoNotAllow) {
  CollectiveHarness shared({0, 0});
  EXPECT_THAT(message_of([&] { shared.make(DeviceReduction::nccl); }),
              HasSubstr("NCCL wants a GPU of its own for every replica"));
  CollectiveHarness apart({0, 1});
  EXPECT_THAT(message_of([&] { apart.make(DeviceReduction::shared_device); }),
              HasSubstr("only replicas that share one GPU"));
  auto host = make_host_device();
  apart.replicas()[1].device = host.get();
  EXPECT_THAT(message_of([&] { apart.make(DeviceReduction::automatic); }),
              HasSubstr("cpu:0 is no CUDA device"));
}

TEST_F(CudaCollectiveFakeTest, APluginThatIsMissing) {
  CollectiveHarness harness({0, 1});
  const std::string folder = ::testing::TempDir() + "/no_plugins";
  std::filesystem::create_directories(folder);
  setenv("STOKER_PLUGIN_DIR", folder.c_str(), 1);
  EXPECT_EQ(message_of([&] { harness.make(DeviceReduction::nccl); }),
            "cannot sum over GPUs: libstoker_cuda_train.so is not in " + folder);
}

TEST(DeviceReduction, IsChosenByTheDevices) {
  using Ordinals = std::vector<int>;
  EXPECT_EQ(best_reduction(Ordinals{0}, false), DeviceReduction::shared_device);
  EXPECT_EQ(best_reduction(Ordinals{1, 1}, false), DeviceReduction::shared_device);
  EXPECT_EQ(best_reduction(Ordinals{0, 1}, false), DeviceReduction::nccl);
  EXPECT_EQ(best_reduction(Ordinals{0}, true), DeviceReduction::nccl);
  EXPECT_EQ(best_reduction(Ordinals{0, 1, 1}, false), DeviceReduction::host);
  EXPECT_EQ(best_reduction(Ordinals{1, 1}, true), DeviceReduction::host);
}

}  // namespace
}  // namespace stoker::testing
