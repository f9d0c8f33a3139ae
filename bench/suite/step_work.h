// What happens between two batches on a device: an emulated step of a given length, or a model's
// own training step. The work is queued on one stream, on which batches are leased. Threads: one.
// Errors: those of the engines.
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

// On a host device the stream sleeps. On others the stream runs as many kernels that copy device
// memory as fill the time. The device outlives the step, here and below.
std::unique_ptr<StepWork> make_emulated_step(Device& device, double milliseconds);

// Forward, backward and update of a model on 10 classes, batch norm over the whole batch, bf16
// where the device has it: the CUDA engine, or on a host device the CPU engine (on the stream's
// thread).
std::unique_ptr<StepWork> make_model_step(Device& device, const std::string& model,
                                          const BatchShape& shape);

}  // namespace stoker
