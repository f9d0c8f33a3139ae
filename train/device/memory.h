// The memory of a device engine, all allocated at construction: the plan, a table of it, and the
// allocation, which reports what it needs if it fails. Plans are pure; the engine owns the memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "train/device/program.h"
#include "train/device/tuning.h"
#include "train/engine/byte_text.h"

namespace stoker {

// Pieces of a device engine's memory.
enum class DevicePiece : uint8_t {
  parameters,
  statistics,
  momenta,                // training, like all below except arena, weights and logits
  second_moments,         // Adam
  tensor_squares,         // clipping and LARS: of chunks, then of tensors
  tensor_scales,          // clipping and LARS
  gradients,              // sum over the micro-batches, then the reduced gradients
  micro_batch_gradients,  // gradient buffer of one micro-batch, if several are added up
  bf16_gradients,         // of the convolutions, if they are computed in bf16
  weights,                // bf16: copies that the convolutions read
  row_labels,
  row_weights,
  row_mix_labels,
  row_mix_weights,
  row_targets,   // of a binary loss
  row_position,  // of the first row in the run
  logits,
  chunks,
  conv_chunks,
  statistic_channels,
  rates,
  check,
  decide_scratch,
  arena,
  count,
};

struct DeviceEngineSizes {
  int64_t bytes[static_cast<int>(DevicePiece::count)] = {};
  int64_t average_bytes = 0;    // if used
  int64_t workspace_bytes = 0;  // part of the arena

  int64_t& operator[](DevicePiece piece) { return bytes[static_cast<int>(piece)]; }
  int64_t operator[](DevicePiece piece) const { return bytes[static_cast<int>(piece)]; }
  int64_t allocated() const;  // without the average
  int64_t total() const { return allocated() + average_bytes; }
};

// Returns the sizes of an engine with these programs: `training` may be empty, and both are if no
// batches will come.
DeviceEngineSizes device_engine_sizes(const EngineOptions& options, const GradientLayout& layout,
                                      const DeviceProgram& training,
                                      const DeviceProgram& evaluation);
// Returns the sizes without creating an engine: every convolution's workspace is assumed to have
// the limit's size.
DeviceEngineSizes planned_device_sizes(const NetSpec& net, const EngineOptions& options,
                                       const DeviceTuning& tuning);
std::vector<MemoryLine> lines_of(const DeviceEngineSizes& sizes);  // by kind; all is total()

// Returns the largest number of rows, a multiple of `step`, that fits into `bytes` as one
// micro-batch; 0 if not even `step` rows fit. `slot_bytes_per_row` is for the feed's slots.
int64_t largest_device_batch(const NetSpec& net, const EngineOptions& options,
                             const DeviceTuning& tuning, int64_t bytes, int64_t slot_bytes_per_row,
                             int step);

// Returns the device memory that a parameter server of such replicas takes: its engine's, and the
// gradients that `others`, replicas on other devices, push to it.
int64_t device_server_bytes(const NetSpec& net, const EngineOptions& replica, int others);

class DeviceEngineMemory {
 public:
  // Throws std::runtime_error with the needed and the free bytes, the table and the largest batch.
  DeviceEngineMemory(const NetSpec& net, const EngineOptions& options, const DeviceTuning& tuning,
                     const DeviceEngineSizes& sizes, Device& device, const DeviceOps& ops);

  template <typename Number = std::byte>
  Number* at(DevicePiece piece) const {
    return reinterpret_cast<Number*>(memory_->data() + offsets_[static_cast<int>(piece)]);
  }
  const DeviceEngineSizes& sizes() const { return sizes_; }
  int64_t allocated() const { return static_cast<int64_t>(memory_->size_bytes()); }
  std::byte* data() const { return memory_->data(); }

 private:
  const DeviceEngineSizes sizes_;
  int64_t offsets_[static_cast<int>(DevicePiece::count)] = {};
  std::unique_ptr<Memory> memory_;
};

}  // namespace stoker
