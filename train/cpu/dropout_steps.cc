#include "train/cpu/activation_order.h"
#include "train/engine/dropout.h"

namespace stoker {
namespace {

struct DropoutArgs {
  ActivationOrder order;
  Precision precision;
  uint64_t key;
  float rate;
};

// Multiplies values, or their gradients, by the factors that their places draw.
template <typename Number>
void apply(const DropoutArgs& a, int64_t position, const Number* from, Number* to) {
  const ActivationOrder& o = a.order;
  for (int row = 0; row < o.rows; ++row) {
    const uint64_t key = dropout_row_key(a.key, position + row);
    for (int c = 0; c < o.stored_channels(); ++c) {
      for (int64_t pixel = 0; pixel < o.pixels(); ++pixel) {
        const int64_t at = o.at(row, c, 0, static_cast<int>(pixel));
        const float factor =
            c < o.channels ? dropout_factor(key, c * o.pixels() + pixel, a.rate) : 0.0f;
        set_number(to, at, factor == 0 ? 0.0f : factor * number_at(from, at));
      }
    }
  }
}

class CpuDropoutSteps final : public CpuSteps {
 public:
  explicit CpuDropoutSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    append(builder, "dropout", builder.value_view(builder.node(index_).input),
           builder.new_value(index_));
  }

  // Draws the factors again, which is cheaper than to keep them.
  void build_backward(CpuPlanBuilder& builder) override {
    const int input = builder.node(index_).input;
    const int dy = builder.take_gradient(index_, 1)[0];
    if (!builder.wants_gradient(input)) return builder.release(dy);
    const dnnl::memory from = builder.gradient_view(index_, builder.read(dy));
    const int dx = builder.gradient_over(input, dy);
    append(builder, "dropout_back", from, builder.gradient_view(input, dx));
    builder.release(dy);
  }

 private:
  void append(CpuPlanBuilder& builder, const char* name, const dnnl::memory& from,
              const dnnl::memory& to) const {
    const DropoutArgs args{ActivationOrder(builder, index_), builder.precision(index_),
                           dropout_key(builder.options().seed, builder.node(index_).node),
                           builder.spec(index_).rate};
    builder.append(name, 0, [args, from, to](const MicroBatchRun& run) {
      with_numbers(args.precision, from, to,
                   [&](const auto* in, auto* out) { apply(args, run.position, in, out); });
    });
  }

  const int index_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_dropout(int index) {
  return std::make_unique<CpuDropoutSteps>(index);
}

}  // namespace stoker
