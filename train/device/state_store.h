// A device engine's weights and other states in the device's memory: what updates write, what the
// convolutions read, and the way of both to the host and back.
// Owner: DeviceEngine. Threads: the engine's. Read, write and the copies block; all else is queued.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/device/memory.h"

namespace stoker {

class DeviceStateStore {
 public:
  // All outlive it. Statistics start at mean 0 and variance 1, all else at 0.
  DeviceStateStore(const NetSpec& net, const EngineOptions& options, const GradientLayout& layout,
                   const DeviceEngineMemory& memory, Device& device, Stream& stream,
                   DeviceOps& ops);

  float* at(StateKind kind) const;  // until the first blend an average is what the net is
  // What the convolutions and the head read, as the last load_weights() left it.
  const std::byte* weights(bool averaged) const;
  void load_weights(bool averaged);
  void update_queued();  // an update was: it has written the copies of the parameters too
  void make_average();   // from now on the average is a state of its own
  void blend_average(float decay, bool pull);

  void read(StateKind kind, std::span<float> values) const;
  void write(StateKind kind, std::span<const float> values);
  void to_device(const void* host, void* device, int64_t bytes) const;

 private:
  // Which weights the bf16 copies hold.
  enum class Loaded : uint8_t { nothing, parameters, average };

  void to_host(const void* device, void* host, int64_t bytes) const;
  int64_t held(StateKind kind) const;  // numbers, without padding

  const EngineOptions options_;
  const std::vector<TensorInfo> parameter_table_, statistics_table_;
  const GradientLayout& layout_;
  const DeviceEngineMemory& memory_;
  Device& device_;
  Stream& stream_;
  DeviceOps& ops_;
  std::unique_ptr<Memory> average_;   // parameters, then statistics
  std::unique_ptr<Memory> transfer_;  // pinned: what states go through, piece by piece
  Loaded loaded_ = Loaded::nothing;
};

}  // namespace stoker
