// The weights that the convolutions' primitives read: copies of the fp32 masters in each
// primitive's layout and precision. If these are the masters' own, there is no copy. Owner:
// CpuEngine, one for all workers. Threads: every worker's thread calls prepare() with its number at
// the same time; otherwise read-only.
#pragma once

#include <vector>

#include "train/cpu/memory.h"
#include "train/cpu/micro_batch_net.h"
#include "train/graph/gradient_layout.h"

namespace stoker {

class CpuWeightCopies {
 public:
  CpuWeightCopies(const NetSpec& net, const GradientLayout& layout, std::vector<ConvLayout> layouts,
                  const dnnl::engine& engine, int workers);

  // Converts the weights from `masters` (flat, in the masters' layouts).
  void prepare(int worker, const float* masters);

  const std::vector<ConvLayout>& layouts() const { return layouts_; }
  const std::vector<dnnl::memory>& forward() const { return forward_; }    // per node
  const std::vector<dnnl::memory>& backward() const { return backward_; }  // per node
  int64_t bytes() const { return memory_.bytes(); }

 private:
  void convert(const ConvLayout& layout, const float* masters, const dnnl::memory& to) const;

  const dnnl::engine engine_;
  const std::vector<ConvLayout> layouts_;
  std::vector<int64_t> offsets_;  // of the masters, per layout
  const int workers_;
  CpuMemory memory_;
  std::vector<dnnl::memory> forward_, backward_;
};

}  // namespace stoker
