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

// Times what cuDNN can fuse with convolutions of these shapes on `device`, a CUDA device. This
// takes some seconds for each shape, mostly for cuDNN's compilation. Throws as make_cuda_engine()
// does.
std::vector<FusionTime> time_cuda_fusions(std::span<const ConvShape> shapes, Device& device,
                                          const DeviceTuning& tuning);

}  // namespace stoker
