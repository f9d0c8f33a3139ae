// Does cuDNN have plans for every convolution of our models, on GPUs that are only described to it?
// Nothing is run; no driver is needed.
#include <gtest/gtest.h>

#include <string>

#include "train/cuda_cudnn.h"
#include "train/device_tape.h"
#include "train/device_tuning.h"
#include "train/models.h"

namespace stoker {
namespace {

struct Gpu {
  const char* name;
  int compute, multiprocessors;
  int64_t shared_bytes, l2_bytes, memory_bytes;
};

constexpr Gpu kGpus[] = {{"NVIDIA A100-SXM4-80GB", 800, 108, 166912, 41943040, 85899345920},
                         {"NVIDIA H200", 900, 132, 232448, 62914560, 150754820096},
                         {"NVIDIA B200", 1000, 148, 232448, 132644864, 191512969216}};

// As cuDNN itself writes a GPU down.
std::string json_of(const Gpu& gpu) {
  const auto field = [](const char* name, int64_t value) {
    return ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  return "{\"cudaDeviceId\": 0" + field("deviceVer", gpu.compute) + field("driverVer", 13000) +
         field("totalGlobalMem", gpu.memory_bytes) +
         ", \"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64]" +
         field("regsPerBlock", 65536) + field("multiProcessorCount", gpu.multiprocessors) +
         field("warpSize", 32) + field("maxSharedMemoryPerBlock", 49152) +
         field("maxSharedMemoryPerBlockOptin", gpu.shared_bytes) +
         field("reservedSharedMemoryPerBlock", 1024) + field("maxRegistersPerSM", 65536) +
         field("maxCtasPerSM", 32) + field("maxThreadsPerBlock", 1024) +
         field("maxThreadsPerSM", 2048) + field("pciDeviceId", 0) + field("isTccDriver", 0) +
         field("supportCoopLaunch", 1) + field("smClockRateKHz", 1980000) +
         field("memClockRateKHz", 3201000) + field("l2CacheSize", gpu.l2_bytes) +
         ", \"deviceName\": \"" + gpu.name + "\"}";
}

// What a tape asks for, without running anything.
std::vector<ConvShape> shapes_of(const NetSpec& net, int rows, Precision precision) {
  const DeviceTuning tuning;
  const std::vector<DeviceNode> nodes = lower_for_device(net, tuning.input_channels);
  std::vector<ConvShape> shapes;
  for (const DeviceNode& node : nodes) {
    if (node.kind != OpKind::conv) continue;
    const NodeShape& in = nodes[node.input].shape;
    const NetNode& spec = net.nodes[node.node];
    const ConvShape shape{rows,
                          in.channels,
                          in.height,
                          in.width,
                          node.shape.channels,
                          node.shape.height,
                          node.shape.width,
                          spec.kernel,
                          spec.stride,
                          spec.padding,
                          precision};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

void expect_plans(const Gpu& gpu, const std::vector<ConvShape>& shapes) {
  const CudnnTarget target(json_of(gpu));
  for (const ConvShape& shape : shapes) {
    for (const ConvPass pass :
         {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
      ConvPlanWish wish{shape, pass, true, DeviceTuning{}.workspace_limit, 3};
      try {
        for (const ConvPlan& plan : find_conv_plans(target, wish)) {
          EXPECT_LE(plan.workspace_bytes, wish.workspace_limit);
          EXPECT_FALSE(plan.name.empty());
        }
      } catch (const std::runtime_error& error) {
        ADD_FAILURE() << gpu.name << ": " << error.what();
      }
    }
  }
}

TEST(CudnnPlanTest, EveryModelHasDeterministicPlans) {
  for (const Gpu& gpu : kGpus) {
    expect_plans(gpu, shapes_of(make_net("airnet", {32, 32}, 10), 1024, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet50", {224, 224}, 1000), 256, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet18", {224, 224}, 1000), 256, Precision::bf16));
    expect_plans(gpu, shapes_of(make_net("resnet20", {32, 32}, 10), 128, Precision::bf16));
  }
}

TEST(CudnnPlanTest, Fp32HasPlansWithoutTf32) {
  for (const Gpu& gpu : kGpus) {
    expect_plans(gpu, shapes_of(make_net("airnet", {32, 32}, 10), 64, Precision::fp32));
    expect_plans(gpu, shapes_of(make_net("resnet18", {64, 64}, 10), 16, Precision::fp32));
  }
}

// The input is padded to 8 channels because cuDNN would do so itself, in a workspace, every time.
TEST(CudnnPlanTest, APaddedInputNeedsNoWorkspace) {
  const CudnnTarget target(json_of(kGpus[1]));
  ConvShape stem{256, 8, 224, 224, 64, 112, 112, 7, 2, 3, Precision::bf16};
  EXPECT_EQ(find_conv_plans(target, {stem, ConvPass::forward, true, 1 << 30, 1})[0].workspace_bytes,
            0);
  stem.in_channels = 4;
  EXPECT_GT(find_conv_plans(target, {stem, ConvPass::forward, true, 1 << 30, 1})[0].workspace_bytes,
            int64_t{100} << 20);
}

TEST(CudnnPlanTest, WhatCudnnCannotDoIsNamed) {
  const CudnnTarget target(json_of(kGpus[1]));
  const ConvShape stem{256, 3, 224, 224, 64, 112, 112, 7, 2, 3, Precision::bf16};
  try {
    find_conv_plans(target, {stem, ConvPass::backward_weights, true, -1, 1});
    FAIL() << "a plan without room was found";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("256 rows, 224x224x3 -> 112x112x64, kernel 7"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stoker
