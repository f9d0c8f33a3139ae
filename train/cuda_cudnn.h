// cuDNN's graph API as far as a convolution needs it: descriptors that free themselves, and the
// plans that cuDNN knows for one pass of one convolution, best first. Plans are found for a GPU, or
// for one that is only described (a test checks them where there is none).
// Threads: any, one at a time per object. Errors: std::runtime_error with cuDNN's text.
#pragma once

#include <cudnn.h>

#include <string>
#include <utility>
#include <vector>

#include "train/device_ops.h"

namespace stoker {

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

// What plans are for: a GPU by its handle, or one described by cuDNN's JSON.
class CudnnTarget {
 public:
  explicit CudnnTarget(cudnnHandle_t handle) : handle_(handle) {}
  explicit CudnnTarget(const std::string& device_json);

  void apply_to_graph(CudnnDescriptor& graph) const;
  void apply_to_heuristics(CudnnDescriptor& heuristics) const;
  void apply_to_plan(CudnnDescriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  CudnnDescriptor device_;  // if there is no handle
};

struct ConvPlanWish {
  ConvShape shape;
  ConvPass pass = ConvPass::forward;
  bool deterministic = true;
  int64_t workspace_limit = 0;
  int most = 1;  // plans to make
};

struct ConvPlan {
  CudnnDescriptor plan;
  int64_t workspace_bytes = 0;
  std::string name;  // cuDNN's: "eng17_k2=0_k3=1"
};

// fp32 plans keep fp32 (no TF32). Throws if there is none, naming the shape.
std::vector<ConvPlan> find_conv_plans(const CudnnTarget& target, const ConvPlanWish& wish);

// Operands of a plan, in the order of DeviceConv::run().
void execute_conv_plan(cudnnHandle_t handle, const ConvPlan& plan, const void* a, const void* b,
                       void* out, void* workspace);

std::string describe(const ConvShape& shape, ConvPass pass);

}  // namespace stoker
