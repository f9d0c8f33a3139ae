#include "train/cpu/engine_weights.h"

#include "train/graph/memory_planner.h"

namespace stoker {
namespace {

int64_t aligned_bytes(const onednn::Desc& desc) {
  const auto bytes = static_cast<int64_t>(desc.get_size());
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool forward_is_copy(const ConvLayout& l) { return l.forward != l.master; }

bool has_backward(const ConvLayout& l) { return l.backward.get_size() > 0; }

bool backward_is_copy(const ConvLayout& l) {
  return has_backward(l) && l.backward != l.master && l.backward != l.forward;
}

int64_t copied_bytes(const std::vector<ConvLayout>& layouts) {
  int64_t bytes = 0;
  for (const ConvLayout& layout : layouts) {
    if (forward_is_copy(layout)) bytes += aligned_bytes(layout.forward);
    if (backward_is_copy(layout)) bytes += aligned_bytes(layout.backward);
  }
  return bytes;
}

}  // namespace

CpuEngineWeights::CpuEngineWeights(const NetSpec& net, std::vector<ConvLayout> layouts,
                                   const dnnl::engine& engine, int workers)
    : engine_(engine),
      layouts_(std::move(layouts)),
      workers_(workers),
      memory_(copied_bytes(layouts_)),
      forward_(net.nodes.size()),
      backward_(net.nodes.size()) {
  const std::vector<TensorInfo> table = parameter_table(net);
  std::byte* next = memory_.data();
  const auto place = [&](const onednn::Desc& desc, bool copy) {
    dnnl::memory memory(desc, engine_, copy ? next : nullptr);
    if (copy) next += aligned_bytes(desc);
    return memory;
  };
  for (const ConvLayout& layout : layouts_) {
    for (const TensorInfo& info : table) {
      const bool mine = info.node == layout.node && info.kind == ParameterKind::conv_weight;
      if (mine) offsets_.push_back(info.offset);
    }
    forward_[layout.node] = place(layout.forward, forward_is_copy(layout));
    if (!has_backward(layout)) continue;
    backward_[layout.node] = layout.backward == layout.forward
                                 ? forward_[layout.node]
                                 : place(layout.backward, backward_is_copy(layout));
  }
}

// A convolution belongs to one worker: primitives run on the thread that makes them.
void CpuEngineWeights::prepare(int worker, const float* masters) {
  for (size_t i = worker; i < layouts_.size(); i += workers_) {
    const ConvLayout& layout = layouts_[i];
    const float* master = masters + offsets_[i];
    const dnnl::memory& forward = forward_[layout.node];
    if (forward_is_copy(layout)) {
      convert(layout, master, forward);
    } else {
      forward.set_data_handle(const_cast<float*>(master));
    }
    if (!has_backward(layout) || layout.backward == layout.forward) continue;
    if (backward_is_copy(layout)) {
      convert(layout, master, backward_[layout.node]);
    } else {
      backward_[layout.node].set_data_handle(const_cast<float*>(master));
    }
  }
}

void CpuEngineWeights::convert(const ConvLayout& layout, const float* masters,
                               const dnnl::memory& to) const {
  const dnnl::memory from(layout.master, engine_, const_cast<float*>(masters));
  const dnnl::stream stream(engine_);
  dnnl::memory target = to;
  dnnl::reorder(from, target).execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, target}});
}

}  // namespace stoker
