#include "train/device/program.h"

#include "train/device/plan_builder.h"

namespace stoker {
namespace {

std::unique_ptr<DeviceSteps> make_steps(OpKind kind, int index) {
  switch (kind) {
    case OpKind::conv:
      return make_device_conv(index);
    case OpKind::batch_norm:
      return make_device_norm(index);
    case OpKind::relu:
    case OpKind::gelu:
      return make_device_activation(index);
    case OpKind::add:
      return make_device_add(index);
    case OpKind::max_pool:
    case OpKind::global_avg_pool:
      return make_device_pool(index);
    case OpKind::pad_channels:
      return make_device_pad(index);
    case OpKind::linear:
      return make_device_head(index);
    case OpKind::input:
      break;
  }
  return nullptr;
}

}  // namespace

PlanOptions device_plan_options(const EngineOptions& options, const DeviceTuning& tuning,
                                bool training) {
  return plan_options(options, device_fusion(tuning), training);
}

DeviceProgram build_device_program(const NetSpec& net, const PlanOptions& options,
                                   const DeviceTuning& tuning, const GradientLayout& layout,
                                   DeviceOps* ops) {
  DeviceProgram program;
  DevicePlanBuilder builder(net, options, tuning, layout, ops, program);
  build_plan(builder, program.plan,
             [&](int index) { return make_steps(builder.node(index).kind, index); });
  return program;
}

}  // namespace stoker
