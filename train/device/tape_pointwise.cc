#include "train/device/tape_builder.h"

namespace stoker {
namespace {

// GELU reads its input again in the backward pass, ReLU its own output.
class ActivationOp final : public DeviceTapeOp {
 public:
  explicit ActivationOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    const int x = tape.value(tape.node(index_).input);
    const int y = tape.define_value(index_);
    tape.append(
        "activation", 2 * tape.bytes(index_),
        [x, y, ops = tape.ops(), kind = tape.node(index_).activation, count = tape.count(index_),
         type = tape.options().precision](const DeviceRun& run) {
          ops->activate(kind, count, type, run.at(x), run.at(y));
        });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const int dy = tape.take_gradient(index_, 1)[0];
    if (tape.wants_gradient(node.input)) {
      const bool relu = node.activation == Activation::relu;
      const int seen = tape.value(relu ? index_ : node.input);
      const bool in_place = tape.owned(dy);
      const int dx = in_place ? dy : tape.new_gradient(node.input);
      if (in_place) tape.pass_gradient(node.input, dy);
      tape.append(
          "activation_back", 3 * tape.bytes(index_),
          [seen, dy, dx, ops = tape.ops(), kind = node.activation, count = tape.count(index_),
           type = tape.options().precision](const DeviceRun& run) {
            ops->activate_backward(kind, count, type, run.at(seen), run.at(dy), run.at(dx));
          });
    }
    tape.release(dy);
  }

 private:
  const int index_;
};

class AddOp final : public DeviceTapeOp {
 public:
  explicit AddOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const int a = tape.value(node.input), b = tape.value(node.input2);
    const int y = tape.define_value(index_);
    tape.append("add", 3 * tape.bytes(index_),
                [a, b, y, ops = tape.ops(), kind = node.activation, count = tape.count(index_),
                 type = tape.options().precision](const DeviceRun& run) {
                  ops->add(count, type, kind, run.at(a), run.at(b), run.at(y));
                });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const int dy = tape.take_gradient(index_, 1)[0];
    int passed = dy;
    if (node.activation == Activation::relu) {
      if (!tape.owned(dy)) passed = tape.new_buffer(tape.bytes(index_));
      const int y = tape.value(index_);
      tape.append("add_back", 3 * tape.bytes(index_),
                  [y, dy, passed, ops = tape.ops(), count = tape.count(index_),
                   type = tape.options().precision](const DeviceRun& run) {
                    ops->activate_backward(Activation::relu, count, type, run.at(y), run.at(dy),
                                           run.at(passed));
                  });
    }
    for (const int input : {node.input, node.input2}) {
      if (tape.wants_gradient(input)) tape.pass_gradient(input, passed);
    }
    tape.release(dy);
  }

 private:
  const int index_;
};

class PoolOp final : public DeviceTapeOp {
 public:
  explicit PoolOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const NetNode& spec = tape.spec(index_);
    const NodeShape& in = tape.node(node.input).shape;
    max_ = node.kind == OpKind::max_pool;
    shape_ = {
        tape.options().rows, in.channels, in.height,   in.width,     node.shape.height,
        node.shape.width,    spec.kernel, spec.stride, spec.padding, tape.options().precision};
    const int x = tape.value(node.input);
    if (max_) taps_ = tape.new_buffer(tape.count(index_));
    const int y = tape.define_value(index_);
    tape.append(max_ ? "max_pool" : "average_pool", bytes(tape),
                [*this, x, y, ops = tape.ops()](const DeviceRun& run) {
                  if (max_) {
                    ops->max_pool(shape_, run.at(x), run.at(y), run.at<uint8_t>(taps_));
                  } else {
                    ops->average_pool(shape_, run.at(x), run.at(y));
                  }
                });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const int input = tape.node(index_).input;
    const int dy = tape.take_gradient(index_, 1)[0];
    if (tape.wants_gradient(input)) {
      const int dx = tape.new_gradient(input);
      if (max_) tape.use(taps_);
      tape.append(max_ ? "max_pool_back" : "average_pool_back", bytes(tape),
                  [*this, dy, dx, ops = tape.ops()](const DeviceRun& run) {
                    if (max_) {
                      ops->max_pool_backward(shape_, run.at(dy), run.at<uint8_t>(taps_),
                                             run.at(dx));
                    } else {
                      ops->average_pool_backward(shape_, run.at(dy), run.at(dx));
                    }
                  });
    }
    tape.release(dy);
  }

 private:
  // Input and output, and which number of its window won.
  int64_t bytes(const DeviceTapeBuilder& tape) const {
    return tape.bytes(tape.node(index_).input) + tape.bytes(index_) +
           (max_ ? tape.count(index_) : 0);
  }

  int index_;
  bool max_ = false;
  PoolShape shape_;
  int taps_ = -1;  // buffer
};

class PadOp final : public DeviceTapeOp {
 public:
  explicit PadOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const NodeShape& in = tape.node(node.input).shape;
    const NodeShape& out = node.shape;
    shape_ = {tape.options().rows,
              tape.spec(index_).stride,
              in.channels,
              in.height,
              in.width,
              out.channels,
              out.height,
              out.width,
              tape.options().precision};
    const int x = tape.value(node.input), y = tape.define_value(index_);
    tape.append("pad_channels", bytes(tape), [*this, x, y, ops = tape.ops()](const DeviceRun& run) {
      ops->pad_channels(shape_, run.at(x), run.at(y));
    });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const int input = tape.node(index_).input;
    const int dy = tape.take_gradient(index_, 1)[0];
    if (tape.wants_gradient(input)) {
      const int dx = tape.new_gradient(input);
      tape.append("pad_channels_back", bytes(tape),
                  [*this, dy, dx, ops = tape.ops()](const DeviceRun& run) {
                    ops->pad_channels_backward(shape_, run.at(dy), run.at(dx));
                  });
    }
    tape.release(dy);
  }

 private:
  int64_t bytes(const DeviceTapeBuilder& tape) const {
    return tape.bytes(tape.node(index_).input) + tape.bytes(index_);
  }

  int index_;
  PadShape shape_;
};

}  // namespace

std::unique_ptr<DeviceTapeOp> make_device_activation(int index) {
  return std::make_unique<ActivationOp>(index);
}

std::unique_ptr<DeviceTapeOp> make_device_add(int index) { return std::make_unique<AddOp>(index); }

std::unique_ptr<DeviceTapeOp> make_device_pool(int index) {
  return std::make_unique<PoolOp>(index);
}

std::unique_ptr<DeviceTapeOp> make_device_pad(int index) { return std::make_unique<PadOp>(index); }

}  // namespace stoker
