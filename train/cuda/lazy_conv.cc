#include "train/cuda/lazy_conv.h"

#include <array>
#include <stdexcept>

namespace stoker {
namespace {

class SummingConv final : public DeviceSummingConv {
 public:
  SummingConv(ConvPlanner& planner, const ConvShape& shape, const CudnnPlan& plan)
      : planner_(planner), shape_(shape), plan_(plan) {}

  int64_t workspace_bytes() const override { return plan_.workspace_bytes; }
  std::string implementation() const override {
    return describe(shape_, ConvPass::forward) + ", and its sums: cuDNN " + plan_.name;
  }
  void run(const void* x, const void* weights, void* y, float* sums, void* workspace) override {
    planner_.execute(plan_,
                     bind_statistics(x, weights, y, sums, sums + shape_.out_channels, workspace));
  }

 private:
  ConvPlanner& planner_;
  const ConvShape shape_;
  const CudnnPlan& plan_;
};

class LazyConv final : public DeviceConv {
 public:
  LazyConv(ConvPlanner& planner, const ConvShape& shape, bool backward)
      : planner_(planner), shape_(shape), backward_(backward) {}

  int64_t workspace_bytes(ConvPass pass) const override { return planned(pass).workspace_bytes; }
  std::string implementation(ConvPass pass) const override {
    return describe(shape_, pass) + ": cuDNN " + planned(pass).name;
  }
  void run(ConvPass pass, const void* a, const void* b, void* out, void* workspace) override {
    const CudnnPlan* plan = plans_[static_cast<size_t>(pass)];
    if (plan == nullptr) fail(pass, "is run, but was not planned");
    planner_.execute(*plan, bind_conv(a, b, out, workspace));
  }
  DeviceSummingConv* summing() override {
    // The squares follow the sums, and the graph declares all operands as aligned to 16 bytes.
    const bool aligned = shape_.out_channels % 4 == 0;
    if (summing_ == nullptr && aligned) {
      if (const CudnnPlan* plan = planner_.with_statistics(shape_)) {
        summing_ = std::make_unique<SummingConv>(planner_, shape_, *plan);
      }
    }
    return summing_.get();
  }

 private:
  const CudnnPlan& planned(ConvPass pass) const {
    if (pass != ConvPass::forward && !backward_) {
      fail(pass, "is asked for, but there is no backward pass");
    }
    const CudnnPlan*& plan = plans_[static_cast<size_t>(pass)];
    if (plan == nullptr) plan = &planner_.plan(shape_, pass);
    return *plan;
  }
  [[noreturn]] void fail(ConvPass pass, const std::string& what) const {
    throw std::logic_error(describe(shape_, pass) + " " + what);
  }

  ConvPlanner& planner_;
  const ConvShape shape_;
  const bool backward_;
  mutable std::array<const CudnnPlan*, 3> plans_{};  // by pass; null until planned
  std::unique_ptr<SummingConv> summing_;
};

}  // namespace

std::unique_ptr<DeviceConv> make_lazy_conv(ConvPlanner& planner, const ConvShape& shape,
                                           bool backward) {
  return std::make_unique<LazyConv>(planner, shape, backward);
}

}  // namespace stoker
