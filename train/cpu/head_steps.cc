#include <algorithm>
#include <cmath>

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

struct HeadGradients {
  float *weight, *bias;  // bias null: none
};

void backward_linear(const HeadShape& s, const float* parameters, const float* features,
                     const float* logit_gradient, float* feature_gradient,
                     const HeadGradients& to) {
  dnnl::sgemm('T', 'N', s.classes, s.features, s.rows, s.scale, logit_gradient, s.classes, features,
              s.features, 0.f, to.weight, s.features);
  dnnl::sgemm('N', 'N', s.rows, s.features, s.classes, s.scale, logit_gradient, s.classes,
              parameters + s.weight, s.features, 0.f, feature_gradient, s.features);
  if (to.bias == nullptr) return;
  for (int k = 0; k < s.classes; ++k) {
    float sum = 0;
    for (int row = 0; row < s.rows; ++row) {
      sum += logit_gradient[static_cast<int64_t>(row) * s.classes + k];
    }
    to.bias[k] = s.scale * sum;
  }
}

struct LossArgs {
  int rows = 0;
  int classes = 0;
  float label_smoothing = 0;
  float scale = 1;  // of the gradients
};

struct CpuRowTarget {
  int own = 0, partner = 0;
  float own_share = 1;                // of the weight that label smoothing does not use
  const float* of_outputs = nullptr;  // instead: one for each output
};

CpuRowTarget target_of(const BatchRows& batch, int classes, int row) {
  CpuRowTarget target;
  target.own = batch.labels[row];
  target.partner = target.own;
  if (batch.mix_labels != nullptr) {
    target.partner = batch.mix_labels[row];
    target.own_share = batch.mix_weights[row];
  }
  if (batch.targets != nullptr) {
    target.of_outputs = batch.targets + static_cast<int64_t>(row) * classes;
  }
  return target;
}

// Returns how many classes come before `label`; among equal logits the lower index is first.
int rank_of(const float* logits, int classes, int label) {
  int before = 0;
  for (int k = 0; k < classes; ++k) {
    before += logits[k] > logits[label] || (logits[k] == logits[label] && k < label);
  }
  return before;
}

struct CpuRowResult {
  double loss = 0;
  double top1 = 0, top5 = 0;  // of a weight of 1
};

// Replaces the logits by their gradient, which is multiplied by `factor`.
CpuRowResult softmax_row(const LossArgs& args, const CpuRowTarget& target, float factor,
                         float* logits) {
  const int rank = rank_of(logits, args.classes, target.own);
  const float highest = *std::max_element(logits, logits + args.classes);
  double sum = 0;
  for (int k = 0; k < args.classes; ++k) sum += std::exp(logits[k] - highest);
  const auto log_sum = static_cast<float>(highest + std::log(sum));
  const float smooth = args.label_smoothing / static_cast<float>(args.classes);
  const float hard = 1.0f - args.label_smoothing;
  double loss = 0;
  for (int k = 0; k < args.classes; ++k) {
    float wanted = smooth;
    if (k == target.own) wanted += hard * target.own_share;
    if (k == target.partner) wanted += hard * (1.0f - target.own_share);
    const float log_probability = logits[k] - log_sum;
    loss -= static_cast<double>(wanted) * log_probability;
    logits[k] = factor * (std::exp(log_probability) - wanted);
  }
  return {loss, rank < 1 ? 1.0 : 0.0, rank < 5 ? 1.0 : 0.0};
}

CpuRowResult binary_row(const LossArgs& args, const CpuRowTarget& target, float factor,
                        float* logits) {
  const float outputs = static_cast<float>(args.classes);
  const auto is_label = [&](int label, int k) {
    return args.classes == 1 ? label == 1 : label == k;
  };
  const auto is_on = [&](int k) {
    return target.of_outputs != nullptr ? target.of_outputs[k] >= 0.5f : is_label(target.own, k);
  };
  double loss = 0;
  int right = 0;
  for (int k = 0; k < args.classes; ++k) {
    const float hard = target.of_outputs != nullptr
                           ? target.of_outputs[k]
                           : (is_label(target.own, k) ? target.own_share : 0.0f) +
                                 (is_label(target.partner, k) ? 1.0f - target.own_share : 0.0f);
    const float wanted = (1.0f - args.label_smoothing) * hard + args.label_smoothing / 2;
    const float z = logits[k];
    // log(1 + e^z) - wanted * z, without overflow
    loss +=
        std::max(z, 0.0f) - static_cast<double>(wanted) * z + std::log1p(std::exp(-std::abs(z)));
    right += (z > 0) == is_on(k);
    logits[k] = factor / outputs * (1.0f / (1.0f + std::exp(-z)) - wanted);
  }
  return {loss / outputs, right / static_cast<double>(outputs), right == args.classes ? 1.0 : 0.0};
}

// Replaces logits (rows, classes) by d(scale * sum_i weight_i * loss_i) / d(logits). A row's target
// is its label and, with mix_labels, its second one; top1 and top5 use the first.
// softmax: smoothing gives the share s to all classes, s / classes each.
// binary: target 1 for the label's output, or label 1 of a single output, or the row's targets;
// smoothing moves targets to (1 - s) * t + s / 2, as in Keras. top1 is the share of outputs on the
// right side of 0 (above it for targets from 0.5 up); top5 counts the rows whose outputs are all
// right.
StepMetrics compute_loss(LossKind kind, const LossArgs& args, const BatchRows& batch,
                         float* logits) {
  const auto row_of = kind == LossKind::binary ? binary_row : softmax_row;
  StepMetrics metrics;
  for (int row = 0; row < args.rows; ++row) {
    float* row_logits = logits + static_cast<int64_t>(row) * args.classes;
    const float weight = batch.weights[row];
    if (batch.results != nullptr) batch.results[row] = {};
    if (weight == 0) {  // ignores the row, even if it has a NaN
      std::fill_n(row_logits, args.classes, 0.0f);
      continue;
    }
    const CpuRowResult result =
        row_of(args, target_of(batch, args.classes, row), weight * args.scale, row_logits);
    if (batch.results != nullptr) {
      batch.results[row] = {static_cast<float>(result.loss), static_cast<float>(result.top1)};
    }
    metrics.finite = metrics.finite && std::isfinite(result.loss);
    metrics.loss_sum += weight * result.loss;
    metrics.weight_sum += weight;
    metrics.top1 += weight * result.top1;
    metrics.top5 += weight * result.top5;
  }
  return metrics;
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
    const auto gradient = [&](int64_t count, ParameterKind kind) {
      const Desc desc({count}, memory::data_type::f32, memory::format_tag::x);
      return builder.parameter_gradient(desc, index_, kind);
    };
    const memory weight =
        gradient(int64_t{shape_.classes} * shape_.features, ParameterKind::linear_weight);
    memory bias;
    if (shape_.bias >= 0) bias = gradient(shape_.classes, ParameterKind::linear_bias);
    builder.append(
        "linear_back", 0,
        [shape = shape_, in = builder.read_view(features_desc_, features_),
         out = builder.view(features_desc_, buffer),
         logits = builder.read_view(logits_desc_, logits_), weight, bias](const MicroBatchRun& r) {
          backward_linear(shape, r.parameters, floats(in), floats(logits), floats(out),
                          {floats(weight), floats_or_null(bias)});
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
    // The metrics and the rows' results are those of the last head. What is not finite in another
    // one shows in its gradients.
    const bool last = index_ + 1 == static_cast<int>(builder.nodes().size());
    builder.append("loss", 0,
                   [shape = shape_, loss, last, kind = builder.net().loss,
                    metrics = builder.layout().metrics() - builder.layout().moments(),
                    in = builder.read_view(features_desc_, features_),
                    out = builder.view(logits_desc_, logits_)](const MicroBatchRun& r) {
                     forward_linear(shape, r.parameters, floats(in), floats(out));
                     BatchRows rows = r.rows;
                     if (!last) rows.results = nullptr;
                     const StepMetrics made = compute_loss(kind, loss, rows, floats(out));
                     if (last) write_metrics(made, r.rest + metrics);
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
