// Where a device engine's step spends its time.
#include "train/device/engine.h"
#include "train/engine/engine_arguments.h"

namespace stoker {
namespace {

// Of a convolution's step; 0 for others.
double flops_of(const NetSpec& net, const DeviceTape& tape, const DeviceStep& step, int rows) {
  const DeviceNode& node = tape.nodes[step.node];
  const std::string name = step.name;
  if (name != "conv" && name != "conv_data" && name != "conv_weights") return 0;
  const int kernel = net.nodes[node.node].kernel;
  return 2.0 * rows * node.shape.height * node.shape.width * node.shape.channels * kernel * kernel *
         tape.nodes[node.input].shape.channels;
}

}  // namespace

std::vector<DeviceStepTime> DeviceEngine::profile(int runs) {
  require_training(options_, "profile");
  load_weights(false);
  DeviceRun run = run_of(training_, false);
  run.labels = memory_->at<int32_t>(DevicePiece::row_labels);
  run.row_weights = memory_->at<float>(DevicePiece::row_weights);
  run.mix = memory_->at<DeviceMix>(DevicePiece::mix);
  run.part = part_;
  run.narrow_gradients = memory_->at(DevicePiece::narrow_gradients);
  std::vector<std::unique_ptr<Event>> marks;
  std::vector<DeviceStepTime> times;
  for (const DeviceStep& step : training_.steps) {
    const DeviceNode& node = training_.nodes[step.node];
    times.push_back({step.name, net_.nodes[node.node].name, node.shape,
                     flops_of(net_, training_, step, options_.micro_batch_rows), step.bytes, 0});
    marks.push_back(device_.make_event(true));
  }
  marks.push_back(device_.make_event(true));
  for (int i = 0; i <= runs; ++i) {  // the first loads what is loaded lazily
    stream_->record(*marks[0]);
    for (size_t s = 0; s < training_.steps.size(); ++s) {
      if (!training_.steps[s].left_out) training_.steps[s].run(run);
      stream_->record(*marks[s + 1]);
    }
    marks.back()->synchronize();
    for (size_t s = 0; s < times.size() && i > 0; ++s) {
      times[s].ms += marks[s + 1]->elapsed_ms(*marks[s]) / runs;
    }
  }
  return times;
}

}  // namespace stoker
