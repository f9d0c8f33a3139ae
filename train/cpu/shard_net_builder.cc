#include "train/cpu/shard_net_builder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker {
namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "stoker: broken tape: %s\n", what);
  std::abort();
}

}  // namespace

TapeBuilder::TapeBuilder(const NetSpec& net, const ShardNetOptions& options,
                         const dnnl::engine& engine, ShardTape& tape)
    : net_(net),
      options_(options),
      layout_(activation_layout(options.precision)),
      engine_(engine),
      stream_(engine),
      ops_(lower(net)),
      parameters_(parameter_table(net)),
      statistics_(statistics_table(net)),
      part_(part_layout(net)),
      tape_(tape),
      values_(ops_.size(), -1),
      gradients_(ops_.size(), -1) {}

dnnl::memory::data_type TapeBuilder::activation_type() const {
  return options_.precision == Precision::bf16 ? dnnl::memory::data_type::bf16
                                               : dnnl::memory::data_type::f32;
}

onednn::Desc TapeBuilder::activation(int op_index) const {
  using Tag = dnnl::memory::format_tag;
  const NodeShape& shape = ops_[op_index].shape;
  const Tag blocked = ops_[op_index].kind == OpKind::input ? Tag::nchw : Tag::nChw16c;
  return {{options_.rows, shape.channels, shape.height, shape.width},
          activation_type(),
          layout_ == ActivationLayout::blocked ? blocked : Tag::nhwc};
}

bool TapeBuilder::is_padded(int op_index) const {
  return layout_ == ActivationLayout::blocked &&
         ops_[op_index].shape.channels % kBlockChannels != 0;
}

int TapeBuilder::new_buffer(int64_t bytes) {
  const int now = static_cast<int>(tape_.steps.size());
  tape_.buffers.push_back({bytes, now, now});
  sharers_.push_back(0);
  return static_cast<int>(tape_.buffers.size()) - 1;
}

dnnl::memory TapeBuilder::unplaced(const onednn::Desc& desc) {
  return dnnl::memory(desc, engine_, DNNL_MEMORY_NONE);
}

dnnl::memory TapeBuilder::bind(const onednn::Desc& desc, int buffer) {
  if (static_cast<int64_t>(desc.get_size()) > tape_.buffers[buffer].bytes) {
    broken("a view is larger than its buffer");
  }
  tape_.buffers[buffer].last_step = static_cast<int>(tape_.steps.size());
  tape_.arena.push_back({unplaced(desc), buffer});
  return tape_.arena.back().memory;
}

dnnl::memory TapeBuilder::define_value(int op_index, int reuse) {
  const onednn::Desc desc = activation(op_index);
  values_[op_index] = reuse >= 0 ? reuse : new_buffer(static_cast<int64_t>(desc.get_size()));
  return bind(desc, values_[op_index]);
}

dnnl::memory TapeBuilder::value(int op_index) {
  if (values_[op_index] < 0) broken("a value is read before it is defined");
  return bind(activation(op_index), values_[op_index]);
}

// Convolution, batch norm and GELU read their inputs again; ReLU looks at its own output.
bool TapeBuilder::value_needed_backward(int op_index) const {
  if (!options_.training) return false;
  const LoweredOp& self = ops_[op_index];
  if (self.kind == OpKind::relu || (self.kind == OpKind::add && self.relu)) return true;
  return std::any_of(ops_.begin(), ops_.end(), [&](const LoweredOp& reader) {
    const bool rereads = reader.kind == OpKind::conv || reader.kind == OpKind::batch_norm ||
                         reader.kind == OpKind::gelu || reader.kind == OpKind::linear;
    return rereads && reader.input == op_index;
  });
}

dnnl::memory TapeBuilder::gradient(int op_index) {
  if (gradients_[op_index] < 0) broken("a gradient is read before it is written");
  return bind(activation(op_index), gradients_[op_index]);
}

TapeBuilder::Target TapeBuilder::open_gradient(int input_op, int own_op, bool in_place) {
  Target target;
  target.adds = gradients_[input_op] >= 0;
  const int own = gradients_[own_op];
  const onednn::Desc desc = activation(input_op);
  if (in_place && !target.adds && sharers_[own] == 1) {
    target.buffer = own;
  } else {
    target.buffer = new_buffer(static_cast<int64_t>(desc.get_size()));
  }
  target.memory = bind(desc, target.buffer);
  return target;
}

void TapeBuilder::close_gradient(int input_op, const Target& target) {
  const int sum = gradients_[input_op];
  if (!target.adds) {
    gradients_[input_op] = target.buffer;
    ++sharers_[target.buffer];
    return;
  }
  const onednn::Desc desc = activation(input_op);
  const dnnl::memory total = bind(desc, sum);
  const dnnl::memory addend = bind(desc, target.buffer);
  const bool shared = sharers_[sum] > 1;  // then the sum goes over the addend, ours alone
  execute<dnnl::binary>("add_gradients", onednn::binary_add(engine_, desc, false),
                        {{DNNL_ARG_SRC_0, shared ? addend : total},
                         {DNNL_ARG_SRC_1, shared ? total : addend},
                         {DNNL_ARG_DST, shared ? addend : total}});
  if (shared) {
    --sharers_[sum];
    gradients_[input_op] = target.buffer;
    ++sharers_[target.buffer];
  }
}

void TapeBuilder::share_gradient(int input_op, int own_op) {
  const int own = gradients_[own_op];
  if (gradients_[input_op] < 0) {
    gradients_[input_op] = own;
    ++sharers_[own];
    return;
  }
  const int sum = gradients_[input_op];
  const onednn::Desc desc = activation(input_op);
  const dnnl::memory total = bind(desc, sum);
  const dnnl::memory addend = bind(desc, own);
  dnnl::memory out = total;
  if (sharers_[sum] > 1) {
    --sharers_[sum];
    gradients_[input_op] = new_buffer(static_cast<int64_t>(desc.get_size()));
    ++sharers_[gradients_[input_op]];
    out = bind(desc, gradients_[input_op]);
  }
  execute<dnnl::binary>("add_gradients", onednn::binary_add(engine_, desc, false),
                        {{DNNL_ARG_SRC_0, total}, {DNNL_ARG_SRC_1, addend}, {DNNL_ARG_DST, out}});
}

dnnl::memory TapeBuilder::rewritten_gradient(int own_op) {
  const int own = gradients_[own_op];
  const onednn::Desc desc = activation(own_op);
  if (sharers_[own] == 1) return bind(desc, own);
  --sharers_[own];
  gradients_[own_op] = new_buffer(static_cast<int64_t>(desc.get_size()));
  ++sharers_[gradients_[own_op]];
  return bind(desc, gradients_[own_op]);
}

void TapeBuilder::release_gradient(int own_op) {
  if (gradients_[own_op] >= 0) --sharers_[gradients_[own_op]];
}

int64_t TapeBuilder::parameter_offset(int node, ParameterKind kind) const {
  for (const TensorInfo& info : parameters_) {
    if (info.node == node && info.kind == kind) return info.offset;
  }
  broken("a parameter is not in the table");
}

std::vector<int> TapeBuilder::parameter_ops() const {
  std::vector<int> ops;
  for (const TensorInfo& info : parameters_) {
    const auto at = std::find_if(ops_.begin(), ops_.end(),
                                 [&](const LoweredOp& op) { return op.node == info.node; });
    ops.push_back(static_cast<int>(at - ops_.begin()));
  }
  return ops;
}

int64_t TapeBuilder::statistics_offset(int node) const {
  for (const TensorInfo& info : statistics_) {
    if (info.node == node) return info.offset;
  }
  broken("a statistic is not in the table");
}

dnnl::memory TapeBuilder::parameter(const onednn::Desc& desc, int64_t offset) {
  tape_.parameters.push_back({unplaced(desc), offset});
  return tape_.parameters.back().memory;
}

dnnl::memory TapeBuilder::statistics(const onednn::Desc& desc, int64_t offset) {
  tape_.statistics.push_back({unplaced(desc), offset});
  return tape_.statistics.back().memory;
}

dnnl::memory TapeBuilder::in_part(const onednn::Desc& desc, int64_t offset) {
  tape_.part.push_back({unplaced(desc), offset});
  return tape_.part.back().memory;
}

dnnl::memory TapeBuilder::forward_weights(const onednn::Desc& desc, int node) {
  tape_.forward_weights.push_back({unplaced(desc), node});
  return tape_.forward_weights.back().memory;
}

dnnl::memory TapeBuilder::backward_weights(const onednn::Desc& desc, int node) {
  tape_.backward_weights.push_back({unplaced(desc), node});
  return tape_.backward_weights.back().memory;
}

void TapeBuilder::copy(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc desc(engine_, from.get_desc(), engine_, to.get_desc(),
                                           onednn::caller_scratchpad());
  execute<dnnl::reorder>("reorder", desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void TapeBuilder::append(const char* what, std::function<void(const ShardRun&)> run) {
  tape_.steps.push_back({what, std::move(run), current_op_, current_use_});
}

void TapeBuilder::note_implementation(const char* what, const char* name) {
  std::string entry = std::string(what) + " " + name;
  auto& all = tape_.implementations;
  if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(std::move(entry));
}

}  // namespace stoker
