// What the convolutions' primitives read: the fp32 masters in the layout and precision that each
// likes. Where that is the masters' own, no copy is made.
// Owner: CpuEngine, one for all workers. Threads: prepare() on every worker's thread at once, each
// with its number; read-only otherwise.
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

  // Takes the weights from `masters` (flat, masters' layouts).
  void prepare(int worker, const float* masters);

  const std::vector<ConvLayout>& layouts() const { return layouts_; }
  const std::vector<dnnl::memory>& forward() const { return forward_; }    // per node
  const std::vector<dnnl::memory>& backward() const { return backward_; }  // per node
  int64_t bytes() const { return memory_.bytes(); }

 private:
  void convert(const ConvLayout& layout, const float* masters, const dnnl::memory& to) const;

  const dnnl::engine engine_;
  const std::vector<ConvLayout> layouts_;
  std::vector<int64_t> offsets_;  // per layout: of its masters
  const int workers_;
  CpuMemory memory_;
  std::vector<dnnl::memory> forward_, backward_;
};

}  // namespace stoker
