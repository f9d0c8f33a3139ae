#include "train/device/plan_builder.h"

namespace stoker {
namespace {

class DevicePoolSteps final : public DeviceSteps {
 public:
  explicit DevicePoolSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const NetNode& spec = builder.spec(index_);
    const NodeShape& in = builder.node(node.input).shape;
    max_ = node.kind == OpKind::max_pool;
    shape_ = {builder.options().rows,
              in.channels,
              in.height,
              in.width,
              node.shape.height,
              node.shape.width,
              spec.kernel,
              spec.stride,
              spec.padding,
              node.kind == OpKind::adaptive_avg_pool,
              builder.held().activations};
    const int x = builder.value(node.input);
    if (max_) taps_ = builder.new_buffer(builder.count(index_));
    const int y = builder.define_value(index_);
    builder.append(max_ ? "max_pool" : "average_pool", bytes(builder),
                   [*this, x, y, ops = builder.ops()](const DeviceRun& run) {
                     if (max_) {
                       ops->max_pool(shape_, run.at(x), run.at(y), run.at<uint8_t>(taps_));
                     } else {
                       ops->average_pool(shape_, run.at(x), run.at(y));
                     }
                   });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    if (builder.wants_gradient(input)) {
      builder.read(dy);
      const int dx = builder.new_gradient(input);
      if (max_) builder.read(taps_);
      builder.append(max_ ? "max_pool_back" : "average_pool_back", bytes(builder),
                     [*this, dy, dx, ops = builder.ops()](const DeviceRun& run) {
                       if (max_) {
                         ops->max_pool_backward(shape_, run.at(dy), run.at<uint8_t>(taps_),
                                                run.at(dx));
                       } else {
                         ops->average_pool_backward(shape_, run.at(dy), run.at(dx));
                       }
                     });
    }
    builder.release(dy);
  }

 private:
  // Returns the bytes of input, output and taps.
  int64_t bytes(const DevicePlanBuilder& builder) const {
    return builder.value_bytes(builder.node(index_).input) + builder.value_bytes(index_) +
           (max_ ? builder.count(index_) : 0);
  }

  int index_;
  bool max_ = false;
  PoolShape shape_;
  int taps_ = -1;  // buffer
};

class DevicePadSteps final : public DeviceSteps {
 public:
  explicit DevicePadSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const NodeShape& in = builder.node(node.input).shape;
    const NodeShape& out = node.shape;
    shape_ = {builder.options().rows,
              builder.spec(index_).stride,
              in.channels,
              in.height,
              in.width,
              out.channels,
              out.height,
              out.width,
              builder.held().activations};
    const int x = builder.value(node.input), y = builder.define_value(index_);
    builder.append("pad_channels", bytes(builder),
                   [*this, x, y, ops = builder.ops()](const DeviceRun& run) {
                     ops->pad_channels(shape_, run.at(x), run.at(y));
                   });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    if (builder.wants_gradient(input)) {
      builder.read(dy);
      const int dx = builder.new_gradient(input);
      builder.append("pad_channels_back", bytes(builder),
                     [*this, dy, dx, ops = builder.ops()](const DeviceRun& run) {
                       ops->pad_channels_backward(shape_, run.at(dy), run.at(dx));
                     });
    }
    builder.release(dy);
  }

 private:
  int64_t bytes(const DevicePlanBuilder& builder) const {
    return builder.value_bytes(builder.node(index_).input) + builder.value_bytes(index_);
  }

  int index_;
  PadShape shape_;
};

}  // namespace

std::unique_ptr<DeviceSteps> make_device_pool(int index) {
  return std::make_unique<DevicePoolSteps>(index);
}

std::unique_ptr<DeviceSteps> make_device_pad(int index) {
  return std::make_unique<DevicePadSteps>(index);
}

}  // namespace stoker
