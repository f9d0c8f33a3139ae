#include "train/device/plan_builder.h"
#include "train/engine/dropout.h"

namespace stoker {
namespace {

class DeviceDropoutSteps final : public DeviceSteps {
 public:
  explicit DeviceDropoutSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    const int x = builder.value(builder.node(index_).input);
    append(builder, "dropout", x, builder.define_value(index_));
  }

  // Draws the factors again, which takes no memory to keep them in.
  void build_backward(DevicePlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    if (builder.wants_gradient(input)) {
      builder.read(dy);
      append(builder, "dropout_back", dy, builder.gradient_over(input, dy));
    }
    builder.release(dy);
  }

 private:
  void append(DevicePlanBuilder& builder, const char* name, int from, int to) const {
    const NodeShape& shape = builder.node(index_).shape;
    const DropoutShape args{builder.options().rows,
                            shape.channels,
                            static_cast<int64_t>(shape.height) * shape.width,
                            dropout_key(builder.options().seed, builder.node(index_).node),
                            builder.spec(index_).rate,
                            builder.held().activations};
    builder.append(name, 2 * builder.value_bytes(index_),
                   [args, from, to, ops = builder.ops()](const DeviceRun& run) {
                     ops->dropout(args, run.position, run.at(from), run.at(to));
                   });
  }

  const int index_;
};

}  // namespace

std::unique_ptr<DeviceSteps> make_device_dropout(int index) {
  return std::make_unique<DeviceDropoutSteps>(index);
}

}  // namespace stoker
