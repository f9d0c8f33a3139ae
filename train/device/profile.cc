#include "train/device/profile.h"

#include <algorithm>

#include "train/device/memory.h"
#include "train/device/program.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

// Returns the operations of a convolution's step; 0 for other steps.
double flops_of(const NetSpec& net, const ExecutionPlan& plan, const PlanStep& step, int rows) {
  const FusedNode& node = plan.nodes[step.node];
  const std::string name = step.name;
  if (name != "conv" && name != "conv_data" && name != "conv_weights") return 0;
  const Size& kernel = net.nodes[node.node].kernel;
  return 2.0 * rows * node.shape.height * node.shape.width * node.shape.channels * kernel.height *
         kernel.width * plan.nodes[node.input].shape.channels;
}

}  // namespace

std::vector<DeviceStepTime> time_steps(const NetSpec& net, const DeviceProgram& program, int rows,
                                       const DeviceRun& run, int runs, Device& device,
                                       Stream& stream) {
  const ExecutionPlan& plan = program.plan;
  std::vector<std::unique_ptr<Event>> marks;
  std::vector<DeviceStepTime> times;
  for (const PlanStep& step : plan.steps) {
    const FusedNode& node = plan.nodes[step.node];
    times.push_back({step.name, net.nodes[node.node].name, node.shape,
                     flops_of(net, plan, step, rows), step.bytes, 0});
    marks.push_back(device.make_event(true));
  }
  marks.push_back(device.make_event(true));
  for (int i = 0; i <= runs; ++i) {  // the first run loads lazily and does not count
    stream.record(*marks[0]);
    for (size_t s = 0; s < times.size(); ++s) {
      program.run(run, s, s + 1);
      stream.record(*marks[s + 1]);
    }
    marks.back()->synchronize();
    for (size_t s = 0; s < times.size() && i > 0; ++s) {
      times[s].ms += marks[s + 1]->elapsed_ms(*marks[s]) / runs;
    }
  }
  return times;
}

namespace {

class Counter {
 public:
  void add(const std::string& step, int64_t bytes) {
    auto found = std::ranges::find(counted_, step, &DeviceTraffic::step);
    if (found == counted_.end()) found = counted_.insert(found, DeviceTraffic{step, 0, 0});
    ++found->count;
    found->bytes += bytes;
  }
  std::vector<DeviceTraffic> take() { return std::move(counted_); }

 private:
  std::vector<DeviceTraffic> counted_;
};

int64_t input_bytes(const ExecutionPlan& plan, const PlanOptions& options) {
  const NodeShape& shape = plan.nodes[0].shape;
  const int64_t pixels = static_cast<int64_t>(options.rows) * shape.height * shape.width;
  return pixels * (3 + shape.channels * bytes_of(options.precision));
}

int64_t convolution_weights(const GradientLayout& layout) {
  int64_t count = 0;
  for (const TensorChunk& chunk : layout.chunks(kChunkNumbers, true)) count += chunk.count;
  return count;
}

}  // namespace

std::vector<DeviceTraffic> planned_traffic(const NetSpec& net, const EngineOptions& options,
                                           const DeviceTuning& tuning) {
  constexpr int64_t kBf16 = 2;
  const GradientLayout layout(net, device_fusion(tuning));
  const PlanOptions planned = plan_options(options, device_fusion(tuning), true);
  const ExecutionPlan plan = build_device_program(net, planned, tuning, layout, nullptr).plan;
  const TensorPrecisions held = tensor_precisions(options.precision, kDevicePrecision);
  const int64_t buffer = layout.numbers() * kFloat;
  const int micro_batches = options.rows / options.micro_batch_size;
  Counter counter;
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    counter.add("input", input_bytes(plan, planned));
    for (const PlanStep& step : plan.steps) counter.add(step.name, step.bytes);
    if (held.convolution_gradients == Precision::bf16) {
      counter.add("cast_to_fp32", convolution_weights(layout) * (kBf16 + kFloat));
    }
    // The first micro-batch's buffer is copied; those of the others are added to it.
    if (micro_batches > 1) counter.add("add_micro_batch", (micro_batch == 0 ? 2 : 3) * buffer);
  }
  // The update reads the sums to check that they are finite. Then it reads gradient, weight and
  // momentum, and writes weight, momentum and the weights' bf16 copy; Adam also reads and writes
  // the second moment. Norms read gradients, and weights for LARS.
  const int64_t numbers = layout.parameter_numbers();
  const int64_t copies = held.activations == Precision::bf16 ? kBf16 : 0;
  const int64_t floats = has_second_moments(options.optimizer) ? 7 : 5;
  counter.add("update", buffer + numbers * (floats * kFloat + copies));
  if (needs_norms(options)) {
    const int64_t read = options.optimizer == OptimizerKind::lars ? 2 : 1;
    counter.add("norms", read * numbers * kFloat);
  }
  return counter.take();
}

}  // namespace stoker
