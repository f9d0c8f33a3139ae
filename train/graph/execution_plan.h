// The work of an engine for one micro-batch: a list of steps over numbered buffers of one arena.
// Each step lists the buffers that it reads and writes; from these the lifetimes of the buffers
// follow, and plan_memory() places them. The engine chooses the kernels of each step: see
// ProgramOf. Values; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/graph/gradient_layout.h"
#include "train/graph/lowering.h"

namespace stoker {

// A buffer of known lifetime, in steps of a plan. Sizes and offsets are in bytes.
struct BufferLife {
  int64_t bytes = 0;
  int first_step = 0;  // of the first write
  int last_step = 0;   // of the last read; inclusive, >= first_step
};

struct BufferPlan {
  std::vector<int64_t> offsets;  // per buffer, multiples of kArenaAlignment
  int64_t bytes = 0;             // of the arena
};

constexpr int64_t kArenaAlignment = 64;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Places buffers in one arena; two share bytes only if their lifetimes do not overlap. Places
// greedily by size: the largest buffer first, each into the smallest gap between the buffers that
// are alive at the same time. Pure.
BufferPlan plan_memory(std::span<const BufferLife> buffers);

// The result of a step; a step whose results nothing needs is left out.
enum class StepUse : uint8_t {
  always,      // forward
  parameters,  // gradients of its node's parameters, or of one of them
  inputs,      // gradients of its node's inputs
  both,
};

struct PlanStep {
  const char* name = "";  // "conv_weights"
  int node = 0;           // fused node
  StepUse use = StepUse::always;
  int tensor = -1;                 // index in parameter_table, if it is for one parameter alone
  std::vector<int> reads, writes;  // buffers; workspaces are written
  // The bytes that its kernels read and write: every operand once per pass over it, as if there
  // were no cache, without the libraries' workspaces. 0 if the engine does not count them.
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

  // Leaves out the backward steps that only the gradients of these tensors need (one entry per
  // tensor of parameter_table). A tensor may still get a gradient if a step also computes another
  // one.
  void leave_out(const std::vector<bool>& tensors, const GradientLayout& layout);
};

// Returns the lifetime of each buffer: from the first step that uses it to the last.
std::vector<BufferLife> buffer_lives(const ExecutionPlan& plan);

// A plan and the kernels of each of its steps. `Run` holds the values that change between runs.
template <typename Run>
struct ProgramOf {
  using Kernel = std::function<void(const Run&)>;
  ExecutionPlan plan;
  std::vector<Kernel> kernels;               // per step
  std::vector<std::string> implementations;  // names of those in use

  void run(const Run& run) const { this->run(run, 0, kernels.size()); }
  // Runs the steps [begin, end).
  void run(const Run& run, size_t begin, size_t end) const {
    for (size_t s = begin; s < end; ++s) {
      if (!plan.steps[s].left_out) kernels[s](run);
    }
  }
};

}  // namespace stoker
