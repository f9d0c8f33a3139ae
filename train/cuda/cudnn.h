// cuDNN's graph API: descriptors with a destructor, and the plans that cuDNN has for a graph of
// operations (conv_graphs.h builds the graphs). Plans can be found for a GPU, or for one that is
// only described (for tests without a GPU). Threads: any, one at a time per object. Errors:
// std::runtime_error with cuDNN's text.
#pragma once

#include <cudnn.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/device/types.h"

namespace stoker {

using Longs = std::vector<int64_t>;  // of a descriptor's attribute

void check_cudnn(cudnnStatus_t status, const char* call);

class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor() { reset(); }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  template <typename Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const std::vector<Value>& values) {
    check_cudnn(cudnnBackendSetAttribute(descriptor_, name, type,
                                         static_cast<int64_t>(values.size()), values.data()),
                "cudnnBackendSetAttribute");
    return *this;
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{value.get()});
  }
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(descriptor_); }
  CudnnDescriptor& finalize() {
    check_cudnn(try_finalize(), "cudnnBackendFinalize");
    return *this;
  }

 private:
  void reset() noexcept;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// The target of plans: a GPU by its handle, or one described by cuDNN's JSON.
class CudnnTarget {
 public:
  explicit CudnnTarget(cudnnHandle_t handle) : handle_(handle) {}
  explicit CudnnTarget(const std::string& device_json);

  void apply_to_graph(CudnnDescriptor& graph) const;
  void apply_to_heuristics(CudnnDescriptor& heuristics) const;
  void apply_to_engine(CudnnDescriptor& engine) const;
  void apply_to_plan(CudnnDescriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  CudnnDescriptor device_;  // if there is no handle
};

// The requirements for a graph's plans.
struct CudnnPlanWish {
  Precision type = Precision::fp32;  // of the data; fp32 plans do not use TF32
  bool deterministic = true;
  int64_t workspace_limit = 0;
};

struct CudnnPlan {
  CudnnDescriptor plan;
  int64_t workspace_bytes = 0;
  // The engine and all its knobs, by cuDNN's numbers: "eng62_k2=4_k13=0". Together with the graph,
  // the GPU and cuDNN's version it identifies the plan.
  std::string name;
  std::vector<cudnnBackendNumericalNote_t> notes;
};

// A way to run a graph, from which a plan can be made. If cuDNN must compile a kernel, this takes
// about a second.
struct CudnnConfig {
  CudnnDescriptor config;
  std::string name;  // of the plan
  std::vector<cudnnBackendNumericalNote_t> notes;
};

// Returns all configurations for a finalised operation graph that `wish` allows, best guess first,
// but spread over the engines.
std::vector<CudnnConfig> list_configs(const CudnnTarget& target, const CudnnDescriptor& graph,
                                      const CudnnPlanWish& wish);
// Returns up to `most` plans of these configurations.
std::vector<CudnnPlan> list_plans(const CudnnTarget& target, const CudnnDescriptor& graph,
                                  const CudnnPlanWish& wish, int most);
// Returns the plan of this name, without listing others; nothing if cuDNN has no such plan or
// `wish` forbids it.
std::optional<CudnnPlan> find_plan(const CudnnTarget& target, const CudnnDescriptor& graph,
                                   const CudnnPlanWish& wish, const std::string& name);

// Convert a plan with its compiled kernel to text and back, without compiling. The text is for one
// kind of GPU and one version of cuDNN. The caller must store the name, because a restored plan
// also reports knobs that were not set. plan_of() returns nothing if cuDNN rejects the text or
// `wish` forbids the plan.
std::string text_of(const CudnnPlan& plan);
std::optional<CudnnPlan> plan_of(const CudnnTarget& target, const CudnnPlanWish& wish,
                                 const std::string& name, const std::string& text);

// The memory of one of the graph's tensors, by the tensor's id.
struct CudnnOperand {
  int64_t id;
  const void* data;
};
CudnnDescriptor bind_operands(const std::vector<CudnnOperand>& operands, void* workspace);
void execute_plan(cudnnHandle_t handle, const CudnnPlan& plan, const CudnnDescriptor& operands);

}  // namespace stoker
