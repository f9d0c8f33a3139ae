#include "train/cpu/shard_net_builder.h"
#include "train/cpu/shard_net_loss.h"

namespace stoker {
namespace {

using dnnl::memory;
using onednn::Desc;

float* floats(const memory& m) { return static_cast<float*>(m.get_data_handle()); }

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
                     const float* logit_gradient, float* feature_gradient, float* part) {
  dnnl::sgemm('T', 'N', s.classes, s.features, s.rows, s.scale, logit_gradient, s.classes, features,
              s.features, 0.f, part + s.weight, s.features);
  dnnl::sgemm('N', 'N', s.rows, s.features, s.classes, s.scale, logit_gradient, s.classes,
              parameters + s.weight, s.features, 0.f, feature_gradient, s.features);
  if (s.bias < 0) return;
  for (int k = 0; k < s.classes; ++k) {
    float sum = 0;
    for (int row = 0; row < s.rows; ++row) {
      sum += logit_gradient[static_cast<int64_t>(row) * s.classes + k];
    }
    part[s.bias + k] = s.scale * sum;
  }
}

void write_totals(const StepTotals& totals, float* out) {
  const auto slot = [&](TotalSlot s) -> float& { return out[static_cast<int>(s)]; };
  slot(TotalSlot::loss) = static_cast<float>(totals.loss_sum);
  slot(TotalSlot::weight) = static_cast<float>(totals.weight_sum);
  slot(TotalSlot::top1) = static_cast<float>(totals.top1);
  slot(TotalSlot::top5) = static_cast<float>(totals.top5);
  slot(TotalSlot::finite) = totals.finite ? 1.0f : 0.0f;
  slot(TotalSlot::shards) = 1.0f;
}

// The linear layer and the loss, in fp32 whatever the activations are.
class HeadOp : public TapeOp {
 public:
  explicit HeadOp(int index) : index_(index) {}

  void build_forward(TapeBuilder& tape) override {
    const LoweredOp& op = tape.op(index_);
    const NetNode& node = tape.node(index_);
    const int features = tape.op(op.input).shape.channels;
    shape_ = {tape.options().rows,
              features,
              node.out_channels,
              node.scale,
              tape.parameter_offset(op.node, ParameterKind::linear_weight),
              node.bias ? tape.parameter_offset(op.node, ParameterKind::linear_bias) : -1};
    wide_ = Desc({shape_.rows, features, 1, 1}, memory::data_type::f32, memory::format_tag::nhwc);
    features_ = tape.new_buffer(static_cast<int64_t>(wide_.get_size()));
    tape.copy(tape.value(op.input), tape.bind(wide_, features_));
    if (!tape.options().training) {
      tape.append("linear", [shape = shape_, in = tape.bind(wide_, features_)](const ShardRun& r) {
        forward_linear(shape, r.parameters, floats(in), r.logits);
      });
      return;
    }
    build_loss(tape);
  }

  void build_backward(TapeBuilder& tape) override {
    const int input = tape.op(index_).input;
    const int buffer = tape.new_buffer(static_cast<int64_t>(wide_.get_size()));
    tape.append("linear_back", [shape = shape_, in = tape.bind(wide_, features_),
                                out = tape.bind(wide_, buffer),
                                logits = tape.bind(narrow_, logits_)](const ShardRun& r) {
      backward_linear(shape, r.parameters, floats(in), floats(logits), floats(out), r.part);
    });
    if (!tape.wants_gradient(input)) return;
    const TapeBuilder::Target target = tape.open_gradient(input, index_, false);
    tape.copy(tape.bind(wide_, buffer), target.memory);
    tape.close_gradient(input, target);
  }

 private:
  void build_loss(TapeBuilder& tape) {
    narrow_ = Desc({shape_.rows, shape_.classes}, memory::data_type::f32, memory::format_tag::ab);
    logits_ = tape.new_buffer(static_cast<int64_t>(narrow_.get_size()));
    LossArgs loss;
    loss.rows = shape_.rows;
    loss.classes = shape_.classes;
    loss.label_smoothing = tape.options().label_smoothing;
    loss.scale = tape.options().loss_scale;
    tape.append("loss", [shape = shape_, loss, totals = tape.part().totals,
                         in = tape.bind(wide_, features_),
                         out = tape.bind(narrow_, logits_)](const ShardRun& r) {
      forward_linear(shape, r.parameters, floats(in), floats(out));
      LossArgs args = loss;
      args.labels = r.labels;
      args.weights = r.weights;
      args.mix = r.mix;
      write_totals(softmax_loss(args, floats(out)), r.part + totals);
    });
  }

  const int index_;
  HeadShape shape_{};
  Desc wide_, narrow_;
  int features_ = -1, logits_ = -1;  // buffers
};

}  // namespace

std::unique_ptr<TapeOp> make_head_op(int op_index) { return std::make_unique<HeadOp>(op_index); }

}  // namespace stoker
