// The NVIDIA driver, as far as listing devices needs it: libcuda.so.1, opened at run time, never
// linked. Creates no context. Threads: any.
#pragma once

#include <string>

#include "staging/device_list.h"

namespace stoker {

inline constexpr const char* kCudaDriver = "libcuda.so.1";

// `library` is the driver's file name or path. `problem` is empty when there is a device.
CudaStatus query_driver(const std::string& library = kCudaDriver);

// Returns the node of a device on the PCI bus ("0000:3b:00.0"), or -1 if it is unknown or the
// machine has only one.
int numa_node_of(const std::string& pci_bus_id,
                 const std::string& devices_folder = "/sys/bus/pci/devices");

}  // namespace stoker
