// A device engine's weights and other states in device memory: the masters that updates write, the
// copies that convolutions read, and transfers to the host and back. Owner: DeviceEngine. Threads:
// the engine's. read(), write() and to_device() block; everything else is queued.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/device/memory.h"

namespace stoker {

class DeviceStateStore {
 public:
  // All references must outlive it. Statistics start at mean 0 and variance 1, everything else at
  // 0.
  DeviceStateStore(const NetSpec& net, const EngineOptions& options, const GradientLayout& layout,
                   const DeviceEngineMemory& memory, Device& device, Stream& stream,
                   DeviceOps& ops);

  // Before make_average() the averages are the current parameters and statistics.
  float* at(StateKind kind) const;
  // Returns the weights that convolutions and head read; load_weights() updates them.
  const std::byte* weights(bool averaged) const;
  void load_weights(bool averaged);
  void update_queued();  // call it after an update, which also writes the parameters' copies
  void make_average();   // makes the averages separate states
  void blend_average(float decay, bool pull);

  void read(StateKind kind, std::span<float> values) const;
  void write(StateKind kind, std::span<const float> values);
  std::span<const float> values(StateKind kind) const;  // on the device, with padding
  void copy(StateKind kind, std::span<const float> from);
  void to_device(const void* host, void* device, int64_t bytes) const;

 private:
  // Which weights the bf16 copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  void to_host(const void* device, void* host, int64_t bytes) const;
  int64_t held(StateKind kind) const;  // number of values, without padding

  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const GradientLayout& layout_;
  const DeviceEngineMemory& memory_;
  Device& device_;
  Stream& stream_;
  DeviceOps& ops_;
  std::unique_ptr<Memory> average_;   // parameters, then statistics
  std::unique_ptr<Memory> transfer_;  // pinned; states are copied through it in pieces
  Loaded loaded_ = Loaded::nothing;
};

}  // namespace stoker
