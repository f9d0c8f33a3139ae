#include "train/device/tape_builder.h"

namespace stoker {
namespace {

class NormOp final : public DeviceTapeOp {
 public:
  explicit NormOp(int index) : index_(index) {}

  void build_forward(DeviceTapeBuilder& tape) override {
    describe(tape);
    const DeviceNode& node = tape.node(index_);
    const bool training = tape.options().training;
    const int x = tape.value(node.input);
    const int residual = node.input2 >= 0 ? tape.value(node.input2) : -1;
    int scratch = -1;
    if (training) {
      constexpr auto kPlanes = static_cast<int64_t>(NormPlane::count);
      planes_ = tape.new_buffer(kPlanes * shape_.channels * static_cast<int64_t>(sizeof(float)));
      scratch = tape.new_buffer(channel_scratch_bytes(shape_.channels));
    }
    const int y = tape.define_value(index_);
    if (training && residual >= 0 && shape_.activation == Activation::relu) {
      mask_ = tape.new_buffer(norm_mask_bytes(shape_));
    }
    const int sums = training ? tape.sums(node.input) : -1;
    // One pass sums, where nobody did so before, the other applies.
    const int64_t passes = (training && sums < 0 ? 3 : 2) + (residual >= 0 ? 1 : 0);
    tape.append("norm", passes * tape.bytes(index_) + mask_bytes(),
                [*this, training, x, residual, y, sums, scratch, ops = tape.ops(),
                 moments = tape.layout().moments()](const DeviceRun& run) {
                  NormForward a;
                  a.x = run.at(x);
                  a.residual = run.at(residual);
                  a.gamma = run.parameters + gamma_;
                  a.beta = run.parameters + beta_;
                  a.running_mean = run.statistics + statistics_;
                  a.running_variance = a.running_mean + shape_.channels;
                  a.y = run.at(y);
                  a.mask = run.at<uint8_t>(mask_);
                  if (!training) return ops->norm_inference(shape_, a);
                  a.planes = run.at<float>(planes_);
                  a.moments = run.part + moments + statistics_;
                  a.scratch = run.at(scratch);
                  a.sums = run.at<float>(sums);
                  ops->norm_training(shape_, a);
                });
  }

  void build_backward(DeviceTapeBuilder& tape) override {
    const DeviceNode& node = tape.node(index_);
    const bool residual = node.input2 >= 0;
    const bool cut = mask_ >= 0;
    std::vector<int> incoming = tape.take_gradient(index_, 2);
    if (!tape.owned(incoming.front())) std::swap(incoming.front(), incoming.back());
    const int dy = incoming[0], dy2 = incoming.size() > 1 ? incoming[1] : -1;
    const int x = tape.value(node.input);
    if (cut) tape.use(mask_);
    const int planes = tape.use(planes_);
    const int scratch = tape.new_buffer(channel_scratch_bytes(shape_.channels));
    const bool changes = cut || dy2 >= 0;  // what the residual gets is not dy itself
    int dresidual = -1;
    if (residual && tape.wants_gradient(node.input2)) {
      if (changes) {
        dresidual = tape.owned(dy) ? dy : tape.new_buffer(tape.bytes(index_));
      }
      tape.pass_gradient(node.input2, changes ? dresidual : dy);
    }
    int dx = -1;
    if (tape.wants_gradient(node.input)) {
      if (!residual && tape.owned(dy)) {
        tape.pass_gradient(node.input, dx = dy);
      } else {
        dx = tape.new_gradient(node.input);
      }
    }
    tape.append("norm_back", back_bytes(tape.bytes(index_), dy2 >= 0, dresidual >= 0, dx >= 0),
                [*this, x, dy, dy2, dx, dresidual, planes, scratch,
                 ops = tape.ops()](const DeviceRun& run) {
                  NormBackward a;
                  a.x = run.at(x);
                  a.mask = run.at<uint8_t>(mask_);
                  a.dy = run.at(dy);
                  a.dy2 = run.at(dy2);
                  a.gamma = run.parameters + gamma_;
                  a.planes = run.at<float>(planes);
                  a.dgamma = run.part + gamma_;
                  a.dbeta = run.part + beta_;
                  a.dx = run.at(dx);
                  a.dresidual = run.at(dresidual);
                  a.scratch = run.at(scratch);
                  ops->norm_backward(shape_, a);
                });
    for (const int buffer : incoming) tape.release(buffer);
  }

 private:
  int64_t mask_bytes() const { return mask_ < 0 ? 0 : norm_mask_bytes(shape_); }

  // Both passes read x and what arrives behind the activation: one pass sums that up and leaves it
  // for the residual, the other reads what was left, or all of it again, and writes dx.
  int64_t back_bytes(int64_t tensor, bool two, bool left, bool applies) const {
    const int64_t arriving = tensor * (two ? 2 : 1) + mask_bytes();
    const int64_t sums = tensor + arriving + (left ? tensor : 0);
    return sums + (applies ? 2 * tensor + (left ? tensor : arriving) : 0);
  }

  void describe(DeviceTapeBuilder& tape) {
    const DeviceNode& node = tape.node(index_);
    shape_ = {tape.pixels(index_), node.shape.channels, tape.options().precision,
              tape.spec(index_).eps, node.activation};
    const DeviceLayout& layout = tape.layout();
    const auto offset = [&](ParameterKind kind) {
      return layout.tensors()[layout.tensor_of(node.node, kind)].offset;
    };
    gamma_ = offset(ParameterKind::norm_weight);
    beta_ = offset(ParameterKind::norm_bias);
    statistics_ = layout.statistics_of(node.node);
  }

  int index_;
  NormShape shape_;
  int64_t gamma_ = 0, beta_ = 0, statistics_ = 0;  // offsets
  int planes_ = -1, mask_ = -1;                    // buffers
};

}  // namespace

std::unique_ptr<DeviceTapeOp> make_device_norm(int index) {
  return std::make_unique<NormOp>(index);
}

}  // namespace stoker
