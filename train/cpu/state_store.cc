#include "train/cpu/state_store.h"

#include <algorithm>

#include "train/cpu/update.h"
#include "train/engine/engine_arguments.h"

namespace stoker {

CpuStateStore::CpuStateStore(const NetSpec& net, const EngineOptions& options,
                             const GradientLayout& layout, std::vector<ConvLayout> convolutions,
                             const dnnl::engine& engine, CpuWorkers& workers)
    : options_(options),
      parameter_table_(parameter_table(net)),
      statistics_table_(statistics_table(net)),
      layout_(layout),
      engine_(engine),
      workers_(workers),
      weights_(net, layout, std::move(convolutions), engine, workers.size()),
      parameters_(float_memory(layout.parameter_numbers())),
      statistics_(float_memory(layout.statistics_numbers())) {
  if (options.training) momenta_ = float_memory(layout.parameter_numbers());
  if (options.training && has_second_moments(options.optimizer)) {
    second_moments_ = float_memory(layout.parameter_numbers());
  }
  for (size_t i = 1; i < statistics_table_.size(); i += 2) {  // variances
    const TensorInfo& info = statistics_table_[i];
    std::fill_n(statistics_.floats().begin() + info.offset, info.count, 1.0f);
  }
}

std::span<float> CpuStateStore::at(StateKind kind) const {
  switch (kind) {
    case StateKind::parameters:
      return parameters_.floats();
    case StateKind::momenta:
      require_training(options_, "momenta");
      return momenta_.floats();
    case StateKind::second_moments:
      require_second_moments(options_);
      return second_moments_.floats();
    case StateKind::average:
      return (average_.bytes() > 0 ? average_ : parameters_).floats();
    case StateKind::statistics:
      return statistics_.floats();
    case StateKind::average_statistics:
      return (average_statistics_.bytes() > 0 ? average_statistics_ : statistics_).floats();
  }
  return {};
}

void CpuStateStore::load_weights(bool averaged) {
  const Loaded wanted = averaged ? Loaded::average : Loaded::parameters;
  if (loaded_ == wanted) return;
  const float* masters = at(averaged ? StateKind::average : StateKind::parameters).data();
  workers_.run([&](int worker) { weights_.prepare(worker, masters); });
  loaded_ = wanted;
}

// Allocates the average on first use, because most runs need none.
void CpuStateStore::make_average() {
  if (average_.bytes() > 0) return;
  average_ = CpuMemory(parameters_.bytes());
  average_statistics_ = CpuMemory(statistics_.bytes());
  std::ranges::copy(parameters_.floats(), average_.floats().begin());
  std::ranges::copy(statistics_.floats(), average_statistics_.floats().begin());
}

void CpuStateStore::blend_average(float decay, bool pull) {
  make_average();
  blend(decay, pull, average_.floats(), parameters_.floats(), workers_);
  blend(decay, pull, average_statistics_.floats(), statistics_.floats(), workers_);
  changed();
}

// Converts between parameter_table's order and the order of the masters.
void CpuStateStore::convert(const float* from, float* to, bool to_canonical) const {
  for (size_t t = 0; t < parameter_table_.size(); ++t) {
    const int64_t canonical = parameter_table_[t].offset, flat = layout_.tensors()[t].offset;
    std::copy_n(from + (to_canonical ? flat : canonical), parameter_table_[t].count,
                to + (to_canonical ? canonical : flat));
  }
  // The convolutions' weights are converted on the workers, which may use oneDNN.
  workers_.run([&](int worker) {
    const dnnl::stream stream(engine_);
    const auto& layouts = weights_.layouts();
    for (size_t i = worker; i < layouts.size(); i += workers_.size()) {
      const ConvLayout& conv = layouts[i];
      if (conv.master == conv.canonical) continue;
      const int t = layout_.tensor_of(conv.node, ParameterKind::conv_weight);
      const int64_t canonical = parameter_table_[t].offset, flat = layout_.tensors()[t].offset;
      dnnl::memory source(to_canonical ? conv.master : conv.canonical, engine_,
                          const_cast<float*>(from + (to_canonical ? flat : canonical)));
      dnnl::memory target(to_canonical ? conv.canonical : conv.master, engine_,
                          to + (to_canonical ? canonical : flat));
      dnnl::reorder(source, target).execute(stream, source, target);
    }
  });
}

int64_t CpuStateStore::held(StateKind kind) const {
  return total_count(is_statistics(kind) ? statistics_table_ : parameter_table_);
}

void CpuStateStore::read(StateKind kind, std::span<float> values) const {
  const std::span<const float> state = at(kind);
  require_state("read", values.size(), held(kind));
  if (is_statistics(kind)) {
    std::ranges::copy(state, values.begin());
  } else {
    convert(state.data(), values.data(), true);
  }
}

void CpuStateStore::write(StateKind kind, std::span<const float> values) {
  require_state("write", values.size(), held(kind));
  if (is_average(kind)) make_average();
  const std::span<float> state = at(kind);
  if (is_statistics(kind)) {
    std::ranges::copy(values, state.begin());
  } else {
    convert(values.data(), state.data(), false);
  }
  changed();
}

}  // namespace stoker
