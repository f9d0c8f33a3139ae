#include "train/cpu/loss.h"
#include "train/cpu/plan_builder.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;

struct HeadShape {
  int rows, features, classes;
  float scale;
  int64_t weight, bias;  // offsets; bias -1: none
};

// logits = scale * (features * weight^T + bias)
void forward_linear(const HeadShape& s, const float* parameters, const float* features,
                    float* logits) {
  dnnl::sgemm('N', 'T', s.rows, s.classes, s.features, s.scale, features, s.features,
              parameters + s.weight, s.features, 0.f, logits, s.classes);
  if (s.bias < 0) return;
  for (int row = 0; row < s.rows; ++row) {
    for (int k = 0; k < s.classes; ++k) {
      logits[static_cast<int64_t>(row) * s.classes + k] += s.scale * parameters[s.bias + k];
    }
  }
}

void backward_linear(const HeadShape& s, const float* parameters, const float* features,
                     const float* logit_gradient, float* feature_gradient, float* gradients) {
  dnnl::sgemm('T', 'N', s.classes, s.features, s.rows, s.scale, logit_gradient, s.classes, features,
              s.features, 0.f, gradients + s.weight, s.features);
  dnnl::sgemm('N', 'N', s.rows, s.features, s.classes, s.scale, logit_gradient, s.classes,
              parameters + s.weight, s.features, 0.f, feature_gradient, s.features);
  if (s.bias < 0) return;
  for (int k = 0; k < s.classes; ++k) {
    float sum = 0;
    for (int row = 0; row < s.rows; ++row) {
      sum += logit_gradient[static_cast<int64_t>(row) * s.classes + k];
    }
    gradients[s.bias + k] = s.scale * sum;
  }
}

void write_metrics(const StepMetrics& metrics, float* out) {
  const auto slot = [&](StepMetric s) -> float& { return out[static_cast<int>(s)]; };
  slot(StepMetric::loss) = static_cast<float>(metrics.loss_sum);
  slot(StepMetric::weight) = static_cast<float>(metrics.weight_sum);
  slot(StepMetric::top1) = static_cast<float>(metrics.top1);
  slot(StepMetric::top5) = static_cast<float>(metrics.top5);
  slot(StepMetric::finite) = metrics.finite ? 1.0f : 0.0f;
  slot(StepMetric::micro_batches) = 1.0f;
}

// A linear layer and its loss. The input is cast to the head's precision.
static_assert(!kCpuPrecision.head_takes_bf16, "the loops below are fp32");
class CpuHeadSteps final : public CpuSteps {
 public:
  explicit CpuHeadSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    const FusedNode& node = builder.node(index_);
    const NetNode& spec = builder.spec(index_);
    const int features = builder.node(node.input).shape.channels;
    shape_ = {builder.options().rows,
              features,
              spec.out_channels,
              spec.scale,
              builder.layout().offset_of(node.node, ParameterKind::linear_weight),
              builder.layout().offset_of(node.node, ParameterKind::linear_bias)};
    features_desc_ = Desc({shape_.rows, features, 1, 1}, data_type(builder.held().head),
                          memory::format_tag::nhwc);
    features_ = builder.new_buffer(static_cast<int64_t>(features_desc_.get_size()));
    builder.copy(builder.value_view(node.input), builder.view(features_desc_, features_));
    if (!builder.options().training) {
      builder.append("linear", 0,
                     [shape = shape_,
                      in = builder.read_view(features_desc_, features_)](const MicroBatchRun& r) {
                       forward_linear(shape, r.parameters, floats(in), r.logits);
                     });
      return;
    }
    build_loss(builder);
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int buffer = builder.new_buffer(static_cast<int64_t>(features_desc_.get_size()));
    builder.append("linear_back", 0,
                   [shape = shape_, in = builder.read_view(features_desc_, features_),
                    out = builder.view(features_desc_, buffer),
                    logits = builder.read_view(logits_desc_, logits_)](const MicroBatchRun& r) {
                     backward_linear(shape, r.parameters, floats(in), floats(logits), floats(out),
                                     r.gradients);
                   });
    if (!builder.wants_gradient(input)) return;
    const int dx = builder.new_gradient(input);
    builder.copy(builder.read_view(features_desc_, buffer), builder.gradient_view(input, dx));
  }

 private:
  void build_loss(CpuPlanBuilder& builder) {
    logits_desc_ =
        Desc({shape_.rows, shape_.classes}, memory::data_type::f32, memory::format_tag::ab);
    logits_ = builder.new_buffer(static_cast<int64_t>(logits_desc_.get_size()));
    LossArgs loss;
    loss.rows = shape_.rows;
    loss.classes = shape_.classes;
    loss.label_smoothing = builder.options().label_smoothing;
    loss.scale = builder.options().loss_scale * builder.spec(index_).loss_weight;
    // The metrics are those of the last head. What is not finite in another one shows in its
    // gradients.
    const bool last = index_ + 1 == static_cast<int>(builder.nodes().size());
    builder.append(
        "loss", 0,
        [shape = shape_, loss, last, kind = builder.net().loss,
         metrics = builder.layout().metrics(), in = builder.read_view(features_desc_, features_),
         out = builder.view(logits_desc_, logits_)](const MicroBatchRun& r) {
          forward_linear(shape, r.parameters, floats(in), floats(out));
          LossArgs args = loss;
          args.labels = r.labels;
          args.weights = r.weights;
          args.targets = r.targets;
          args.mix_labels = r.mix_labels;
          args.mix_weights = r.mix_weights;
          const StepMetrics made = compute_loss(kind, args, floats(out));
          if (last) write_metrics(made, r.gradients + metrics);
        });
  }

  const int index_;
  HeadShape shape_{};
  Desc features_desc_, logits_desc_;
  int features_ = -1, logits_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_head(int index) { return std::make_unique<CpuHeadSteps>(index); }

}  // namespace stoker
