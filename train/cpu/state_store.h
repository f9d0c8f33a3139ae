// The CPU engine's weights and other states: flat fp32 masters in the order of GradientLayout, with
// the weights of each convolution in the layout of its gradients, and the copies that primitives
// read. Owner: CpuEngine. Threads: one calls; the workers convert.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/cpu/memory.h"
#include "train/cpu/weights.h"
#include "train/cpu/workers.h"
#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"

namespace stoker {

class CpuStateStore {
 public:
  // `layout` and `workers` must outlive it. Variances start at 1, everything else at 0.
  CpuStateStore(const NetSpec& net, const EngineOptions& options, const GradientLayout& layout,
                std::vector<ConvLayout> convolutions, const dnnl::engine& engine,
                CpuWorkers& workers);

  // Before make_average() the averages are the current parameters and statistics.
  std::span<float> at(StateKind kind) const;
  const CpuWeightCopies& weights() const { return weights_; }
  void load_weights(bool averaged);  // updates the copies
  void changed() { loaded_ = Loaded::nothing; }
  void make_average();  // makes the averages separate states
  void blend_average(float decay, bool pull);

  // In parameter_table's and statistics_table's order.
  void read(StateKind kind, std::span<float> values) const;
  void write(StateKind kind, std::span<const float> values);

  int64_t moment_bytes() const { return momenta_.bytes() + second_moments_.bytes(); }

 private:
  // Which weights the convolutions' copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  int64_t held(StateKind kind) const;  // number of values, without padding
  void convert(const float* from, float* to, bool to_canonical) const;

  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const GradientLayout& layout_;
  const dnnl::engine engine_;
  CpuWorkers& workers_;
  CpuWeightCopies weights_;
  Loaded loaded_ = Loaded::nothing;
  CpuMemory parameters_, momenta_, second_moments_, average_, statistics_, average_statistics_;
};

}  // namespace stoker
