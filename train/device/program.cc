#include "train/device/program.h"

#include "train/device/plan_builder.h"

namespace stoker {
namespace {

constexpr NodeKinds<DevicePlanBuilder> kDeviceKinds{.conv = make_device_conv,
                                                    .norm = make_device_norm,
                                                    .activation = make_device_activation,
                                                    .add = make_device_add,
                                                    .concat = make_device_concat,
                                                    .pool = make_device_pool,
                                                    .pad = make_device_pad,
                                                    .dropout = make_device_dropout,
                                                    .head = make_device_head};

}  // namespace

DeviceProgram build_device_program(const NetSpec& net, const PlanOptions& options,
                                   const DeviceTuning& tuning, const GradientLayout& layout,
                                   DeviceOps* ops, DeviceNormExchange* norms) {
  DeviceProgram program;
  DevicePlanBuilder builder(net, options, tuning, layout, ops, norms, program);
  build_plan(builder, program.plan, kDeviceKinds);
  return program;
}

}  // namespace stoker
