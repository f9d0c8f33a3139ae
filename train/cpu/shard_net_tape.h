// What TapeBuilder builds and ShardNet runs: steps in order, and where the handles of their
// memories come from. Values; one thread, the worker's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/cpu/shard_net.h"
#include "train/cpu/shard_net_lowering.h"
#include "train/graph/memory_planner.h"

namespace stoker {

// What a step is for: it can be left out where nobody wants that.
enum class StepUse : uint8_t {
  always,      // forward
  parameters,  // the gradients of its op's own parameters
  inputs,      // the gradients of its op's inputs
  both,
};

struct TapeStep {
  std::string name;
  std::function<void(const ShardRun&)> run;
  int op = 0;
  StepUse use = StepUse::always;
  bool left_out = false;
};

struct TapeBinding {
  dnnl::memory memory;
  int64_t where = 0;  // a buffer, a node, or an offset in floats, as the list says
};

struct ShardTape {
  std::vector<TapeStep> steps;  // forward, then backward
  std::vector<BufferLife> buffers;
  BufferPlan plan;
  std::vector<TapeBinding> arena;             // where = buffer
  std::vector<TapeBinding> forward_weights;   // where = node
  std::vector<TapeBinding> backward_weights;  // where = node
  std::vector<TapeBinding> parameters;        // where = offset in the masters
  std::vector<TapeBinding> statistics;        // where = offset in the statistics
  std::vector<TapeBinding> part;              // where = offset in the part
  std::vector<ConvLayout> conv_layouts;
  std::vector<std::string> implementations;
  dnnl::memory input;
  std::vector<LoweredOp> ops;
  std::vector<int> parameter_ops;  // per tensor of parameter_table
};

}  // namespace stoker
