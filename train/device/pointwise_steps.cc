#include "train/device/plan_builder.h"

namespace stoker {
namespace {

class DeviceActivationSteps final : public DeviceSteps {
 public:
  explicit DeviceActivationSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    const int x = builder.value(builder.node(index_).input);
    const int y = builder.define_value(index_);
    builder.append(
        "activation", 2 * builder.value_bytes(index_),
        [x, y, ops = builder.ops(), kind = builder.node(index_).activation,
         count = builder.count(index_), type = builder.held().activations](const DeviceRun& run) {
          ops->activate(kind, count, type, run.at(x), run.at(y));
        });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    if (builder.wants_gradient(node.input)) {
      const int seen = builder.value(reads_output(node.activation) ? index_ : node.input);
      builder.read(dy);
      const int dx = builder.gradient_over(node.input, dy);
      builder.append(
          "activation_back", 3 * builder.value_bytes(index_),
          [seen, dy, dx, ops = builder.ops(), kind = node.activation, count = builder.count(index_),
           type = builder.held().activations](const DeviceRun& run) {
            ops->activate_backward(kind, count, type, run.at(seen), run.at(dy), run.at(dx));
          });
    }
    builder.release(dy);
  }

 private:
  const int index_;
};

class DeviceAddSteps final : public DeviceSteps {
 public:
  explicit DeviceAddSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int a = builder.value(node.input), b = builder.value(node.more_inputs[0]);
    const int y = builder.define_value(index_);
    builder.append(
        "add", 3 * builder.value_bytes(index_),
        [a, b, y, ops = builder.ops(), kind = node.activation, count = builder.count(index_),
         type = builder.held().activations](const DeviceRun& run) {
          ops->add(count, type, kind, run.at(a), run.at(b), run.at(y));
        });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int dy = builder.take_gradient(index_, 1)[0];
    const int passed =
        node.activation == Activation::relu ? append_activation_back(builder, index_, dy) : dy;
    for (const int input : inputs_of(node)) {
      if (builder.wants_gradient(input)) builder.pass_gradient(input, passed);
    }
    builder.release(dy);
  }

 private:
  const int index_;
};

}  // namespace

int append_activation_back(DevicePlanBuilder& builder, int index, int dy) {
  const int y = builder.value(index);
  builder.read(dy);
  const int before =
      builder.owned(dy) ? builder.write(dy) : builder.new_buffer(builder.value_bytes(index));
  builder.append(
      "activation_back", 3 * builder.value_bytes(index),
      [y, dy, before, ops = builder.ops(), kind = builder.node(index).activation,
       count = builder.count(index), type = builder.held().activations](const DeviceRun& run) {
        ops->activate_backward(kind, count, type, run.at(y), run.at(dy), run.at(before));
      });
  return before;
}

std::unique_ptr<DeviceSteps> make_device_activation(int index) {
  return std::make_unique<DeviceActivationSteps>(index);
}

std::unique_ptr<DeviceSteps> make_device_add(int index) {
  return std::make_unique<DeviceAddSteps>(index);
}

}  // namespace stoker
