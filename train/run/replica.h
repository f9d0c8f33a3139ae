// A replica is a device and the engine on it; and what the text of --devices means. Threads: any.
// Errors: std::invalid_argument with the text; std::runtime_error with one line that says why a GPU
// cannot be used.
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

// "cpu:2": two replicas that share the cores; "cuda:all"; "cuda:0,1"; "cuda:0*2": two on one GPU.
// -> the devices' names, one per replica of this process. GPUs are dealt out among the processes on
// this machine, unless there are fewer of them than processes: then the launcher has done it.
std::vector<std::string> parse_devices(const std::string& text, int local_rank = 0,
                                       int local_world = 1);

bool is_gpu(const std::string& device_name);
bool on_gpus(const std::vector<std::string>& devices);  // throws if only some are

// A host device gets the CPU engine, a GPU the CUDA engine.
Replica make_replica(const std::string& device_name, const NetSpec& net,
                     const EngineOptions& options);

}  // namespace stoker
