// Creates the CUDA engine, without CUDA headers. The engine uses a plugin that is opened when an
// engine is made, so one program works on machines with and without the CUDA libraries. Threads:
// any. Errors: std::runtime_error with the missing library and why; std::invalid_argument with the
// numbers for inconsistent options. Out-of-memory errors give the needed bytes, what needs them and
// the largest batch that fits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/device/ops.h"
#include "train/device/tuning.h"
#include "train/engine/engine.h"

namespace stoker {

// Returns why no CUDA engine can be made, or "" if it can (as far as known without a device).
std::string cuda_engine_problem();

// Make an engine on `device`, a CUDA device, which must outlive it. Its calls queue: see
// Engine::stream().
std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device);
std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device, const DeviceTuning& tuning);

// Returns the largest number of rows per device, a multiple of `step`, that fits into `bytes` of
// device memory with micro_batch_size = rows; 0 if not even `step` rows fit. `slot_bytes_per_row`
// is for the feed's slots. Allocates nothing.
int64_t largest_cuda_batch(const NetSpec& net, const EngineOptions& options, int64_t bytes,
                           int64_t slot_bytes_per_row, int step = 8);

// Returns the device memory that a parameter server of such replicas takes: its engine's, and the
// gradients that `others`, replicas on other devices, push to it. Allocates nothing.
int64_t cuda_server_bytes(const NetSpec& net, const EngineOptions& replica, int others);

// Times what cuDNN can fuse with convolutions of these shapes on `device`, a CUDA device. This
// takes some seconds for each shape, mostly for cuDNN's compilation. Throws as make_cuda_engine()
// does.
std::vector<FusionTime> time_cuda_fusions(std::span<const ConvShape> shapes, Device& device,
                                          const DeviceTuning& tuning);

}  // namespace stoker
