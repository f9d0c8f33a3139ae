// What a device engine runs for one shard: steps in order over one arena. Built once by
// DeviceTapeBuilder; run as often as wanted, with other pointers each time.
// Owner: DeviceEngine. Threads: the engine's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/device/layout.h"
#include "train/device/ops.h"
#include "train/graph/memory_planner.h"

namespace stoker {

struct DeviceTapeOptions {
  int rows = 0;
  Precision precision = Precision::fp32;
  bool training = true;  // false: forward only, running statistics
  int input_channels = 3;
  float label_smoothing = 0;
  float loss_scale = 1;           // 1 / nominal rows of the global batch
  int64_t assumed_workspace = 0;  // of each convolution, where the tape is only planned
};

// Device pointers of one run.
struct DeviceRun {
  std::byte* arena = nullptr;
  const BufferPlan* plan = nullptr;    // the tape's
  const float* parameters = nullptr;   // flat
  const std::byte* weights = nullptr;  // flat, in the net's precision
  const float* statistics = nullptr;
  const int32_t* labels = nullptr;  // training, as all below
  const float* row_weights = nullptr;
  const DeviceMix* mix = nullptr;
  float* part = nullptr;
  std::byte* narrow_gradients = nullptr;  // flat bf16; fp32: null, gradients go into the part
  float* logits = nullptr;                // evaluation

  template <typename Number = void>
  Number* at(int buffer) const {
    return buffer < 0 ? nullptr : reinterpret_cast<Number*>(arena + plan->offsets[buffer]);
  }
};

// What a step is for: it can be left out where nobody wants that.
enum class DeviceStepUse : uint8_t {
  always,     // forward
  parameter,  // the gradient of one tensor
  inputs,     // the gradients of its node's inputs
  both,       // those and all of the node's parameters'
};

struct DeviceStep {
  const char* name = "";
  std::function<void(const DeviceRun&)> run;
  int node = 0;  // device node
  DeviceStepUse use = DeviceStepUse::always;
  int tensor = -1;  // parameter
  // What its kernels read and write in the device's memory: every operand once per pass over it, as
  // if no cache helped. Workspaces of libraries, which nobody tells, are not in it.
  int64_t bytes = 0;
  bool left_out = false;
};

struct DeviceTape {
  std::vector<DeviceNode> nodes;
  std::vector<DeviceStep> steps;  // forward, then backward
  size_t forward_steps = 0;
  std::vector<BufferLife> buffers;
  BufferPlan plan;
  int64_t workspace_bytes = 0;  // the largest
  int input = -1;               // buffer of (rows, H, W, input channels)
  std::vector<std::string> implementations;

  void run(const DeviceRun& run) const { this->run(run, 0, steps.size()); }
  void run(const DeviceRun& run, size_t begin, size_t end) const;  // of the steps
  // Skips the backward steps that only these tensors' gradients need (per tensor of
  // parameter_table).
  void leave_out(const std::vector<bool>& tensors, const DeviceLayout& layout);
};

// `ops` may be null: then the tape is only a plan. It and `layout` outlive the tape.
DeviceTape build_device_tape(const NetSpec& net, const DeviceTapeOptions& options,
                             const DeviceLayout& layout, DeviceOps* ops);

}  // namespace stoker
