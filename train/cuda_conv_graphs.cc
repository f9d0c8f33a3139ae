#include "train/cuda_conv_graphs.h"

#include <stdexcept>

namespace stoker {
namespace {

// Names of the operands in a plan: the order of DeviceConv::run().
constexpr int64_t kOperandA = 1, kOperandB = 2, kOperandOut = 3;

using Longs = std::vector<int64_t>;

// NHWC, or KRSC for weights, in the order that cuDNN names dimensions: N C H W.
CudnnDescriptor tensor(int64_t id, const Longs& dims, cudnnDataType_t type) {
  const Longs strides{dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
  CudnnDescriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Longs{id});
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{type});
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, Longs{16});
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  t.finalize();
  return t;
}

CudnnDescriptor convolution(const ConvShape& s) {
  CudnnDescriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::vector{CUDNN_CROSS_CORRELATION});
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, Longs{2});
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, Longs{1, 1});
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, Longs{s.stride, s.stride});
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, Longs{s.padding, s.padding});
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, Longs{s.padding, s.padding});
  c.finalize();
  return c;
}

struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, alpha, beta, a, b, out;
};

PassNames names_of(ConvPass pass) {
  if (pass == ConvPass::forward) {
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
  if (pass == ConvPass::backward_data) {
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
}

CudnnDescriptor operation_graph(const CudnnTarget& target, const ConvShape& s, ConvPass pass) {
  const Longs x{s.rows, s.in_channels, s.in_height, s.in_width};
  const Longs y{s.rows, s.out_channels, s.out_height, s.out_width};
  const Longs w{s.out_channels, s.in_channels, s.kernel, s.kernel};
  const cudnnDataType_t type = s.type == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
  const CudnnDescriptor a = tensor(kOperandA, data ? y : x, type);
  const CudnnDescriptor b = tensor(kOperandB, forward || data ? w : y, type);
  const CudnnDescriptor out = tensor(kOperandOut, forward ? y : data ? x : w, type);
  const CudnnDescriptor conv = convolution(s);
  const PassNames names = names_of(pass);
  CudnnDescriptor operation(names.operation);
  operation.set(names.convolution, conv);
  operation.set(names.a, a).set(names.b, b).set(names.out, out);
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, std::vector{1.0f});
  operation.set(names.beta, CUDNN_TYPE_FLOAT, std::vector{0.0f});
  operation.finalize();
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  target.apply_to_graph(graph);
  graph.finalize();
  return graph;
}

CudnnPlanWish plan_wish(const ConvPlanWish& wish) {
  return {wish.shape.type, wish.deterministic, wish.workspace_limit};
}

}  // namespace

std::vector<CudnnPlan> list_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish,
                                       int most) {
  std::vector<CudnnPlan> plans =
      list_plans(target, operation_graph(target, wish.shape, wish.pass), plan_wish(wish), most);
  if (plans.empty()) {
    throw std::runtime_error("cuDNN has no " +
                             std::string(wish.deterministic ? "deterministic " : "") +
                             "plan within " + std::to_string(wish.workspace_limit >> 20) +
                             " MiB of workspace for " + describe(wish.shape, wish.pass));
  }
  return plans;
}

std::optional<CudnnPlan> find_conv_plan(const CudnnTarget& target, const ConvPlanWish& wish,
                                        const std::string& name) {
  return find_plan(target, operation_graph(target, wish.shape, wish.pass), plan_wish(wish), name);
}

CudnnDescriptor bind_conv(const void* a, const void* b, const void* out, void* workspace) {
  return bind_operands({{kOperandA, a}, {kOperandB, b}, {kOperandOut, out}}, workspace);
}

std::string describe(const ConvShape& s, ConvPass pass) {
  const char* names[] = {"forward", "backward data", "backward weights"};
  const auto by = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b); };
  return std::string("convolution ") + names[static_cast<int>(pass)] + ", " +
         std::to_string(s.rows) + " rows, " + by(s.in_height, s.in_width) + "x" +
         std::to_string(s.in_channels) + " -> " + by(s.out_height, s.out_width) + "x" +
         std::to_string(s.out_channels) + ", kernel " + std::to_string(s.kernel) + ", stride " +
         std::to_string(s.stride) + ", padding " + std::to_string(s.padding) + ", " +
         (s.type == Precision::bf16 ? "bf16" : "fp32");
}

}  // namespace stoker
