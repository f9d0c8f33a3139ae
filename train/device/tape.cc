#include "train/device/tape.h"

#include "train/device/tape_builder.h"

namespace stoker {
namespace {

std::unique_ptr<DeviceTapeOp> make_op(OpKind kind, int index) {
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

DeviceTape build_device_tape(const NetSpec& net, const DeviceTapeOptions& options,
                             const DeviceLayout& layout, DeviceOps* ops) {
  DeviceTape tape;
  tape.nodes = lower_for_device(net, options.input_channels);
  DeviceTapeBuilder builder(net, options, layout, ops, tape);
  std::vector<std::unique_ptr<DeviceTapeOp>> nodes(tape.nodes.size());
  tape.input = builder.define_value(0);
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    nodes[i] = make_op(tape.nodes[i].kind, i);
    builder.begin(i, DeviceStepUse::always);
    nodes[i]->build_forward(builder);
  }
  tape.forward_steps = tape.steps.size();
  if (options.training) {
    for (int i = static_cast<int>(nodes.size()) - 1; i > 0; --i) {
      builder.begin(i, DeviceStepUse::both);
      nodes[i]->build_backward(builder);
    }
  }
  tape.plan = plan_memory(tape.buffers);
  return tape;
}

void DeviceTape::run(const DeviceRun& run, size_t begin, size_t end) const {
  for (size_t s = begin; s < end; ++s) {
    if (!steps[s].left_out) steps[s].run(run);
  }
}

void DeviceTape::leave_out(const std::vector<bool>& tensors, const DeviceLayout& layout) {
  std::vector<bool> own(nodes.size(), false);  // some of its parameters' gradients are wanted
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t]) continue;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool has_parameters = nodes[i].kind != OpKind::add;
      if (has_parameters && nodes[i].node == layout.tensors()[t].node) own[i] = true;
    }
  }
  std::vector<bool> at_or_before = own, before(nodes.size(), false);
  for (size_t i = 1; i < nodes.size(); ++i) {
    before[i] =
        at_or_before[nodes[i].input] || (nodes[i].input2 >= 0 && at_or_before[nodes[i].input2]);
    at_or_before[i] = own[i] || before[i];
  }
  for (DeviceStep& step : steps) {
    const bool for_inputs = step.use == DeviceStepUse::inputs || step.use == DeviceStepUse::both;
    const bool wanted = step.use == DeviceStepUse::always || (for_inputs && before[step.node]) ||
                        (step.use == DeviceStepUse::both && own[step.node]) ||
                        (step.use == DeviceStepUse::parameter && !tensors[step.tensor]);
    step.left_out = !wanted;
  }
}

}  // namespace stoker
