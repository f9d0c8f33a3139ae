// Convolutions through cuDNN: one plan per pass and shape, which all convolutions of that shape
// share. cuDNN's graph API is called only in cudnn.* and conv_graphs.*. Owner:
// make_cuda_libraries(). Threads: one at a time; the stream's GPU is current. Errors:
// std::runtime_error.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/cuda/lazy_conv.h"
#include "train/cuda/plan_choices.h"
#include "train/device/tuning.h"

namespace stoker {

class CudaConvs final : public ConvPlanner {
 public:
  CudaConvs(cudaStream_t stream, const DeviceTuning& tuning);
  ~CudaConvs() override;
  CudaConvs(const CudaConvs&) = delete;
  CudaConvs& operator=(const CudaConvs&) = delete;

  // Returns a convolution that refers to this object.
  std::unique_ptr<DeviceConv> make(const ConvShape& shape, bool backward);
  const CudnnPlan& plan(const ConvShape& shape, ConvPass pass) override;
  void execute(const CudnnPlan& plan, const CudnnDescriptor& operands) override;

  // Returns null if cuDNN has no such plan, if the convolution and a separate pass over its output
  // are faster, or without autotune. Chosen like other plans; call it before the first step.
  const CudnnPlan* with_statistics(const ConvShape& shape) override;

  std::string summary() const { return choices_.summary(); }  // how plans were chosen

 private:
  CudnnPlan choose(const ConvPlanWish& wish);
  std::unique_ptr<CudnnPlan> choose_with_statistics(const ConvShape& shape);
  std::string question_of(const std::string& what, int candidates) const;

  const cudaStream_t stream_;
  const DeviceTuning tuning_;
  cudnnHandle_t handle_ = nullptr;
  const std::string machine_;  // the GPU and cuDNN, for the plan cache
  PlanChoices choices_;
  struct Entry {
    ConvShape shape;
    ConvPass pass;
    std::unique_ptr<CudnnPlan> plan;
  };
  std::vector<Entry> plans_;
  struct StatisticsEntry {
    ConvShape shape;
    std::unique_ptr<CudnnPlan> plan;  // or null: not faster
  };
  std::vector<StatisticsEntry> with_statistics_;
};

// Measures what cuDNN's fusions would save on this GPU: compares each fused plan with the
// convolution followed by our kernels. For cuda_step_bench; the engine itself times only the fusion
// that it may use. Returns one entry per shape and fusion, also if cuDNN has no plan for it.
std::vector<FusionTime> time_fusions(cudaStream_t stream, const DeviceTuning& tuning,
                                     std::span<const ConvShape> shapes);

}  // namespace stoker
