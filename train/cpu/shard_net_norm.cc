#include "train/cpu/shard_net_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Norm;

float* floats(const memory& m) { return static_cast<float*>(m.get_data_handle()); }

// Leaves in the part what the running statistics need of this shard: the mean's distance d from the
// running mean (the same number in all replicas), and variance + d^2. Averages of both over any
// shards give the statistics of their union, without the cancellation of E[x^2] - E[x]^2.
void write_moments(int64_t channels, const float* mean, const float* variance,
                   const float* running_mean, float* moments) {
  for (int64_t c = 0; c < channels; ++c) {
    const float distance = mean[c] - running_mean[c];
    moments[c] = distance;
    moments[channels + c] = variance[c] + distance * distance;
  }
}

class NormOp : public TapeOp {
 public:
  explicit NormOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const int64_t channels = op.shape.channels;
    per_channel_ = Desc({channels}, memory::data_type::f32, memory::format_tag::x);
    const bool training = tape.options().training;
    flags_ = Norm::use_scale | Norm::use_shift;
    if (op.relu) flags_ = flags_ | Norm::fuse_norm_relu;
    if (!training) flags_ = flags_ | Norm::use_global_stats;
    forward_ = onednn::norm_forward(
        tape.engine(),
        training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
        tape.activation(index_), tape.node(index_).eps, flags_);
    onednn::Args args{{DNNL_ARG_SRC, tape.value(op.input)},
                      {DNNL_ARG_DST, tape.define_value(index_)},
                      {DNNL_ARG_SCALE, parameter(tape, ParameterKind::norm_weight)},
                      {DNNL_ARG_SHIFT, parameter(tape, ParameterKind::norm_bias)}};
    if (training) {
      add_training_outputs(tape, args);
    } else {
      const int64_t offset = tape.statistics_offset(op.node);
      args[DNNL_ARG_MEAN] = tape.statistics(per_channel_, offset);
      args[DNNL_ARG_VARIANCE] = tape.statistics(per_channel_, offset + channels);
    }
    tape.execute<dnnl::batch_normalization_forward>(op.relu ? "norm_relu" : "norm", forward_,
                                                    std::move(args));
    if (training) build_moments(tape);
  }

  void build_backward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const auto desc = onednn::norm_backward(tape.engine(), forward_, tape.activation(index_),
                                            tape.node(index_).eps, flags_);
    const TapeBuilder::Target target = tape.open_gradient(op.input, index_, true);
    onednn::Args args{{DNNL_ARG_SRC, tape.value(op.input)},
                      {DNNL_ARG_MEAN, tape.bind(per_channel_, mean_)},
                      {DNNL_ARG_VARIANCE, tape.bind(per_channel_, variance_)},
                      {DNNL_ARG_DIFF_DST, tape.gradient(index_)},
                      {DNNL_ARG_SCALE, parameter(tape, ParameterKind::norm_weight)},
                      {DNNL_ARG_DIFF_SRC, target.memory},
                      {DNNL_ARG_DIFF_SCALE, in_part(tape, ParameterKind::norm_weight)},
                      {DNNL_ARG_DIFF_SHIFT, in_part(tape, ParameterKind::norm_bias)}};
    if (onednn::kNormBackwardTakesShift) {
      args[DNNL_ARG_SHIFT] = parameter(tape, ParameterKind::norm_bias);
    }
    if (op.relu) args[DNNL_ARG_WORKSPACE] = tape.bind(forward_.workspace_desc(), workspace_);
    tape.execute<dnnl::batch_normalization_backward>("norm_back", desc, std::move(args));
    tape.close_gradient(op.input, target);
    tape.release_gradient(index_);
  }

 private:
  memory parameter(TapeBuilder& tape, ParameterKind kind) const {
    return tape.parameter(per_channel_, tape.parameter_offset(tape.op(index_).node, kind));
  }
  memory in_part(TapeBuilder& tape, ParameterKind kind) const {
    return tape.in_part(per_channel_, tape.parameter_offset(tape.op(index_).node, kind));
  }

  void add_training_outputs(TapeBuilder& tape, onednn::Args& args) {
    const auto bytes = static_cast<int64_t>(per_channel_.get_size());
    mean_ = tape.new_buffer(bytes);
    variance_ = tape.new_buffer(bytes);
    args[DNNL_ARG_MEAN] = tape.bind(per_channel_, mean_);
    args[DNNL_ARG_VARIANCE] = tape.bind(per_channel_, variance_);
    if (!tape.op(index_).relu) return;
    const Desc desc = forward_.workspace_desc();
    workspace_ = tape.new_buffer(static_cast<int64_t>(desc.get_size()));
    args[DNNL_ARG_WORKSPACE] = tape.bind(desc, workspace_);
  }

  void build_moments(TapeBuilder& tape) {
    const int64_t channels = tape.op(index_).shape.channels;
    const int64_t offset = tape.statistics_offset(tape.op(index_).node);
    const int64_t moments = tape.part().moments + offset;
    tape.append("moments", [=, mean = tape.bind(per_channel_, mean_),
                            variance = tape.bind(per_channel_, variance_)](const ShardRun& run) {
      write_moments(channels, floats(mean), floats(variance), run.statistics + offset,
                    run.part + moments);
    });
  }

  const int index_;
  Desc per_channel_;
  Norm flags_ = Norm::none;
  dnnl::batch_normalization_forward::primitive_desc forward_;
  int mean_ = -1, variance_ = -1, workspace_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<TapeOp> make_norm_op(int op_index) { return std::make_unique<NormOp>(op_index); }

}  // namespace stoker
