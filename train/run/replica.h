// A replica is a device and the engine on it. This header also parses the text of --devices.
// Threads: any. Errors: std::invalid_argument with the text; std::runtime_error with one line that
// says why a GPU cannot be used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

struct Replica {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

// Parses "cpu:2" (two replicas that share the cores), "cuda:all", "cuda:0,1" or "cuda:0*2" (two
// replicas on one GPU). Returns the devices' names, one per replica of this process. GPUs are
// divided among the processes on this machine, unless there are fewer GPUs than processes: then the
// launcher has already done so.
std::vector<std::string> parse_devices(const std::string& text, int local_rank = 0,
                                       int local_world = 1);

bool is_gpu(const std::string& device_name);
bool on_gpus(const std::vector<std::string>& devices);  // throws if only some are

// Create the CPU engine for a host device and the CUDA engine for a GPU.
std::unique_ptr<Engine> make_engine_on(Device& device, const NetSpec& net,
                                       const EngineOptions& options);
Replica make_replica(const std::string& device_name, const NetSpec& net,
                     const EngineOptions& options);

}  // namespace stoker
