#include "train/cpu/shard_net.h"

#include "train/cpu/shard_net_builder.h"

namespace stoker {
namespace {

std::unique_ptr<TapeOp> make_op(OpKind kind, int index) {
  switch (kind) {
    case OpKind::conv:
      return make_conv_op(index);
    case OpKind::batch_norm:
      return make_norm_op(index);
    case OpKind::relu:
    case OpKind::gelu:
      return make_activation_op(index);
    case OpKind::max_pool:
    case OpKind::global_avg_pool:
      return make_pool_op(index);
    case OpKind::add:
      return make_add_op(index);
    case OpKind::pad_channels:
      return make_pad_channels_op(index);
    case OpKind::linear:
      return make_head_op(index);
    case OpKind::input:
      break;
  }
  return nullptr;
}

// Setting a handle has a cost (and, in version 2, writes a padded layout's padding): only changes.
void point(const dnnl::memory& memory, const void* to) {
  if (memory.get_data_handle() != to) memory.set_data_handle(const_cast<void*>(to));
}

void point_all(const std::vector<TapeBinding>& bindings, const float* base) {
  for (const TapeBinding& binding : bindings) point(binding.memory, base + binding.where);
}

void point_all(const std::vector<TapeBinding>& bindings, const std::vector<dnnl::memory>& weights) {
  for (const TapeBinding& binding : bindings) {
    point(binding.memory, weights[binding.where].get_data_handle());
  }
}

}  // namespace

ActivationLayout activation_layout(Precision precision) {
  const bool blocked = precision == Precision::fp32 && onednn::cpu_has(dnnl::cpu_isa::avx512_core);
  return blocked ? ActivationLayout::blocked : ActivationLayout::nhwc;
}

PartLayout part_layout(const NetSpec& net) {
  PartLayout layout;
  layout.moments = total_count(parameter_table(net));
  layout.totals = layout.moments + total_count(statistics_table(net));
  layout.floats = layout.totals + static_cast<int>(TotalSlot::count);
  return layout;
}

ShardNet::ShardNet(const NetSpec& net, const ShardNetOptions& options, const dnnl::engine& engine)
    : tape_(std::make_unique<ShardTape>()) {
  TapeBuilder builder(net, options, engine, *tape_);
  std::vector<std::unique_ptr<TapeOp>> ops(builder.ops().size());
  tape_->input = builder.define_value(0);
  for (size_t i = 1; i < ops.size(); ++i) {
    ops[i] = make_op(builder.op(static_cast<int>(i)).kind, static_cast<int>(i));
    ops[i]->build_forward(builder);
  }
  if (options.training) {
    for (int i = static_cast<int>(ops.size()) - 1; i > 0; --i) {
      builder.begin(i, StepUse::both);
      ops[i]->build_backward(builder);
    }
  }
  tape_->plan = plan_memory(tape_->buffers);
  tape_->ops = builder.ops();
  tape_->parameter_ops = builder.parameter_ops();
}

ShardNet::~ShardNet() = default;

int64_t ShardNet::arena_bytes() const { return tape_->plan.bytes; }

void ShardNet::place(std::byte* arena) {
  for (const TapeBinding& binding : tape_->arena) {
    point(binding.memory, arena + tape_->plan.offsets[binding.where]);
  }
}

void* ShardNet::input() const { return tape_->input.get_data_handle(); }

void ShardNet::run(const ShardRun& run) {
  point_all(tape_->parameters, run.parameters);
  point_all(tape_->statistics, run.statistics);
  point_all(tape_->forward_weights, *run.forward_weights);
  if (run.part != nullptr) {
    point_all(tape_->backward_weights, *run.backward_weights);
    point_all(tape_->part, run.part);
  }
  for (const TapeStep& step : tape_->steps) {
    if (!step.left_out) step.run(run);
  }
}

void ShardNet::leave_out(const std::vector<bool>& tensors) {
  const std::vector<LoweredOp>& ops = tape_->ops;
  std::vector<bool> own(ops.size(), false);  // some of its parameters' gradients are wanted
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t]) own[tape_->parameter_ops[t]] = true;
  }
  std::vector<bool> at_or_before = own;
  std::vector<bool> before(ops.size(), false);
  for (size_t i = 1; i < ops.size(); ++i) {
    before[i] = at_or_before[ops[i].input] || (ops[i].input2 >= 0 && at_or_before[ops[i].input2]);
    at_or_before[i] = own[i] || before[i];
  }
  for (TapeStep& step : tape_->steps) {
    const bool wanted = step.use == StepUse::always ||
                        (step.use != StepUse::inputs && own[step.op]) ||
                        (step.use != StepUse::parameters && before[step.op]);
    step.left_out = !wanted;
  }
}

const std::vector<ConvLayout>& ShardNet::conv_layouts() const { return tape_->conv_layouts; }

const std::vector<std::string>& ShardNet::implementations() const { return tape_->implementations; }

}  // namespace stoker
