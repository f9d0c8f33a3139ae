// Lists the devices that this process can use and opens one by its name. GPUs are listed through
// the driver, which is opened at run time; that creates no context. A plugin (libstoker_cuda.so)
// drives them, which is also opened at run time: a program built with CUDA starts without a driver,
// and one built without CUDA reports that. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "staging/device.h"

namespace stoker {

struct CudaDeviceInfo {
  std::string name;          // "cuda:0"; counts the devices that CUDA_VISIBLE_DEVICES leaves
  std::string model;         // "NVIDIA H200"
  std::string uuid;          // "GPU-..." or, for a part of a GPU, "MIG-..."; "" if unknown
  std::string pci_bus_id;    // "0000:3b:00.0"
  int64_t memory_bytes = 0;  // all of it, used or not
  int compute_major = 0;     // compute capability
  int compute_minor = 0;
  int multiprocessors = 0;
  int numa_node = -1;  // the nearest node; -1: unknown, or there is only one
};

struct CudaStatus {
  // The devices that CUDA_VISIBLE_DEVICES leaves, in its order, even if this build cannot use them.
  std::vector<CudaDeviceInfo> devices;
  int driver_version = 0;  // CUDA version of the driver: 13000 is 13.0; 0: no driver
  std::string problem;     // why no GPU can be used, in one line; "" if they can
};

// Initialises the driver (cuInit: a process that forks later cannot use CUDA in the child).
CudaStatus query_cuda();

// Throws std::runtime_error with one line: CUDA's problem (CudaStatus::problem), or an ordinal that
// does not exist.
std::unique_ptr<Device> make_cuda_device(int ordinal);

// Opens "cpu:0" or "cuda:1". Throws std::invalid_argument for other names, and what
// make_cuda_device() throws.
std::unique_ptr<Device> make_device(std::string_view name);

}  // namespace stoker
