// What a device engine allocates, all at construction: the plan, its table, and the allocation that
// says what it needs when it fails. Plans are pure; memory belongs to the engine, freed with it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "train/device/program.h"
#include "train/device/tuning.h"

namespace stoker {

// Pieces of a device engine's memory.
enum class DevicePiece : uint8_t {
  parameters,
  statistics,
  momenta,                // training, as all below but arena, weights and logits
  gradients,              // buffer of all micro-batches, then the reduced gradients
  micro_batch_gradients,  // buffer of one, where there are several
  bf16_gradients,         // of the convolutions, where they are computed so
  weights,                // bf16: as the convolutions read them
  row_labels,
  row_weights,
  logits,
  chunks,
  conv_chunks,
  statistic_channels,
  mix,
  rates,
  verdict,
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

// Of an engine with these programs (training may be empty).
DeviceEngineSizes device_engine_sizes(const EngineOptions& options, const GradientLayout& layout,
                                      const DeviceProgram& training,
                                      const DeviceProgram& evaluation);
// Of an engine that nobody makes: every convolution's workspace counts with its limit.
DeviceEngineSizes planned_device_sizes(const NetSpec& net, const EngineOptions& options,
                                       const DeviceTuning& tuning);
std::string describe(const DeviceEngineSizes& sizes);  // one line per part

// The most rows, a multiple of `step`, that `bytes` hold as one micro-batch; 0 if not even `step`
// rows.
int64_t largest_device_batch(const NetSpec& net, const EngineOptions& options,
                             const DeviceTuning& tuning, int64_t bytes, int64_t slot_bytes_per_row,
                             int step);

class DeviceEngineMemory {
 public:
  // Throws std::runtime_error: what was asked, what is free, the table, the largest batch.
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
