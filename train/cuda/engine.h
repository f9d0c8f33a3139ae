// The CUDA engine's door: no CUDA header behind it. The engine runs in a plugin that is opened when
// one is asked for, so that one program serves machines with and without the CUDA libraries.
// Threads: any. Errors: std::runtime_error with the library that is missing and why;
// std::invalid_argument with the numbers for options that do not fit; what is short of memory says
// what was asked, what holds the memory and the largest batch that fits.
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

// Why no CUDA engine can be made here; "" if one can (as far as is known without a device).
std::string cuda_engine_problem();

// An engine on `device` (a CUDA device, which outlives it). Its calls queue: see Engine::stream().
std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device);
std::unique_ptr<Engine> make_cuda_engine(const NetSpec& net, const EngineOptions& options,
                                         Device& device, const DeviceTuning& tuning);

// The most rows per device that `bytes` of device memory hold: a multiple of `step` rows, with
// micro_batch_rows = rows; 0 if not even `step` rows fit. `slot_bytes_per_row` is what the feed's
// slots take. Plans, allocates nothing.
int64_t largest_cuda_batch(const NetSpec& net, const EngineOptions& options, Device& device,
                           int64_t bytes, int64_t slot_bytes_per_row, int step = 8);

// Times what cuDNN can fuse with convolutions of these shapes on `device`, a CUDA device; some
// seconds for each shape, most of which cuDNN compiles. Throws as make_cuda_engine().
std::vector<FusionTime> time_cuda_fusions(std::span<const ConvShape> shapes, Device& device,
                                          const DeviceTuning& tuning);

}  // namespace stoker
