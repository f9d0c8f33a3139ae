#include "train/collective/norm_exchange.h"
#include "train/cpu/batch_norm.h"
#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;
using onednn::Norm;

std::span<float> numbers(const memory& m) {
  return {floats(m), m.get_desc().get_size() / sizeof(float)};
}

// Writes the moments of this micro-batch for the running statistics, behind the gradients: the
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

Desc per_channel(const CpuPlanBuilder& builder, int index) {
  return Desc({builder.node(index).shape.channels}, memory::data_type::f32, memory::format_tag::x);
}

void append_moments(CpuPlanBuilder& builder, int index, int mean, int variance) {
  const int64_t channels = builder.node(index).shape.channels;
  const int64_t offset = builder.layout().statistics_of(builder.node(index).node);
  const Desc desc = per_channel(builder, index);
  builder.append("moments", 0,
                 [=, mean = builder.read_view(desc, mean),
                  variance = builder.read_view(desc, variance)](const MicroBatchRun& run) {
                   write_moments(channels, floats(mean), floats(variance), run.statistics + offset,
                                 run.rest + offset);
                 });
}

// By oneDNN, in blocks.
class BlockedNormSteps final : public CpuSteps {
 public:
  explicit BlockedNormSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const int64_t channels = node.shape.channels;
    const bool relu = node.activation == Activation::relu;
    per_channel_ = per_channel(builder, index_);
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
    if (training) append_moments(builder, index_, mean_, variance_);
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

  const int index_;
  Desc per_channel_;
  Norm flags_ = Norm::none;
  dnnl::batch_normalization_forward::primitive_desc forward_;
  int mean_ = -1, variance_ = -1, workspace_ = -1;  // buffers
};

// By batch_norm.h, in NHWC.
class PixelNormSteps final : public CpuSteps {
 public:
  explicit PixelNormSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    per_channel_ = per_channel(builder, index_);
    shape_ = {.pixels = int64_t{builder.options().rows} * node.shape.height * node.shape.width,
              .channels = node.shape.channels,
              .precision = builder.precision(index_),
              .eps = builder.spec(index_).eps,
              .relu = node.activation == Activation::relu};
    const bool training = builder.options().training;
    builder.note_implementation("norm of pixels");
    if (training) build_statistics(builder);
    if (syncs_norms(builder)) unite_over_replicas(builder);
    builder.append(
        shape_.relu ? "norm_relu" : "norm", 0,
        [shape = shape_, use = use(builder), input = builder.value_view(node.input),
         output = builder.new_value(index_),
         scratch = builder.view(scratch_desc(), new_scratch(builder))](const MicroBatchRun&) {
          norm_forward(shape, input.get_data_handle(), use.statistics(), use.parameters(),
                       output.get_data_handle(), floats(scratch));
        });
    if (training) append_moments(builder, index_, mean_, variance_);
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    const int scratch = new_scratch(builder);  // the last step reads what the first one leaves
    memory scale = builder.parameter_gradient(per_channel_, index_, ParameterKind::norm_weight);
    memory shift = builder.parameter_gradient(per_channel_, index_, ParameterKind::norm_bias);
    builder.append("norm_back_sums", 0,
                   [shape = shape_, use = use(builder), x = builder.value_view(input),
                    dy = builder.gradient_view(index_, builder.read(dy)), scale, shift,
                    scratch = builder.view(scratch_desc(), scratch)](const MicroBatchRun&) {
                     norm_parameter_gradients(shape, x.get_data_handle(), use.statistics(),
                                              use.parameters(), dy.get_data_handle(),
                                              {floats(scale), floats(shift)}, floats(scratch));
                   });
    int64_t pixels = shape_.pixels;
    if (syncs_norms(builder)) {
      pixels *= builder.options().norms->ranks();
      add_up_over_replicas(builder, scale, shift);
    }
    const int dx = builder.gradient_over(input, dy);
    builder.append("norm_back", 0,
                   [shape = shape_, pixels, x = builder.value_view(input),
                    dy = builder.gradient_view(index_, builder.read(dy)),
                    dx = builder.gradient_view(input, dx), scale, shift,
                    scratch = builder.read_view(scratch_desc(), scratch)](const MicroBatchRun&) {
                     norm_input_gradient(shape, x.get_data_handle(), dy.get_data_handle(),
                                         {floats(scale), floats(shift)}, pixels,
                                         dx.get_data_handle(), floats(scratch));
                   });
    builder.release(dy);
  }

 private:
  // Views of what all passes read.
  struct Use {
    memory mean, variance, scale, shift;

    NormStatistics statistics() const { return {floats(mean), floats(variance)}; }
    NormParameters parameters() const { return {floats(scale), floats(shift)}; }
  };

  Use use(CpuPlanBuilder& builder) const {
    const auto parameter = [&](ParameterKind kind) {
      return builder.parameter(per_channel_, index_, kind);
    };
    Use use;
    use.scale = parameter(ParameterKind::norm_weight);
    use.shift = parameter(ParameterKind::norm_bias);
    if (builder.options().training) {
      use.mean = builder.read_view(per_channel_, mean_);
      use.variance = builder.read_view(per_channel_, variance_);
    } else {
      const int64_t offset = builder.layout().statistics_of(builder.node(index_).node);
      use.mean = builder.statistics(per_channel_, offset);
      use.variance = builder.statistics(per_channel_, offset + shape_.channels);
    }
    return use;
  }

  Desc scratch_desc() const {
    return Desc({norm_scratch(shape_)}, memory::data_type::f32, memory::format_tag::x);
  }
  int new_scratch(CpuPlanBuilder& builder) const {
    return builder.new_buffer(static_cast<int64_t>(scratch_desc().get_size()));
  }
  int new_per_channel(CpuPlanBuilder& builder) const {
    return builder.new_buffer(static_cast<int64_t>(per_channel_.get_size()));
  }

  void build_statistics(CpuPlanBuilder& builder) {
    mean_ = new_per_channel(builder);
    variance_ = new_per_channel(builder);
    builder.append(
        "norm_statistics", 0,
        [shape = shape_, input = builder.value_view(builder.node(index_).input),
         mean = builder.view(per_channel_, mean_), variance = builder.view(per_channel_, variance_),
         scratch = builder.view(scratch_desc(), new_scratch(builder))](const MicroBatchRun&) {
          norm_statistics(shape, input.get_data_handle(), {floats(mean), floats(variance)},
                          floats(scratch));
        });
  }

  // Returns whether this norm is synchronised.
  static bool syncs_norms(const CpuPlanBuilder& builder) {
    return builder.options().training && builder.options().norms != nullptr;
  }

  // Replaces the statistics of this replica's rows by those of the rows of all replicas. The
  // moments of all replicas are then the same, and their average is that of the rows of all.
  void unite_over_replicas(CpuPlanBuilder& builder) {
    const memory mean = builder.read_view(per_channel_, mean_);
    const memory variance = builder.read_view(per_channel_, variance_);
    builder.write(mean_);
    builder.write(variance_);
    builder.append("norm_meeting", 0,
                   [norms = builder.options().norms, rank = builder.options().rank, step = index_,
                    mean, variance](const MicroBatchRun& run) {
                     const std::span<float> means = numbers(mean), variances = numbers(variance);
                     const std::span<const float> all =
                         norms->gather({rank, run.micro_batch, step}, {means, variances});
                     unite_statistics(all, norms->ranks(), means, variances);
                   });
  }

  // Makes `scale` and `shift` the sums over all replicas, in other memory: the gradients of the
  // parameters stay those of this replica's rows, because the collective adds them up.
  void add_up_over_replicas(CpuPlanBuilder& builder, memory& scale, memory& shift) {
    const int scales = new_per_channel(builder), shifts = new_per_channel(builder);
    builder.append("norm_back_meeting", 0,
                   [norms = builder.options().norms, rank = builder.options().rank, step = -index_,
                    scale, shift, scales = builder.view(per_channel_, scales),
                    shifts = builder.view(per_channel_, shifts)](const MicroBatchRun& run) {
                     const std::span<const float> all = norms->gather(
                         {rank, run.micro_batch, step}, {numbers(scale), numbers(shift)});
                     add_up(all, norms->ranks(), {numbers(scales), numbers(shifts)});
                   });
    scale = builder.read_view(per_channel_, scales);
    shift = builder.read_view(per_channel_, shifts);
  }

  const int index_;
  Desc per_channel_;
  PixelNormShape shape_;
  int mean_ = -1, variance_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_norm(const CpuPlanBuilder& builder, int index) {
  if (builder.in_blocks(index)) return std::make_unique<BlockedNormSteps>(index);
  return std::make_unique<PixelNormSteps>(index);
}

}  // namespace stoker
