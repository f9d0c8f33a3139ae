#include <algorithm>
#include <limits>

#include "train/cuda/conv.h"
#include "train/cuda/kernels.h"
#include "train/cuda/plan_trial.h"

namespace stoker {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();
// Plans per fusion; cuDNN compiles each one for about a second.
constexpr int kPlans = 2;

struct Named {
  ConvFusion fusion;
  const char* name;
};
constexpr Named kFusions[] = {{ConvFusion::statistics, "sums of y"},
                              {ConvFusion::relu_statistics, "normalised x, sums of y"},
                              {ConvFusion::data_add, "dx + another gradient"},
                              {ConvFusion::scale_relu, "normalised y"},
                              {ConvFusion::scale_add_relu, "normalised y + residual"}};

class Handle {
 public:
  explicit Handle(cudaStream_t stream) {
    check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
    check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
  }
  ~Handle() { cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

// Times one fusion of one convolution, in separate memory.
class Trial {
 public:
  Trial(cudaStream_t stream, CudaConvs& convs, cudnnHandle_t handle, const ConvShape& shape,
        ConvFusion fusion, const std::vector<CudnnPlan>& plans)
      : stream_(stream),
        convs_(convs),
        handle_(handle),
        shape_(shape),
        fusion_(fusion),
        pass_(fusion == ConvFusion::data_add ? ConvPass::backward_data : ConvPass::forward),
        plain_(convs.plan(shape, pass_)),
        memory_(stream, sizes(plans)) {}

  bool has_room() const { return memory_.has_room(); }

  float fused_ms(const CudnnPlan& plan, float best) const {
    const CudnnDescriptor operands = bind_operands(fused_operands(), memory_.at(kWorkspace));
    return trial_ms(
        stream_, [&] { execute_plan(handle_, plan, operands); }, best);
  }

  // Times the plain convolution with its fastest plan, and our kernels for the rest.
  float apart_ms() const {
    return trial_ms(
        stream_, [&] { run_apart(); }, kNever);
  }

 private:
  enum Piece : size_t { kA, kB, kOut, kOther, kChannels, kScratch, kWorkspace };

  std::vector<int64_t> sizes(const std::vector<CudnnPlan>& plans) const {
    std::vector<int64_t> all = operand_bytes(shape_, pass_);
    int64_t workspace = plain_.workspace_bytes;
    for (const CudnnPlan& plan : plans) workspace = std::max(workspace, plan.workspace_bytes);
    all.insert(all.end(), {std::max(all[kA], all[kOut]), kPlanes * channel_bytes(),
                           sum_pass_scratch_bytes(shape_), workspace});
    return all;
  }

  // Returns only the operands that the fusion's graph has.
  std::vector<std::pair<ConvOperand, const void*>> fused_operands() const {
    std::vector<std::pair<ConvOperand, const void*>> operands = {
        {ConvOperand::a, memory_.at(kA)},
        {ConvOperand::b, memory_.at(kB)},
        {ConvOperand::out, memory_.at(kOut)}};
    const auto add = [&](std::initializer_list<std::pair<ConvOperand, const void*>> more) {
      operands.insert(operands.end(), more);
    };
    const bool sums = fusion_ == ConvFusion::statistics || fusion_ == ConvFusion::relu_statistics;
    const bool other = fusion_ == ConvFusion::data_add || fusion_ == ConvFusion::scale_add_relu;
    if (sums) add({{ConvOperand::sums, channel(2)}, {ConvOperand::squares, channel(3)}});
    if (other) add({{ConvOperand::other, memory_.at(kOther)}});
    if (fusion_ != ConvFusion::statistics && fusion_ != ConvFusion::data_add) {
      add({{ConvOperand::scale, channel(0)}, {ConvOperand::bias, channel(1)}});
    }
    return operands;
  }

  static constexpr int64_t kPlanes = 4;
  int64_t channel_bytes() const {
    return int64_t{sizeof(float)} * std::max(shape_.in_channels, shape_.out_channels);
  }
  float* channel(int64_t plane) const {
    return reinterpret_cast<float*>(memory_.at(kChannels) + plane * channel_bytes());
  }

  void run_apart() const {
    const bool of_input = fusion_ == ConvFusion::relu_statistics;
    if (of_input) normalise(memory_.at(kA), memory_.at(kOther), nullptr, true);
    const std::byte* a = memory_.at(of_input ? kOther : kA);
    convs_.execute(plain_, bind_conv(a, memory_.at(kB), memory_.at(kOut), memory_.at(kWorkspace)));
    std::byte* const out = memory_.at(kOut);
    switch (fusion_) {
      case ConvFusion::statistics:
      case ConvFusion::relu_statistics:
        return queue_sum_pass(stream_, shape_, out, memory_.at(kScratch));
      case ConvFusion::data_add:
        return cuda::add(stream_, pixels(true) * shape_.in_channels, shape_.type, Activation::none,
                         out, memory_.at(kOther), out);
      case ConvFusion::scale_relu:
        return normalise(out, out, nullptr, false);
      case ConvFusion::scale_add_relu:
        return normalise(out, out, memory_.at(kOther), false);
    }
  }

  int64_t pixels(bool of_input) const {
    return of_input ? int64_t{shape_.rows} * shape_.in_height * shape_.in_width
                    : int64_t{shape_.rows} * shape_.out_height * shape_.out_width;
  }

  void normalise(const void* x, void* y, const void* residual, bool of_input) const {
    NormShape s;
    s.pixels = pixels(of_input);
    s.channels = of_input ? shape_.in_channels : shape_.out_channels;
    s.type = shape_.type;
    s.activation = Activation::relu;
    NormForward a;
    a.x = x;
    a.y = y;
    a.residual = residual;
    a.gamma = channel(0);
    a.beta = channel(1);
    a.running_mean = channel(2);
    a.running_variance = channel(3);
    cuda::norm_inference(stream_, s, a);
  }

  const cudaStream_t stream_;
  CudaConvs& convs_;
  const cudnnHandle_t handle_;
  const ConvShape shape_;
  const ConvFusion fusion_;
  const ConvPass pass_;
  const CudnnPlan& plain_;
  const PlanTrial memory_;
};

}  // namespace

std::vector<FusionTime> time_fusions(cudaStream_t stream, const DeviceTuning& tuning,
                                     std::span<const ConvShape> shapes) {
  CudaConvs convs(stream, tuning);
  const Handle handle(stream);
  const CudnnTarget target(handle.get());
  std::vector<FusionTime> times;
  for (const ConvShape& shape : shapes) {
    for (const Named& named : kFusions) {
      const std::vector<CudnnPlan> plans = list_fused_plans(
          target, {shape, named.fusion, tuning.deterministic, tuning.workspace_limit}, kPlans);
      FusionTime time{shape, named.name, "", 0, 0};
      const Trial trial(stream, convs, handle.get(), shape, named.fusion, plans);
      float best = kNever;
      if (trial.has_room() && !plans.empty()) {
        time.apart_ms = trial.apart_ms();
        for (const CudnnPlan& plan : plans) {
          const float ms = trial.fused_ms(plan, best);
          if (ms >= best) continue;
          best = ms;
          time.plan = plan.name;
        }
      }
      if (!time.plan.empty()) time.fused_ms = best;
      times.push_back(time);
    }
  }
  return times;
}

}  // namespace stoker
