#include "train/cpu/plan_builder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker {

CpuPlanBuilder::CpuPlanBuilder(const NetSpec& net, const PlanOptions& options,
                               const GradientLayout& layout, const dnnl::engine& engine,
                               MicroBatchProgram& program)
    : KernelBuilder(net, options, layout, program),
      engine_(engine),
      stream_(engine),
      held_(tensor_precisions(options.precision, kCpuPrecision)),
      activation_layout_(
          stoker::activation_layout(net, options.precision, options.norms != nullptr)),
      program_(program),
      layers_(nodes().size()) {}

onednn::Desc CpuPlanBuilder::activation(int index, Precision in) const {
  using Tag = dnnl::memory::format_tag;
  const NodeShape& shape = node(index).shape;
  const Tag blocked = node(index).kind == OpKind::input ? Tag::nchw : Tag::nChw16c;
  return {{options().rows, shape.channels, shape.height, shape.width},
          data_type(in),
          in_blocks(index) ? blocked : Tag::nhwc};
}

bool CpuPlanBuilder::in_blocks(int index) const {
  return activation_layout_ == ActivationLayout::blocked && !is_vector(index);
}

bool CpuPlanBuilder::is_vector(int index) const {
  const FusedNode& self = node(index);
  if (self.kind == OpKind::conv) return spec(index).flat;
  return self.kind != OpKind::input && is_vector(self.input);
}

Precision CpuPlanBuilder::precision(int index) const {
  return is_vector(index) ? held_.head : held_.activations;
}

void CpuPlanBuilder::layer(int index) {
  const OpKind kind = node(index).kind;
  layers_[index] = kind == OpKind::conv         ? make_cpu_conv(*this, index)
                   : kind == OpKind::batch_norm ? make_cpu_norm(*this, index)
                                                : make_cpu_head(index);
  layers_[index]->build_forward(*this);
}

void CpuPlanBuilder::layer_back(int index) {
  layer_floats_ = 0;
  own_gradients_.clear();
  layers_[index]->build_backward(*this);
  begin(index, StepUse::parameters);
  append("sum_gradients", 0, [own = own_gradients_](const MicroBatchRun& run) {
    const GradientSum::Turn turn(run.sum, run.micro_batch);
    if (run.scratch == nullptr) return;
    for (const LayerGradient& g : own) {
      add_to(run.gradients + g.offset, run.scratch + g.in_scratch, g.count);
    }
  });
}

dnnl::memory CpuPlanBuilder::bind(std::vector<Binding>& list, const onednn::Desc& desc,
                                  int64_t where) {
  list.push_back({dnnl::memory(desc, engine_, DNNL_MEMORY_NONE), where});
  return list.back().memory;
}

dnnl::memory CpuPlanBuilder::view(const onednn::Desc& desc, int buffer) {
  if (static_cast<int64_t>(desc.get_size()) > buffer_bytes(buffer)) {
    std::fputs("stoker: broken execution plan: a view is larger than its buffer\n", stderr);
    std::abort();
  }
  return bind(program_.arena, desc, buffer);
}

dnnl::memory CpuPlanBuilder::parameter(const onednn::Desc& desc, int index, ParameterKind kind) {
  return bind(program_.parameters, desc, layout().offset_of(node(index).node, kind));
}

dnnl::memory CpuPlanBuilder::statistics(const onednn::Desc& desc, int64_t offset) {
  return bind(program_.statistics, desc, offset);
}

dnnl::memory CpuPlanBuilder::parameter_gradient(const onednn::Desc& desc, int index,
                                                ParameterKind kind) {
  const LayoutTensor& tensor = layout().tensors()[layout().tensor_of(node(index).node, kind)];
  program_.gradients.push_back(
      {dnnl::memory(desc, engine_, DNNL_MEMORY_NONE), tensor.offset, layer_floats_});
  own_gradients_.push_back({tensor.offset, tensor.count, layer_floats_});
  layer_floats_ += round_up(tensor.count, GradientLayout::kTensorAlignment);
  program_.scratch_floats = std::max(program_.scratch_floats, layer_floats_);
  return program_.gradients.back().memory;
}

dnnl::memory CpuPlanBuilder::forward_weights(const onednn::Desc& desc, int index) {
  return bind(program_.forward_weights, desc, node(index).node);
}

dnnl::memory CpuPlanBuilder::backward_weights(const onednn::Desc& desc, int index) {
  return bind(program_.backward_weights, desc, node(index).node);
}

void CpuPlanBuilder::copy(const dnnl::memory& from, const dnnl::memory& to) {
  const dnnl::reorder::primitive_desc desc(engine_, from.get_desc(), engine_, to.get_desc(),
                                           onednn::caller_scratchpad());
  execute<dnnl::reorder>("reorder", desc, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace stoker
