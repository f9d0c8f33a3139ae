// The work between two batches on a device: an emulated step of a given length, or a model's own
// training step. It is queued on one stream, on which batches are leased. Threads: one. Errors:
// those of the engines.
#pragma once

#include <memory>
#include <string>

#include "staging/stager.h"

namespace stoker {

class StepWork {
 public:
  virtual ~StepWork() = default;
  virtual Stream& stream() = 0;
  virtual void queue(const DeviceBatch& batch) = 0;
  virtual std::string describe() const = 0;
};

// Makes a step whose stream sleeps on a host device. On other devices it runs as many kernels that
// copy device memory as fill the time. The device outlives the step, here and below.
std::unique_ptr<StepWork> make_emulated_step(Device& device, double milliseconds);

// Makes a step that runs forward, backward and update of a model with 10 classes: batch norm over
// the whole batch, bf16 where the device has it. It uses the CUDA engine, or on a host device the
// CPU engine (on the stream's thread).
std::unique_ptr<StepWork> make_model_step(Device& device, const std::string& model,
                                          const BatchShape& shape);

}  // namespace stoker
