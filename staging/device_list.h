// Which devices this process can use, and how to open one by its name. GPUs are counted through the
// driver, which is opened at run time, and no context is created on any of them; what drives them
// is a plugin (libstoker_cuda.so), also opened at run time: a program built with CUDA starts
// without a driver, and one built without says so. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "staging/device.h"

namespace stoker {

struct CudaDeviceInfo {
  std::string name;   // "cuda:0"; the number counts what CUDA_VISIBLE_DEVICES leaves
  std::string model;  // "NVIDIA H200"
  std::string uuid;   // "GPU-..." or, for a part of a GPU, "MIG-..."; "" if the driver does not say
  std::string pci_bus_id;    // "0000:3b:00.0"
  int64_t memory_bytes = 0;  // all of it, used or not
  int compute_major = 0;     // compute capability
  int compute_minor = 0;
  int multiprocessors = 0;
  int numa_node = -1;  // of the machine's memory nearest to it; -1: not known, or there is only one
};

struct CudaStatus {
  // What CUDA_VISIBLE_DEVICES leaves, in its order. Filled even where this build cannot use them.
  std::vector<CudaDeviceInfo> devices;
  int driver_version = 0;  // of CUDA, as the driver counts: 13000 is 13.0; 0: no driver
  std::string problem;     // why no GPU can be used, in one line; "" if they can
};

// Starts the driver (cuInit: a process that forks later cannot use CUDA in the child).
CudaStatus query_cuda();

// Throws std::runtime_error with one line that says why not: CudaStatus::problem, or an ordinal
// that does not exist.
std::unique_ptr<Device> make_cuda_device(int ordinal);

// "cpu:0", "cuda:1". Throws std::invalid_argument for other names, and as make_cuda_device does.
std::unique_ptr<Device> make_device(std::string_view name);

}  // namespace stoker
