#include "train/collective/device_norm_exchange.h"
#include "train/device/plan_builder.h"

namespace stoker {
namespace {

NormReplicas meet_replicas(DeviceNormExchange& norms, int rank, int step) {
  const DeviceNormExchange::Numbers all = norms.meet(rank, step);
  return {all.floats, all.stride, norms.ranks()};
}

// A norm whose replicas are synchronised has two steps in place of one in each direction, between
// which it meets the others.
class NormSteps final : public DeviceSteps {
 public:
  explicit NormSteps(int index) : index_(index) {}

  void build_forward(DevicePlanBuilder& builder) override {
    describe(builder);
    const bool synced = builder.norms() != nullptr;
    if (synced) append_statistics(builder);
    const FusedNode& node = builder.node(index_);
    const bool training = builder.options().training;
    Forward use;
    use.x = builder.value(node.input);
    use.residual = node.more_inputs.empty() ? -1 : builder.value(node.more_inputs[0]);
    if (training) {
      constexpr auto kPlanes = static_cast<int64_t>(NormPlane::count);
      planes_ = builder.new_buffer(kPlanes * shape_.channels * static_cast<int64_t>(sizeof(float)));
      if (!synced) use.scratch = new_scratch(builder);
    }
    use.y = builder.define_value(index_);
    if (training && use.residual >= 0 && shape_.activation == Activation::relu) {
      mask_ = builder.new_buffer(norm_mask_bytes(shape_));
    }
    if (training && !synced) use.sums = builder.sums(node.input);
    // One pass sums x, unless the convolution did or the step before, and one applies the result.
    const int64_t passes =
        (training && !synced && use.sums < 0 ? 3 : 2) + (use.residual >= 0 ? 1 : 0);
    use.moments = builder.layout().moments() + statistics_;
    builder.append("norm", passes * builder.value_bytes(index_) + mask_bytes(),
                   [*this, use, training, norms = builder.norms(), rank = builder.options().rank,
                    ops = builder.ops()](const DeviceRun& run) {
                     const NormForward a = forward_of(run, use);
                     if (!training) return ops->norm_inference(shape_, a);
                     if (norms == nullptr) return ops->norm_training(shape_, a);
                     ops->norm_united(shape_, a, meet_replicas(*norms, rank, index_));
                   });
  }

  void build_backward(DevicePlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const bool residual = !node.more_inputs.empty();
    const bool applies = builder.wants_gradient(node.input);
    const bool synced = applies && builder.norms() != nullptr;
    std::vector<int> incoming = builder.take_gradient(index_, 2);
    if (!builder.owned(incoming.front())) std::swap(incoming.front(), incoming.back());
    Backward use;
    use.dy = incoming[0];
    use.dy2 = incoming.size() > 1 ? incoming[1] : -1;
    use.x = builder.value_buffer(node.input);
    read(builder, use);
    use.scratch = new_scratch(builder);
    const bool changes = mask_ >= 0 || use.dy2 >= 0;  // the residual's gradient differs from dy
    if (residual && builder.wants_gradient(node.more_inputs[0])) {
      if (changes) {
        use.dresidual = builder.owned(use.dy) ? builder.write(use.dy)
                                              : builder.new_buffer(builder.value_bytes(index_));
      }
      builder.pass_gradient(node.more_inputs[0], changes ? use.dresidual : use.dy);
    }
    if (synced) {
      append_own_sums(builder, use);
      // The rest is of no use to the parameters.
      builder.begin(index_, StepUse::inputs);
      read(builder, use);
      builder.write(use.scratch);
    }
    if (applies) {
      use.dx =
          residual ? builder.new_gradient(node.input) : builder.gradient_over(node.input, use.dy);
    }
    const int64_t tensor = builder.value_bytes(index_);
    builder.append("norm_back",
                   (synced ? 0 : sum_bytes(tensor, use)) + (applies ? apply_bytes(tensor, use) : 0),
                   [*this, use, norms = synced ? builder.norms() : nullptr,
                    rank = builder.options().rank, ops = builder.ops()](const DeviceRun& run) {
                     const NormBackward a = backward_of(run, use);
                     if (norms == nullptr) return ops->norm_backward(shape_, a);
                     ops->norm_backward_united(shape_, a, meet_replicas(*norms, rank, -index_));
                   });
    for (const int buffer : incoming) builder.release(buffer);
  }

 private:
  // Buffers of a pass; -1: none.
  struct Forward {
    int x = -1, residual = -1, y = -1, sums = -1, scratch = -1;
    int64_t moments = 0;  // an offset
  };
  struct Backward {
    int x = -1, dy = -1, dy2 = -1, dx = -1, dresidual = -1, scratch = -1;
  };

  NormForward forward_of(const DeviceRun& run, const Forward& use) const {
    NormForward a;
    a.x = run.at(use.x);
    a.residual = run.at(use.residual);
    a.gamma = run.parameters + gamma_;
    a.beta = run.parameters + beta_;
    a.running_mean = run.statistics + statistics_;
    a.running_variance = a.running_mean + shape_.channels;
    a.y = run.at(use.y);
    a.mask = run.at<uint8_t>(mask_);
    a.planes = run.at<float>(planes_);
    if (run.gradients != nullptr) a.moments = run.gradients + use.moments;
    a.scratch = run.at(use.scratch);
    a.sums = run.at<float>(use.sums);
    return a;
  }

  NormBackward backward_of(const DeviceRun& run, const Backward& use) const {
    NormBackward a;
    a.x = run.at(use.x);
    a.mask = run.at<uint8_t>(mask_);
    a.dy = run.at(use.dy);
    a.dy2 = run.at(use.dy2);
    a.gamma = run.parameters + gamma_;
    a.planes = run.at<float>(planes_);
    a.dgamma = run.gradients + gamma_;
    a.dbeta = run.gradients + beta_;
    a.dx = run.at(use.dx);
    a.dresidual = run.at(use.dresidual);
    a.scratch = run.at(use.scratch);
    return a;
  }

  // Marks what the next step of the backward pass reads.
  void read(DevicePlanBuilder& builder, const Backward& use) const {
    builder.read(use.x);
    builder.read(planes_);
    if (use.dresidual >= 0) {
      builder.read(use.dresidual);  // includes what has arrived
      return;
    }
    for (const int buffer : {use.dy, use.dy2, mask_}) {
      if (buffer >= 0) builder.read(buffer);
    }
  }

  // Computes the statistics of this replica's rows, for the others.
  void append_statistics(DevicePlanBuilder& builder) const {
    const int input = builder.node(index_).input;
    Forward use;
    use.x = builder.value(input);
    use.scratch = new_scratch(builder);
    use.sums = builder.sums(input);
    builder.append("norm_statistics", use.sums < 0 ? builder.value_bytes(index_) : 0,
                   [*this, use, norms = builder.norms(), rank = builder.options().rank,
                    ops = builder.ops()](const DeviceRun& run) {
                     ops->norm_statistics(shape_, forward_of(run, use),
                                          norms->place(rank, int64_t{2} * shape_.channels));
                   });
  }

  // Computes the sums of this replica's rows, for the others. The gradients of the parameters stay
  // those of its own rows, because the collective adds them up.
  void append_own_sums(DevicePlanBuilder& builder, const Backward& use) const {
    builder.append("norm_back_sums", sum_bytes(builder.value_bytes(index_), use),
                   [*this, use, norms = builder.norms(), rank = builder.options().rank,
                    ops = builder.ops()](const DeviceRun& run) {
                     ops->norm_backward_sums(shape_, backward_of(run, use),
                                             norms->place(rank, int64_t{2} * shape_.channels));
                   });
  }

  int new_scratch(DevicePlanBuilder& builder) const {
    return builder.new_buffer(channel_scratch_bytes(shape_.channels));
  }

  int64_t mask_bytes() const { return mask_ < 0 ? 0 : norm_mask_bytes(shape_); }

  // Both passes read x and the incoming gradient. The first pass sums, and writes the residual's
  // gradient if there is one. The second pass reads that, or else the incoming gradient again, and
  // writes dx.
  int64_t arriving_bytes(int64_t tensor, const Backward& use) const {
    return tensor * (use.dy2 >= 0 ? 2 : 1) + mask_bytes();
  }
  int64_t sum_bytes(int64_t tensor, const Backward& use) const {
    return tensor + arriving_bytes(tensor, use) + (use.dresidual >= 0 ? tensor : 0);
  }
  int64_t apply_bytes(int64_t tensor, const Backward& use) const {
    return 2 * tensor + (use.dresidual >= 0 ? tensor : arriving_bytes(tensor, use));
  }

  void describe(DevicePlanBuilder& builder) {
    const FusedNode& node = builder.node(index_);
    shape_ = {builder.pixels(index_), node.shape.channels, builder.held().activations,
              builder.spec(index_).eps, node.activation};
    const GradientLayout& layout = builder.layout();
    const auto offset = [&](ParameterKind kind) { return layout.offset_of(node.node, kind); };
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

std::unique_ptr<DeviceSteps> make_device_norm(int index) {
  return std::make_unique<NormSteps>(index);
}

}  // namespace stoker
