// Builds a DeviceTape: values and gradients of nodes, their buffers' lifetimes, and the steps. The
// kinds of nodes (tape_*.cc) append their steps through it.
// Owner: build_device_tape(); lives only there. One thread.
// Time is the index of the next step: whoever names a buffer keeps it alive until then.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/device/tape.h"

namespace stoker {

class DeviceTapeBuilder {
 public:
  DeviceTapeBuilder(const NetSpec& net, const DeviceTapeOptions& options,
                    const DeviceLayout& layout, DeviceOps* ops, DeviceTape& tape);

  const DeviceTapeOptions& options() const { return options_; }
  const DeviceLayout& layout() const { return layout_; }
  DeviceOps* ops() const { return ops_; }
  const DeviceNode& node(int index) const { return tape_.nodes[index]; }
  const NetNode& spec(int index) const { return net_.nodes[tape_.nodes[index].node]; }
  int64_t number_bytes() const { return options_.precision == Precision::bf16 ? 2 : 4; }
  int64_t pixels(int index) const;  // rows * H * W
  int64_t count(int index) const { return pixels(index) * node(index).shape.channels; }
  int64_t bytes(int index) const { return count(index) * number_bytes(); }  // of its output

  int new_buffer(int64_t bytes);
  int use(int buffer);           // alive at this time; returns it
  int workspace(int64_t bytes);  // -1 for 0 bytes

  int define_value(int index);             // the output of a node
  int share_value(int index, int buffer);  // written over an older one
  int value(int index) { return use(values_[index]); }

  // Sums over the pixels of a node's output, left by who computes it: their buffer, or -1.
  void define_sums(int index, int buffer) { sums_[index] = buffer; }
  int sums(int index) { return sums_[index] < 0 ? -1 : use(sums_[index]); }
  // Is a batch norm all that reads the node's output?
  bool is_for_norm(int index) const;

  // The gradient of a node's output is the sum of what its readers left. take_gradient() gives it
  // as at most `most` buffers (adding up the others) to read at this time and release afterwards.
  bool wants_gradient(int index) const { return tape_.nodes[index].kind != OpKind::input; }
  std::vector<int> take_gradient(int index, size_t most);
  bool owned(int buffer) const { return sharers_[buffer] == 1; }  // may be written over
  int new_gradient(int index);                // a new buffer for a reader's contribution
  void pass_gradient(int index, int buffer);  // contributes a buffer that is also another's
  void release(int buffer) { --sharers_[buffer]; }

  // Steps. Those that follow are for this use of this node.
  void begin(int index, DeviceStepUse use, int tensor = -1);
  void append(const char* name, int64_t bytes, std::function<void(const DeviceRun&)> run);
  void note(const std::string& implementation);

 private:
  const NetSpec& net_;
  const DeviceTapeOptions options_;
  const DeviceLayout& layout_;
  DeviceOps* const ops_;
  DeviceTape& tape_;
  DeviceStep current_;
  std::vector<int> values_, sums_;               // per node: buffer
  std::vector<std::vector<int>> contributions_;  // per node: buffers
  std::vector<int> sharers_;                     // per buffer: contributions not yet released
};

// One node's share of the tape. build_backward follows build_forward after all later nodes'.
class DeviceTapeOp {
 public:
  virtual ~DeviceTapeOp() = default;
  virtual void build_forward(DeviceTapeBuilder& tape) = 0;
  virtual void build_backward(DeviceTapeBuilder& tape) = 0;
};

std::unique_ptr<DeviceTapeOp> make_device_conv(int index);
std::unique_ptr<DeviceTapeOp> make_device_norm(int index);
std::unique_ptr<DeviceTapeOp> make_device_activation(int index);  // relu, gelu
std::unique_ptr<DeviceTapeOp> make_device_add(int index);
std::unique_ptr<DeviceTapeOp> make_device_pool(int index);  // max, global average
std::unique_ptr<DeviceTapeOp> make_device_pad(int index);
std::unique_ptr<DeviceTapeOp> make_device_head(int index);  // linear, loss

}  // namespace stoker
