// Describes convolutions as cuDNN operation graphs and lists the plans that cuDNN has for them.
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

// Returns up to `most` plans, best guess first. Throws if there is none, naming the shape.
std::vector<CudnnPlan> list_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish,
                                       int most);
// Returns the plan with a name from list_conv_plans(); nothing if there is none (any more).
std::optional<CudnnPlan> find_conv_plan(const CudnnTarget& target, const ConvPlanWish& wish,
                                        const std::string& name);

// Operations that cuDNN can fuse with a convolution. It compiles a kernel for each plan, on the
// machine with the GPU, in about a second.
enum class ConvFusion : uint8_t {
  statistics,       // y = conv(a, b); sums and squares of y
  relu_statistics,  // y = conv(relu(a * scale + bias), b); sums and squares of y
  data_add,         // dx = conv_backward_data(a, b) + other
  scale_relu,       // y = relu(conv(a, b) * scale + bias)
  scale_add_relu,   // y = relu(conv(a, b) * scale + bias + other)
};

// The tensors of a graph. a, b and out are those of DeviceConv::run(); `other` has the shape of
// out. The rest are fp32 with one value per channel of y; scale and bias have the channels of a in
// relu_statistics.
enum class ConvOperand : int64_t { a = 1, b, out, other, scale, bias, sums, squares };

struct FusedConvWish {
  ConvShape shape;
  ConvFusion fusion = ConvFusion::statistics;
  bool deterministic = true;
  int64_t workspace_limit = 0;
};

// The same as for plain convolutions, except that there may be no plans.
std::vector<CudnnConfig> list_fused_configs(const CudnnTarget& target, const FusedConvWish& wish);
std::vector<CudnnPlan> list_fused_plans(const CudnnTarget& target, const FusedConvWish& wish,
                                        int most);
std::optional<CudnnPlan> find_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                         const std::string& name);
// Restores that plan from its text_of(), without compiling.
std::optional<CudnnPlan> restore_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                            const std::string& name, const std::string& text);

CudnnDescriptor bind_operands(const std::vector<std::pair<ConvOperand, const void*>>& operands,
                              void* workspace);
// Bind the operands of DeviceSummingConv::run() and of DeviceConv::run(), in their order; sums and
// squares are (out_channels) floats each.
CudnnDescriptor bind_statistics(const void* x, const void* weights, const void* y, const void* sums,
                                const void* squares, void* workspace);
CudnnDescriptor bind_conv(const void* a, const void* b, const void* out, void* workspace);

// Describes the pass and the whole shape as text.
std::string describe(const ConvShape& shape, ConvPass pass);

}  // namespace stoker
