#include "train/cuda_cudnn.h"

#include <algorithm>
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

std::vector<CudnnDescriptor> engine_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                            cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
  target.apply_to_heuristics(heuristics);
  if (heuristics.try_finalize() != CUDNN_STATUS_SUCCESS) return {};  // knows nothing of the kind
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cudnnBackendGetAttribute(results)");
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  check_cudnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
              "cudnnBackendGetAttribute(results)");
  configs.resize(static_cast<size_t>(count));
  return configs;
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const CudnnDescriptor& config) {
  const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
              "cudnnBackendGetAttribute(engine)");
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check_cudnn(
      cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
      "cudnnBackendGetAttribute(notes)");
  notes.resize(static_cast<size_t>(count));
  return notes;
}

// fp32 is for comparisons: nothing but fp32 products and sums.
bool keeps_fp32(cudnnBackendNumericalNote_t note) {
  return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
         note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
}

bool allowed(const CudnnDescriptor& config, const ConvPlanWish& wish) {
  for (const cudnnBackendNumericalNote_t note : notes_of(config)) {
    if (wish.deterministic && note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    if (wish.shape.type == Precision::fp32 && !keeps_fp32(note)) return false;
  }
  return true;
}

std::string name_of(const CudnnDescriptor& config) {
  const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t count = 0, index = -1;
  check_cudnn(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
              "cudnnBackendGetAttribute(engine)");
  check_cudnn(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                       &count, &index),
              "cudnnBackendGetAttribute(index)");
  return "engine " + std::to_string(index);
}

}  // namespace

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char reason[512] = "";
  cudnnGetLastErrorString(reason, sizeof reason);
  throw std::runtime_error(std::string("cuDNN: ") + call + ": " + cudnnGetErrorString(status) +
                           (reason[0] != 0 ? std::string(", ") + reason : std::string()));
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

void CudnnDescriptor::reset() noexcept {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnTarget::CudnnTarget(const std::string& device_json)
    : device_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  device_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              std::vector<char>(device_json.begin(), device_json.end()));
  device_.finalize();
}

void CudnnTarget::apply_to_graph(CudnnDescriptor& graph) const {
  if (handle_ == nullptr) return;
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
}

void CudnnTarget::apply_to_heuristics(CudnnDescriptor& heuristics) const {
  if (handle_ == nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_);
}

void CudnnTarget::apply_to_plan(CudnnDescriptor& plan) const {
  if (handle_ != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle_});
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_);
  }
}

std::vector<ConvPlan> find_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish) {
  const CudnnDescriptor graph = operation_graph(target, wish.shape, wish.pass);
  std::vector<ConvPlan> plans;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const CudnnDescriptor& config : engine_configs(target, graph, mode)) {
      if (static_cast<int>(plans.size()) >= wish.most) return plans;
      if (!allowed(config, wish)) continue;
      ConvPlan made;
      made.plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      target.apply_to_plan(made.plan);
      made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (made.plan.try_finalize() != CUDNN_STATUS_SUCCESS) continue;  // not for this shape
      int64_t count = 0;
      check_cudnn(
          cudnnBackendGetAttribute(made.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1, &count, &made.workspace_bytes),
          "cudnnBackendGetAttribute(workspace)");
      if (made.workspace_bytes > wish.workspace_limit) continue;
      made.name = name_of(config);
      plans.push_back(std::move(made));
    }
  }
  if (plans.empty()) {
    throw std::runtime_error("cuDNN has no " +
                             std::string(wish.deterministic ? "deterministic " : "") +
                             "plan within " + std::to_string(wish.workspace_limit >> 20) +
                             " MiB of workspace for " + describe(wish.shape, wish.pass));
  }
  return plans;
}

void execute_conv_plan(cudnnHandle_t handle, const ConvPlan& plan, const void* a, const void* b,
                       void* out, void* workspace) {
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           Longs{kOperandA, kOperandB, kOperandOut});
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           std::vector<void*>{const_cast<void*>(a), const_cast<void*>(b), out});
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
  pack.finalize();
  check_cudnn(cudnnBackendExecute(handle, plan.plan.get(), pack.get()), "cudnnBackendExecute");
}

std::string describe(const ConvShape& s, ConvPass pass) {
  const char* names[] = {"forward", "backward data", "backward weights"};
  const auto by = [](int a, int b) { return std::to_string(a) + "x" + std::to_string(b); };
  return std::string("convolution ") + names[static_cast<int>(pass)] + ", " +
         std::to_string(s.rows) + " rows, " + by(s.in_height, s.in_width) + "x" +
         std::to_string(s.in_channels) + " -> " + by(s.out_height, s.out_width) + "x" +
         std::to_string(s.out_channels) + ", kernel " + std::to_string(s.kernel) + ", stride " +
         std::to_string(s.stride) + ", " + (s.type == Precision::bf16 ? "bf16" : "fp32");
}

}  // namespace stoker
