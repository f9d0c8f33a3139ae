#include "train/cuda_lazy_conv.h"

#include <array>
#include <stdexcept>

namespace stoker {
namespace {

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
  mutable std::array<const CudnnPlan*, 3> plans_{};  // by pass; null until asked for
};

}  // namespace

std::unique_ptr<DeviceConv> make_lazy_conv(ConvPlanner& planner, const ConvShape& shape,
                                           bool backward) {
  return std::make_unique<LazyConv>(planner, shape, backward);
}

}  // namespace stoker
