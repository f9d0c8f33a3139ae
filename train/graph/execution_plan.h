// What an engine does for one micro-batch: a list of steps over numbered buffers of one arena. Each
// says what it reads and writes, so that one analysis finds the buffers' lives and one planner
// places them. Which kernels do a step is the engine's own: see ProgramOf. Values; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/graph/gradient_layout.h"
#include "train/graph/lowering.h"
#include "train/graph/memory_planner.h"

namespace stoker {

// What a step is for: it is left out where nobody wants that.
enum class StepUse : uint8_t {
  always,      // forward
  parameters,  // the gradients of its node's parameters, or of one of them
  inputs,      // the gradients of its node's inputs
  both,
};

struct PlanStep {
  const char* name = "";  // "conv_weights"
  int node = 0;           // fused node
  StepUse use = StepUse::always;
  int tensor = -1;                 // of the parameters, if it is for one alone
  std::vector<int> reads, writes;  // buffers; workspaces are written
  // What its kernels read and write in memory: every operand once per pass over it, as if no cache
  // helped, without the workspaces of libraries. 0 where the engine does not count.
  int64_t bytes = 0;
  bool left_out = false;
};

struct ExecutionPlan {
  std::vector<FusedNode> nodes;
  std::vector<PlanStep> steps;  // forward, then backward
  size_t forward_steps = 0;
  std::vector<int64_t> buffer_bytes;
  int input = -1;  // the buffer that is written before the first step
  BufferPlan memory;

  // Leaves out the backward steps that only these tensors' gradients need (per tensor of
  // parameter_table). A tensor may still get a gradient, where a step makes it beside others.
  void leave_out(const std::vector<bool>& tensors, const GradientLayout& layout);
};

// From the first step that names a buffer to the last.
std::vector<BufferLife> buffer_lives(const ExecutionPlan& plan);

// A plan and, for each of its steps, the kernels that do it. `Run` is what changes between runs.
template <typename Run>
struct ProgramOf {
  using Kernel = std::function<void(const Run&)>;
  ExecutionPlan plan;
  std::vector<Kernel> kernels;               // per step
  std::vector<std::string> implementations;  // names of those in use

  void run(const Run& run) const { this->run(run, 0, kernels.size()); }
  void run(const Run& run, size_t begin, size_t end) const {  // of the steps
    for (size_t s = begin; s < end; ++s) {
      if (!plan.steps[s].left_out) kernels[s](run);
    }
  }
};

}  // namespace stoker
