#include <algorithm>
#include <stdexcept>

#include "train/cpu/engine.h"
#include "train/engine/engine_arguments.h"

namespace stoker {

// Until the first blend the average is what the net is: most runs never ask for one.
void CpuEngine::ensure_average() {
  if (average_.bytes() > 0) return;
  average_ = CpuEngineMemory(parameters_.bytes());
  average_statistics_ = CpuEngineMemory(statistics_.bytes());
  std::ranges::copy(parameters_.floats(), average_.floats().begin());
  std::ranges::copy(statistics_.floats(), average_statistics_.floats().begin());
}

std::span<float> CpuEngine::state(StateKind kind) const {
  switch (kind) {
    case StateKind::parameters:
      return parameters_.floats();
    case StateKind::momenta:
      require_training(options_, "momenta");
      return momenta_.floats();
    case StateKind::average:
      return (average_.bytes() > 0 ? average_ : parameters_).floats();
    case StateKind::statistics:
      return statistics_.floats();
    case StateKind::average_statistics:
      return (average_statistics_.bytes() > 0 ? average_statistics_ : statistics_).floats();
  }
  return {};
}

bool CpuEngine::has_master_layout(StateKind kind) const {
  return kind != StateKind::statistics && kind != StateKind::average_statistics;
}

void CpuEngine::convert(std::span<const float> from, std::span<float> to, bool to_canonical) const {
  std::ranges::copy(from, to.begin());
  workers_.run([&](int worker) {  // the convolutions' weights, on threads that may use oneDNN
    const dnnl::stream stream(engine_);
    const auto& layouts = weights_->layouts();
    for (size_t i = worker; i < layouts.size(); i += workers_.size()) {
      const ConvLayout& layout = layouts[i];
      if (layout.master == layout.canonical) continue;
      const auto info = std::ranges::find_if(parameter_table_, [&](const TensorInfo& t) {
        return t.node == layout.node && t.kind == ParameterKind::conv_weight;
      });
      dnnl::memory source(to_canonical ? layout.master : layout.canonical, engine_,
                          const_cast<float*>(from.data() + info->offset));
      dnnl::memory target(to_canonical ? layout.canonical : layout.master, engine_,
                          to.data() + info->offset);
      dnnl::reorder(source, target).execute(stream, source, target);
    }
  });
}

void CpuEngine::read(StateKind kind, std::span<float> values) const {
  const std::span<const float> held = state(kind);
  if (values.size() != held.size()) {
    throw std::invalid_argument("read: room for " + std::to_string(values.size()) +
                                " numbers, not " + std::to_string(held.size()));
  }
  if (has_master_layout(kind)) {
    convert(held, values, true);
  } else {
    std::ranges::copy(held, values.begin());
  }
}

void CpuEngine::write(StateKind kind, std::span<const float> values) {
  const bool average = kind == StateKind::average || kind == StateKind::average_statistics;
  if (average) ensure_average();
  const std::span<float> held = state(kind);
  if (values.size() != held.size()) {
    throw std::invalid_argument("write: " + std::to_string(values.size()) + " numbers, not " +
                                std::to_string(held.size()));
  }
  if (has_master_layout(kind)) {
    convert(values, held, false);
  } else {
    std::ranges::copy(values, held.begin());
  }
  loaded_ = Loaded::nothing;
}

}  // namespace stoker
