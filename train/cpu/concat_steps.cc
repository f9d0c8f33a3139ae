#include <cstring>

#include "train/cpu/activation_order.h"

namespace stoker {
namespace {

// Copies the channels of one part, which begin at `first` in the whole. Both have the same pixels.
// In blocks, `first` is a multiple of a block: activation_layout() sees to that.
struct PartCopy {
  ActivationOrder part, whole;
  int first;
  size_t number;  // bytes per value

  // Calls visit(offset in the part, offset in the whole, bytes).
  template <typename Visit>
  void for_each_run(const Visit& visit) const {
    const size_t run = part.blocked ? part.row_values() : part.channels;
    const int64_t runs = part.blocked ? 1 : part.pixels();
    for (int row = 0; row < part.rows; ++row) {
      for (int64_t i = 0; i < runs; ++i) {
        const int64_t to = part.blocked ? row * whole.row_values() + first * whole.pixels()
                                        : row * whole.row_values() + i * whole.channels + first;
        visit((row * part.row_values() + i * part.channels) * number, to * number, run * number);
      }
    }
  }
};

class CpuConcatSteps final : public CpuSteps {
 public:
  explicit CpuConcatSteps(int index) : index_(index) {}

  void build_forward(CpuPlanBuilder& builder) override {
    std::vector<std::pair<PartCopy, dnnl::memory>> parts;
    int first = 0;
    for (const int input : inputs_of(builder.node(index_))) {
      parts.emplace_back(copy_of(builder, input, first), builder.value_view(input));
      first += builder.node(input).shape.channels;
    }
    builder.append(
        "concat", 0,
        [parts = std::move(parts), whole = builder.new_value(index_)](const MicroBatchRun&) {
          for (const auto& [copy, part] : parts) {
            const auto* from = static_cast<const std::byte*>(part.get_data_handle());
            auto* to = static_cast<std::byte*>(whole.get_data_handle());
            copy.for_each_run([&](size_t in_part, size_t in_whole, size_t bytes) {
              std::memcpy(to + in_whole, from + in_part, bytes);
            });
          }
        });
  }

  void build_backward(CpuPlanBuilder& builder) override {
    const int dy = builder.take_gradient(index_, 1)[0];
    int first = 0;
    for (const int input : inputs_of(builder.node(index_))) {
      if (builder.wants_gradient(input)) build_part(builder, dy, input, first);
      first += builder.node(input).shape.channels;
    }
    builder.release(dy);
  }

 private:
  PartCopy copy_of(const CpuPlanBuilder& builder, int input, int first) const {
    return {ActivationOrder(builder, input), ActivationOrder(builder, index_), first,
            static_cast<size_t>(bytes_of(builder.precision(index_)))};
  }

  void build_part(CpuPlanBuilder& builder, int dy, int input, int first) {
    const dnnl::memory whole = builder.gradient_view(index_, builder.read(dy));
    const dnnl::memory part = builder.gradient_view(input, builder.new_gradient(input));
    builder.append("concat_back", 0,
                   [copy = copy_of(builder, input, first), whole, part](const MicroBatchRun&) {
                     const auto* from = static_cast<const std::byte*>(whole.get_data_handle());
                     auto* to = static_cast<std::byte*>(part.get_data_handle());
                     copy.for_each_run([&](size_t in_part, size_t in_whole, size_t bytes) {
                       std::memcpy(to + in_part, from + in_whole, bytes);
                     });
                   });
  }

  const int index_;
};

}  // namespace

std::unique_ptr<CpuSteps> make_cpu_concat(int index) {
  return std::make_unique<CpuConcatSteps>(index);
}

}  // namespace stoker
