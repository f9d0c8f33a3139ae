// One shard of a batch as a single-threaded oneDNN net: a tape of steps over one arena, placed by
// the memory planner. Parameters are shared by all nets of an engine; only the arena is its own.
// Owner: CpuEngine, one per worker and mode. Threads: built and run on its worker's thread only
// (oneDNN counts threads when a primitive is made).
// Shapes: activations (rows, C, H, W) as ActivationLayout says, fp32 or bf16; head and loss in
// fp32.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "train/cpu/onednn_compat.h"
#include "train/cpu/shard_net_input.h"
#include "train/engine/engine.h"

namespace stoker {

// A part in floats: [gradients, masters' layout | moments, statistics' layout | totals].
struct PartLayout {
  int64_t moments = 0;  // offsets
  int64_t totals = 0;
  int64_t floats = 0;
};
PartLayout part_layout(const NetSpec& net);

// Sums over a shard, at PartLayout::totals, in this order. `shards` and `finite` are 1 per shard.
enum class TotalSlot : uint8_t { loss, weight, top1, top5, finite, shards, count };

// Where fp32 runs on AVX-512, blocked: Winograd's convolutions want that and all others like it.
ActivationLayout activation_layout(Precision precision);

struct ShardNetOptions {
  int rows = 0;
  Precision precision = Precision::fp32;
  bool training = true;  // false: forward only, running statistics
  float label_smoothing = 0;
  float loss_scale = 1;  // 1 / nominal rows of the global batch
};

// How one convolution's weights lie: fp32 masters (and gradients, momenta, averages), and what its
// primitives read. Masters take the gradients' layout where that has no padding, else OIHW.
struct ConvLayout {
  int node = 0;
  onednn::Desc canonical, master, forward, backward;  // backward: zero if there is none
};

// What one run reads and writes. Pointers are the engine's or the caller's.
struct ShardRun {
  const float* parameters = nullptr;  // masters (or averages)
  const float* statistics = nullptr;
  const std::vector<dnnl::memory>* forward_weights = nullptr;   // per node; convolutions only
  const std::vector<dnnl::memory>* backward_weights = nullptr;  // training
  const int32_t* labels = nullptr;                              // training
  const float* weights = nullptr;                               // training
  Mix mix;
  float* part = nullptr;    // training: (PartLayout::floats)
  float* logits = nullptr;  // evaluation: (rows, classes)
};

struct ShardTape;  // shard_net_tape.h

class ShardNet {
 public:
  ShardNet(const NetSpec& net, const ShardNetOptions& options, const dnnl::engine& engine);
  ~ShardNet();
  ShardNet(const ShardNet&) = delete;
  ShardNet& operator=(const ShardNet&) = delete;

  int64_t arena_bytes() const;
  void place(std::byte* arena);  // REQUIRES: arena_bytes(), aligned to kArenaAlignment
  void* input() const;           // as ShardInput writes it, before run()
  void run(const ShardRun& run);
  // Skips the backward steps that only these tensors' gradients need (per tensor of
  // parameter_table). A tensor may still get a gradient, where a step makes it beside others.
  void leave_out(const std::vector<bool>& tensors);

  const std::vector<ConvLayout>& conv_layouts() const;
  const std::vector<std::string>& implementations() const;

 private:
  std::unique_ptr<ShardTape> tape_;
};

}  // namespace stoker
