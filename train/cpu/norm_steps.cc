#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Norm;

float* floats(const memory& m) { return static_cast<float*>(m.get_data_handle()); }

// Writes the moments of this micro-batch for the running statistics into the gradient buffer: the
// mean's distance d from the running mean (which is the same in all replicas), and variance + d^2.
// Averages of both over any micro-batches give the statistics of their union, without the
// cancellation of E[x^2] - E[x]^2.
void write_moments(int64_t channels, const float* mean, const float* variance,
                   const float* running_mean, float* moments) {
  for (int64_t c = 0; c < channels; ++c) {
    const float distance = mean[c] - running_mean[c];
    moments[c] = distance;
    moments[channels + c] = variance[c] + distance * distance;
  }
}

class NormSteps final : public CpuSteps {
 public:
  explicit NormSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int64_t channels = node.shape.channels;
    const bool relu = node.activation == Activation::relu;
    per_channel_ = Desc({channels}, memory::data_type::f32, memory::format_tag::x);
    const bool training = builder.options().training;
    flags_ = Norm::use_scale | Norm::use_shift;
    if (relu) flags_ = flags_ | Norm::fuse_norm_relu;
    if (!training) flags_ = flags_ | Norm::use_global_stats;
    forward_ = onednn::norm_forward(
        builder.engine(),
        training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
        builder.activation(index_), builder.spec(index_).eps, flags_);
    onednn::Args args{
        {DNNL_ARG_SRC, builder.value_view(node.input)},
        {DNNL_ARG_DST, builder.new_value(index_)},
        {DNNL_ARG_SCALE, builder.parameter(per_channel_, index_, ParameterKind::norm_weight)},
        {DNNL_ARG_SHIFT, builder.parameter(per_channel_, index_, ParameterKind::norm_bias)}};
    if (training) {
      add_training_outputs(builder, args);
    } else {
      const int64_t offset = builder.layout().statistics_of(node.node);
      args[DNNL_ARG_MEAN] = builder.statistics(per_channel_, offset);
      args[DNNL_ARG_VARIANCE] = builder.statistics(per_channel_, offset + channels);
    }
    builder.execute<dnnl::batch_normalization_forward>(relu ? "norm_relu" : "norm", forward_,
                                                       std::move(args));
    if (training) build_moments(builder);
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const auto desc = onednn::norm_backward(builder.engine(), forward_, builder.activation(index_),
                                            builder.spec(index_).eps, flags_);
    const int dy = builder.take_gradient(index_, 1)[0];
    const int dx = builder.gradient_over(node.input, dy);
    onednn::Args args{
        {DNNL_ARG_SRC, builder.value_view(node.input)},
        {DNNL_ARG_MEAN, builder.read_view(per_channel_, mean_)},
        {DNNL_ARG_VARIANCE, builder.read_view(per_channel_, variance_)},
        {DNNL_ARG_DIFF_DST, builder.gradient_view(index_, builder.read(dy))},
        {DNNL_ARG_SCALE, builder.parameter(per_channel_, index_, ParameterKind::norm_weight)},
        {DNNL_ARG_DIFF_SRC, builder.gradient_view(node.input, dx)},
        {DNNL_ARG_DIFF_SCALE,
         builder.parameter_gradient(per_channel_, index_, ParameterKind::norm_weight)},
        {DNNL_ARG_DIFF_SHIFT,
         builder.parameter_gradient(per_channel_, index_, ParameterKind::norm_bias)}};
    if (onednn::kNormBackwardTakesShift) {
      args[DNNL_ARG_SHIFT] = builder.parameter(per_channel_, index_, ParameterKind::norm_bias);
    }
    if (workspace_ >= 0) {
      args[DNNL_ARG_WORKSPACE] = builder.read_view(forward_.workspace_desc(), workspace_);
    }
    builder.execute<dnnl::batch_normalization_backward>("norm_back", desc, std::move(args));
    builder.release(dy);
  }

 private:
  void add_training_outputs(CpuPlanBuilder& builder, onednn::Args& args) {
    const auto bytes = static_cast<int64_t>(per_channel_.get_size());
    mean_ = builder.new_buffer(bytes);
    variance_ = builder.new_buffer(bytes);
    args[DNNL_ARG_MEAN] = builder.view(per_channel_, mean_);
    args[DNNL_ARG_VARIANCE] = builder.view(per_channel_, variance_);
    if (builder.node(index_).activation != Activation::relu) return;
    const Desc desc = forward_.workspace_desc();
    workspace_ = builder.new_buffer(static_cast<int64_t>(desc.get_size()));
    args[DNNL_ARG_WORKSPACE] = builder.view(desc, workspace_);
  }

  void build_moments(CpuPlanBuilder& builder) {
    const int64_t channels = builder.node(index_).shape.channels;
    const int64_t offset = builder.layout().statistics_of(builder.node(index_).node);
    const int64_t moments = builder.layout().moments() + offset;
    builder.append(
        "moments", 0,
        [=, mean = builder.read_view(per_channel_, mean_),
         variance = builder.read_view(per_channel_, variance_)](const MicroBatchRun& run) {
          write_moments(channels, floats(mean), floats(variance), run.statistics + offset,
                        run.gradients + moments);
        });
  }

  const int index_;
  Desc per_channel_;
  Norm flags_ = Norm::none;
  dnnl::batch_normalization_forward::primitive_desc forward_;
  int mean_ = -1, variance_ = -1, workspace_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_norm(int index) { return std::make_unique<NormSteps>(index); }

}  // namespace stoker
