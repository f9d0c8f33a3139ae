// A micro-batch (some rows of a batch that share batch-norm statistics) as a single-threaded oneDNN
// net: an execution plan over one arena. Parameters are shared by all nets of an engine; only the
// arena is its own.
// Owner: CpuEngine, one per worker and mode. Threads: built and run on its worker's thread only
// (oneDNN counts threads when a primitive is made).
// Shapes: activations (rows, C, H, W) as ActivationLayout says, fp32 or bf16; head and loss in
// fp32.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "train/cpu/micro_batch_input.h"
#include "train/cpu/onednn_compat.h"
#include "train/engine/engine.h"
#include "train/graph/plan_builder.h"

namespace stoker {

// Where fp32 runs on AVX-512, blocked: Winograd's convolutions want that and all others like it.
ActivationLayout activation_layout(Precision precision);

// How one convolution's weights lie: fp32 masters (and gradients, momenta, averages), and what its
// primitives read. Masters take the gradients' layout where that has no padding, else OIHW.
struct ConvLayout {
  int node = 0;
  onednn::Desc canonical, master, forward, backward;  // backward: zero if there is none
};

// What one run reads and writes. Pointers are the engine's or the caller's.
struct MicroBatchRun {
  const float* parameters = nullptr;  // masters (or averages)
  const float* statistics = nullptr;
  const std::vector<dnnl::memory>* forward_weights = nullptr;   // per node; convolutions only
  const std::vector<dnnl::memory>* backward_weights = nullptr;  // training
  const int32_t* labels = nullptr;                              // training
  const float* weights = nullptr;                               // training
  Mix mix;
  float* gradients = nullptr;  // training: a gradient buffer, as GradientLayout
  float* logits = nullptr;     // evaluation: (rows, classes)
};

struct MicroBatchProgram;  // plan_builder.h

class MicroBatchNet {
 public:
  // `layout` outlives it.
  MicroBatchNet(const NetSpec& net, const PlanOptions& options, const GradientLayout& layout,
                const dnnl::engine& engine);
  ~MicroBatchNet();
  MicroBatchNet(const MicroBatchNet&) = delete;
  MicroBatchNet& operator=(const MicroBatchNet&) = delete;

  int64_t arena_bytes() const;
  void place(std::byte* arena);  // REQUIRES: arena_bytes(), aligned to a page
  void* input() const;           // as MicroBatchInput writes it, before run()
  void run(const MicroBatchRun& run);
  // As ExecutionPlan::leave_out().
  void leave_out(const std::vector<bool>& tensors);

  const ExecutionPlan& plan() const;
  const std::vector<ConvLayout>& conv_layouts() const;
  const std::vector<std::string>& implementations() const;

 private:
  const GradientLayout& layout_;
  std::unique_ptr<MicroBatchProgram> program_;
};

}  // namespace stoker
