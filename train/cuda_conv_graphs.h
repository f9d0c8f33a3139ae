// Convolutions as cuDNN's operation graphs, and the plans that cuDNN has for them.
// Threads: any, one at a time per object. Errors: std::runtime_error with cuDNN's text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/cuda_cudnn.h"
#include "train/device_ops.h"

namespace stoker {

struct ConvPlanWish {
  ConvShape shape;
  ConvPass pass = ConvPass::forward;
  bool deterministic = true;
  int64_t workspace_limit = 0;
};

// Up to `most` plans, best guess first. Throws if there is none, naming the shape.
std::vector<CudnnPlan> list_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish,
                                       int most);
// The plan that list_conv_plans() named so; nothing if there is none (any more).
std::optional<CudnnPlan> find_conv_plan(const CudnnTarget& target, const ConvPlanWish& wish,
                                        const std::string& name);

// Operands in the order of DeviceConv::run().
CudnnDescriptor bind_conv(const void* a, const void* b, const void* out, void* workspace);

// All of the shape, in words.
std::string describe(const ConvShape& shape, ConvPass pass);

}  // namespace stoker
