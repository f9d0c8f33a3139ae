#include "train/cpu/weights.h"

#include "train/graph/execution_plan.h"

namespace stoker {
namespace {

int64_t aligned_bytes(const onednn::Desc& desc) {
  return round_up(static_cast<int64_t>(desc.get_size()), kArenaAlignment);
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

CpuWeightCopies::CpuWeightCopies(const NetSpec& net, const GradientLayout& layout,
                                 std::vector<ConvLayout> layouts, const dnnl::engine& engine,
                                 int workers)
    : engine_(engine),
      layouts_(std::move(layouts)),
      workers_(workers),
      memory_(copied_bytes(layouts_)),
      forward_(net.nodes.size()),
      backward_(net.nodes.size()) {
  std::byte* next = memory_.data();
  const auto place = [&](const onednn::Desc& desc, bool copy) {
    dnnl::memory memory(desc, engine_, copy ? next : nullptr);
    if (copy) next += aligned_bytes(desc);
    return memory;
  };
  for (const ConvLayout& conv : layouts_) {
    offsets_.push_back(layout.offset_of(conv.node, ParameterKind::conv_weight));
    forward_[conv.node] = place(conv.forward, forward_is_copy(conv));
    if (!has_backward(conv)) continue;
    backward_[conv.node] = conv.backward == conv.forward
                               ? forward_[conv.node]
                               : place(conv.backward, backward_is_copy(conv));
  }
}

// Each convolution is converted by one worker: primitives run on the thread that makes them.
void CpuWeightCopies::prepare(int worker, const float* masters) {
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

void CpuWeightCopies::convert(const ConvLayout& layout, const float* masters,
                              const dnnl::memory& to) const {
  const dnnl::memory from(layout.master, engine_, const_cast<float*>(masters));
  const dnnl::stream stream(engine_);
  dnnl::memory target = to;
  dnnl::reorder(from, target).execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, target}});
}

}  // namespace stoker
