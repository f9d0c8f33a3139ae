// Convolutions as cuDNN's operation graphs, and the plans that cuDNN has for them.
// Threads: any, one at a time per object. Errors: std::runtime_error with cuDNN's text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/cuda/cudnn.h"
#include "train/device/ops.h"

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

// What cuDNN can do together with a convolution. It compiles kernels for that, on the GPU's own
// machine, for about a second each.
enum class ConvFusion : uint8_t {
  statistics,       // y = conv(a, b); sums and squares of y
  relu_statistics,  // y = conv(relu(a * scale + bias), b); sums and squares of y
  data_add,         // dx = conv_backward_data(a, b) + other
  scale_relu,       // y = relu(conv(a, b) * scale + bias)
  scale_add_relu,   // y = relu(conv(a, b) * scale + bias + other)
};

// The tensors of a graph. a, b and out are as in DeviceConv::run(); `other` is as out. The others
// are fp32, one number per channel: of y, but scale and bias of a in relu_statistics.
enum class ConvOperand : int64_t { a = 1, b, out, other, scale, bias, sums, squares };

struct FusedConvWish {
  ConvShape shape;
  ConvFusion fusion = ConvFusion::statistics;
  bool deterministic = true;
  int64_t workspace_limit = 0;
};

// As for plain convolutions, but there may be none.
std::vector<CudnnConfig> list_fused_configs(const CudnnTarget& target, const FusedConvWish& wish);
std::vector<CudnnPlan> list_fused_plans(const CudnnTarget& target, const FusedConvWish& wish,
                                        int most);
std::optional<CudnnPlan> find_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                         const std::string& name);
// The same from its text_of(), without compiling.
std::optional<CudnnPlan> restore_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                            const std::string& name, const std::string& text);

CudnnDescriptor bind_operands(const std::vector<std::pair<ConvOperand, const void*>>& operands,
                              void* workspace);
// Operands in the order of DeviceConv::run(), and of DeviceSummingConv::run(); sums and squares are
// (out_channels) floats each.
CudnnDescriptor bind_statistics(const void* x, const void* weights, const void* y, const void* sums,
                                const void* squares, void* workspace);
CudnnDescriptor bind_conv(const void* a, const void* b, const void* out, void* workspace);

// All of the shape, in words.
std::string describe(const ConvShape& shape, ConvPass pass);

}  // namespace stoker
