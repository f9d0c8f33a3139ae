#include "train/cuda/conv_graphs.h"

#include <deque>
#include <stdexcept>
#include <utility>

namespace stoker {
namespace {

cudnnDataType_t data_type(Precision type) {
  return type == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

CudnnDescriptor convolution(const ConvShape& s) {
  const Longs padding{s.padding.height, s.padding.width};
  CudnnDescriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::vector{CUDNN_CROSS_CORRELATION});
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, Longs{2});
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, Longs{1, 1});
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, Longs{s.stride, s.stride});
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding);
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding);
  c.finalize();
  return c;
}

struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, alpha, beta, a, b, out;
};

PassNames attributes_of(ConvPass pass) {
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

// Builds an operation graph: operations and their tensors are appended one after another.
class Graph {
 public:
  explicit Graph(const ConvShape& shape) : shape_(shape) {}

  // Dimensions in cuDNN's order: N C H W, for weights K C R S.
  Longs x() const { return {shape_.rows, shape_.in_channels, shape_.in_height, shape_.in_width}; }
  Longs y() const {
    return {shape_.rows, shape_.out_channels, shape_.out_height, shape_.out_width};
  }
  Longs weights() const {
    return {shape_.out_channels, shape_.in_channels, shape_.kernel.height, shape_.kernel.width};
  }

  // Tensors in memory: one of the convolution's type, and one of fp32 with one value per channel.
  const CudnnDescriptor& operand(ConvOperand id, const Longs& dims) {
    return tensor(static_cast<int64_t>(id), dims, data_type(shape_.type), false);
  }
  const CudnnDescriptor& channels(ConvOperand id, int64_t count) {
    return tensor(static_cast<int64_t>(id), {1, count, 1, 1}, CUDNN_DATA_FLOAT, false);
  }
  // A tensor between two operations, in registers.
  const CudnnDescriptor& between(const Longs& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(kFirstBetween + std::ssize(tensors_), dims, type, true);
  }

  void convolve(ConvPass pass, const CudnnDescriptor& a, const CudnnDescriptor& b,
                const CudnnDescriptor& out) {
    const PassNames names = attributes_of(pass);
    CudnnDescriptor operation(names.operation);
    operation.set(names.convolution, convolution(shape_));
    operation.set(names.a, a).set(names.b, b).set(names.out, out);
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, std::vector{1.0f});
    operation.set(names.beta, CUDNN_TYPE_FLOAT, std::vector{0.0f});
    append(std::move(operation));
  }
  // Appends out = mode(x), or mode(x, *y).
  void pointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& x, const CudnnDescriptor* y,
                 const CudnnDescriptor& out) {
    CudnnDescriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{mode});
    kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
    kind.finalize();
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (y != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *y);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    append(std::move(operation));
  }
  // Returns x * scale + bias, both per channel, in registers.
  const CudnnDescriptor& scaled(const CudnnDescriptor& x, const Longs& dims) {
    const CudnnDescriptor& product = between(dims);
    const CudnnDescriptor& sum = between(dims);
    pointwise(CUDNN_POINTWISE_MUL, x, &channels(ConvOperand::scale, dims[1]), product);
    pointwise(CUDNN_POINTWISE_ADD, product, &channels(ConvOperand::bias, dims[1]), sum);
    return sum;
  }
  void sum_channels(const CudnnDescriptor& y) {
    CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE,
                  std::vector{CUDNN_GENSTATS_SUM_SQSUM});
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                  std::vector{CUDNN_DATA_FLOAT});
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
                  channels(ConvOperand::sums, shape_.out_channels));
    operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
                  channels(ConvOperand::squares, shape_.out_channels));
    append(std::move(operation));
  }

  CudnnDescriptor finish(const CudnnTarget& target) const {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const CudnnDescriptor& operation : operations_) raw.push_back(operation.get());
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
    target.apply_to_graph(graph);
    graph.finalize();
    return graph;
  }

 private:
  static constexpr int64_t kFirstBetween = 100;  // above all ConvOperands

  // The last dimension in memory is the channel.
  const CudnnDescriptor& tensor(int64_t id, const Longs& dims, cudnnDataType_t type,
                                bool is_virtual) {
    const Longs strides{dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    CudnnDescriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Longs{id});
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{type});
    t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, Longs{16});
    t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
    t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, std::vector<char>{is_virtual});
    t.finalize();
    tensors_.push_back(std::move(t));
    return tensors_.back();
  }
  void append(CudnnDescriptor operation) {
    operation.finalize();
    operations_.push_back(std::move(operation));
  }

  const ConvShape shape_;
  std::deque<CudnnDescriptor> tensors_;  // references stay valid
  std::vector<CudnnDescriptor> operations_;
};

CudnnDescriptor conv_graph(const CudnnTarget& target, const ConvShape& s, ConvPass pass) {
  Graph graph(s);
  const bool forward = pass == ConvPass::forward, data = pass == ConvPass::backward_data;
  graph.convolve(pass, graph.operand(ConvOperand::a, data ? graph.y() : graph.x()),
                 graph.operand(ConvOperand::b, forward || data ? graph.weights() : graph.y()),
                 graph.operand(ConvOperand::out, forward ? graph.y()
                                                 : data  ? graph.x()
                                                         : graph.weights()));
  return graph.finish(target);
}

CudnnDescriptor fused_graph(const CudnnTarget& target, const ConvShape& s, ConvFusion fusion) {
  Graph graph(s);
  const bool data = fusion == ConvFusion::data_add;
  const CudnnDescriptor* a = &graph.operand(ConvOperand::a, data ? graph.y() : graph.x());
  const CudnnDescriptor& w = graph.operand(ConvOperand::b, graph.weights());
  const CudnnDescriptor& out = graph.operand(ConvOperand::out, data ? graph.x() : graph.y());
  switch (fusion) {
    case ConvFusion::relu_statistics: {
      // The convolution's operands must have its own type.
      const CudnnDescriptor& cut = graph.between(graph.x(), data_type(s.type));
      graph.pointwise(CUDNN_POINTWISE_RELU_FWD, graph.scaled(*a, graph.x()), nullptr, cut);
      a = &cut;
      [[fallthrough]];
    }
    case ConvFusion::statistics:
      graph.convolve(ConvPass::forward, *a, w, out);
      graph.sum_channels(out);
      break;
    case ConvFusion::data_add: {
      const CudnnDescriptor& dx = graph.between(graph.x());
      graph.convolve(ConvPass::backward_data, *a, w, dx);
      graph.pointwise(CUDNN_POINTWISE_ADD, dx, &graph.operand(ConvOperand::other, graph.x()), out);
      break;
    }
    case ConvFusion::scale_relu:
    case ConvFusion::scale_add_relu: {
      const CudnnDescriptor& y = graph.between(graph.y());
      graph.convolve(ConvPass::forward, *a, w, y);
      const CudnnDescriptor* sum = &graph.scaled(y, graph.y());
      if (fusion == ConvFusion::scale_add_relu) {
        const CudnnDescriptor& with_other = graph.between(graph.y());
        graph.pointwise(CUDNN_POINTWISE_ADD, *sum, &graph.operand(ConvOperand::other, graph.y()),
                        with_other);
        sum = &with_other;
      }
      graph.pointwise(CUDNN_POINTWISE_RELU_FWD, *sum, nullptr, out);
      break;
    }
  }
  return graph.finish(target);
}

template <typename Wish>
CudnnPlanWish plan_wish(const Wish& wish) {
  return {wish.shape.type, wish.deterministic, wish.workspace_limit};
}

}  // namespace

std::vector<CudnnPlan> list_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish,
                                       int most) {
  std::vector<CudnnPlan> plans =
      list_plans(target, conv_graph(target, wish.shape, wish.pass), plan_wish(wish), most);
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
  return find_plan(target, conv_graph(target, wish.shape, wish.pass), plan_wish(wish), name);
}

std::optional<CudnnPlan> restore_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                            const std::string& name, const std::string& text) {
  return plan_of(target, plan_wish(wish), name, text);
}

CudnnDescriptor bind_operands(const std::vector<std::pair<ConvOperand, const void*>>& operands,
                              void* workspace) {
  std::vector<CudnnOperand> numbered;
  for (const auto& [operand, data] : operands) {
    numbered.push_back({static_cast<int64_t>(operand), data});
  }
  return bind_operands(numbered, workspace);
}

CudnnDescriptor bind_statistics(const void* x, const void* weights, const void* y, const void* sums,
                                const void* squares, void* workspace) {
  return bind_operands({{ConvOperand::a, x},
                        {ConvOperand::b, weights},
                        {ConvOperand::out, y},
                        {ConvOperand::sums, sums},
                        {ConvOperand::squares, squares}},
                       workspace);
}

CudnnDescriptor bind_conv(const void* a, const void* b, const void* out, void* workspace) {
  return bind_operands({{ConvOperand::a, a}, {ConvOperand::b, b}, {ConvOperand::out, out}},
                       workspace);
}

std::vector<CudnnConfig> list_fused_configs(const CudnnTarget& target, const FusedConvWish& wish) {
  return list_configs(target, fused_graph(target, wish.shape, wish.fusion), plan_wish(wish));
}

std::vector<CudnnPlan> list_fused_plans(const CudnnTarget& target, const FusedConvWish& wish,
                                        int most) {
  return list_plans(target, fused_graph(target, wish.shape, wish.fusion), plan_wish(wish), most);
}

std::optional<CudnnPlan> find_fused_plan(const CudnnTarget& target, const FusedConvWish& wish,
                                         const std::string& name) {
  return find_plan(target, fused_graph(target, wish.shape, wish.fusion), plan_wish(wish), name);
}

std::string describe(const ConvShape& s, ConvPass pass) {
  const char* names[] = {"forward", "backward data", "backward weights"};
  const auto by = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b); };
  return std::string("convolution ") + names[static_cast<int>(pass)] + ", " +
         std::to_string(s.rows) + " rows, " + by(s.in_height, s.in_width) + "x" +
         std::to_string(s.in_channels) + " -> " + by(s.out_height, s.out_width) + "x" +
         std::to_string(s.out_channels) + ", kernel " + by(s.kernel.height, s.kernel.width) +
         ", stride " + std::to_string(s.stride) + ", padding " +
         by(s.padding.height, s.padding.width) + ", " +
         (s.type == Precision::bf16 ? "bf16" : "fp32");
}

}  // namespace stoker
