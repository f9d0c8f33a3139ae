// Builds a DeviceProgram: a device's operations for the steps of a plan. Layers with parameters
// have files of their own (*_steps.cc). Owner: build_device_program(). One thread.
#pragma once

#include <algorithm>
#include <memory>

#include "train/device/program.h"

namespace stoker {

class DevicePlanBuilder final : public KernelBuilder<DeviceRun> {
 public:
  DevicePlanBuilder(const NetSpec& net, const PlanOptions& options, const DeviceTuning& tuning,
                    const GradientLayout& layout, DeviceOps* ops, DeviceNormExchange* norms,
                    DeviceProgram& program)
      : KernelBuilder(net, options, layout, program),
        held_(tensor_precisions(options.precision, kDevicePrecision)),
        assumed_workspace_(tuning.workspace_limit),
        ops_(ops),
        norms_(options.training ? norms : nullptr),
        program_(program),
        layers_(nodes().size()),
        sums_(nodes().size(), -1) {}

  DeviceOps* ops() const { return ops_; }
  DeviceNormExchange* norms() const { return norms_; }  // null: norms meet nobody
  const TensorPrecisions& held() const { return held_; }
  int64_t assumed_workspace() const { return assumed_workspace_; }
  int64_t number_bytes() const { return bytes_of(held_.activations); }
  int64_t pixels(int index) const {  // rows * H * W
    const NodeShape& shape = node(index).shape;
    return static_cast<int64_t>(options().rows) * shape.height * shape.width;
  }
  int64_t count(int index) const { return pixels(index) * node(index).shape.channels; }
  int64_t value_bytes(int index) const override { return count(index) * number_bytes(); }

  int workspace(int64_t bytes) {  // -1 for 0 bytes
    program_.workspace_bytes = std::max(program_.workspace_bytes, bytes);
    return bytes > 0 ? new_buffer(bytes) : -1;
  }

  // The buffer of the sums over the pixels of a node's output, if the step that computes the output
  // also writes these; else -1.
  void define_sums(int index, int buffer) { sums_[index] = buffer; }
  int sums(int index) { return sums_[index] < 0 ? -1 : read(sums_[index]); }
  // Returns whether a batch norm is the only reader of the node's output.
  bool is_for_norm(int index) const {
    return node(index).readers == 1 && std::ranges::any_of(nodes(), [&](const FusedNode& reader) {
             return reader.kind == OpKind::batch_norm && reader.input == index;
           });
  }

 private:
  void activate(int index, int x, int y) override;
  void activate_back(int index, int seen, int dy, int dx) override;
  void add(int index, int a, int b, int y) override;
  void add_gradients(int index, int a, int b, int sum) override;
  void concat(int index, const std::vector<int>& parts, int y) override;
  void concat_back(int index, int part, int first, int dy, int dx) override;
  void dropout(const char* name, int index, int from, int to) override;
  void pool(int index, int x, int y) override;
  void pool_back(int index, int dy, int dx) override;
  void pad_channels(int index, int x, int y) override;
  void pad_channels_back(int index, int dy, int dx) override;
  void layer(int index) override;
  void layer_back(int index) override { layers_[index]->build_backward(*this); }

  PoolShape pool_shape(int index) const;
  PadShape pad_shape(int index) const;
  int64_t input_and_output_bytes(int index) const {
    return value_bytes(node(index).input) + value_bytes(index);
  }

  const TensorPrecisions held_;
  const int64_t assumed_workspace_;
  DeviceOps* const ops_;
  DeviceNormExchange* const norms_;
  DeviceProgram& program_;
  std::vector<std::unique_ptr<LayerSteps<DevicePlanBuilder>>> layers_;  // per node
  std::vector<int> sums_;                                               // per node: buffer
};

using DeviceSteps = LayerSteps<DevicePlanBuilder>;
std::unique_ptr<DeviceSteps> make_device_conv(int index);
std::unique_ptr<DeviceSteps> make_device_norm(int index);
std::unique_ptr<DeviceSteps> make_device_head(int index);  // linear, loss

}  // namespace stoker
