#include "staging/cuda_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace stoker {
namespace {

// The driver's C interface, declared here because its header is part of the CUDA toolkit, which
// need not be installed for this build.
constexpr int kSuccess = 0;
constexpr int kStubLibrary = 34;
constexpr int kNoDevice = 100;
constexpr int kMultiprocessorCount = 16;
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;

struct Uuid {
  std::array<unsigned char, 16> bytes;
};

struct DriverCalls {
  int (*init)(unsigned flags) = nullptr;
  int (*error_name)(int error, const char** name) = nullptr;
  int (*error_string)(int error, const char** text) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*device_memory)(size_t* bytes, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_bus_id)(char* bus_id, int length, int device) = nullptr;
  int (*device_uuid)(Uuid* uuid, int device) = nullptr;
};

template <typename Function>
void find_driver_call(void* library, const char* name, Function*& function, std::string& missing) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

// Returns the name of the first function that the library lacks; "" if it has all.
std::string find_calls(void* library, DriverCalls& calls) {
  std::string missing;
  find_driver_call(library, "cuInit", calls.init, missing);
  find_driver_call(library, "cuGetErrorName", calls.error_name, missing);
  find_driver_call(library, "cuGetErrorString", calls.error_string, missing);
  find_driver_call(library, "cuDriverGetVersion", calls.driver_version, missing);
  find_driver_call(library, "cuDeviceGetCount", calls.device_count, missing);
  find_driver_call(library, "cuDeviceGet", calls.device, missing);
  find_driver_call(library, "cuDeviceGetName", calls.device_name, missing);
  find_driver_call(library, "cuDeviceTotalMem_v2", calls.device_memory, missing);
  find_driver_call(library, "cuDeviceGetAttribute", calls.device_attribute, missing);
  find_driver_call(library, "cuDeviceGetPCIBusId", calls.device_bus_id, missing);
  find_driver_call(library, "cuDeviceGetUuid_v2", calls.device_uuid, missing);
  return missing;
}

std::string error_text(const DriverCalls& calls, int error) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (calls.error_name(error, &name) != kSuccess || name == nullptr) name = "unknown error";
  if (calls.error_string(error, &text) != kSuccess || text == nullptr) text = "no description";
  return std::string(name) + " (" + std::to_string(error) + "): " + text;
}

std::string no_device_text() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "the NVIDIA driver finds no GPU";
  return std::string("no GPU is visible with CUDA_VISIBLE_DEVICES=\"") + visible + "\"";
}

std::string uuid_text(const Uuid& uuid, bool is_part) {
  std::string text = is_part ? "MIG" : "GPU";
  for (size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", uuid.bytes[i]);
    text += hex.data();
  }
  return text;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

int attribute(const DriverCalls& calls, int which, int device) {
  int value = 0;
  return calls.device_attribute(&value, which, device) == kSuccess ? value : 0;
}

// Fields that the driver does not report stay empty; only a missing device is an error.
int read_device(const DriverCalls& calls, int ordinal, CudaDeviceInfo& info) {
  int device = 0;
  const int error = calls.device(&device, ordinal);
  if (error != kSuccess) return error;
  info.name = "cuda:" + std::to_string(ordinal);
  std::array<char, 256> text{};
  if (calls.device_name(text.data(), static_cast<int>(text.size()) - 1, device) == kSuccess) {
    info.model = text.data();
  }
  text.fill('\0');
  if (calls.device_bus_id(text.data(), static_cast<int>(text.size()) - 1, device) == kSuccess) {
    info.pci_bus_id = lower(text.data());
  }
  Uuid uuid{};
  if (calls.device_uuid(&uuid, device) == kSuccess) {
    info.uuid = uuid_text(uuid, info.model.find(" MIG ") != std::string::npos);
  }
  size_t bytes = 0;
  if (calls.device_memory(&bytes, device) == kSuccess) {
    info.memory_bytes = static_cast<int64_t>(bytes);
  }
  info.compute_major = attribute(calls, kComputeCapabilityMajor, device);
  info.compute_minor = attribute(calls, kComputeCapabilityMinor, device);
  info.multiprocessors = attribute(calls, kMultiprocessorCount, device);
  info.numa_node = numa_node_of(info.pci_bus_id);
  return kSuccess;
}

std::string start_problem(const DriverCalls& calls, const std::string& library, int error) {
  if (error == kNoDevice) return no_device_text();
  if (error == kStubLibrary) return library + " is the CUDA toolkit's stub, not an NVIDIA driver";
  return "the NVIDIA driver does not start: " + error_text(calls, error);
}

}  // namespace

CudaStatus query_driver(const std::string& library) {
  CudaStatus status;
  // The library is never closed, because the driver keeps threads.
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    status.problem = std::string("no NVIDIA driver (") + dlerror() + ")";
    return status;
  }
  DriverCalls calls;
  if (const std::string missing = find_calls(handle, calls); !missing.empty()) {
    status.problem = library + " is no usable NVIDIA driver: it has no " + missing;
    return status;
  }
  int count = 0;
  int error = calls.init(0);
  if (calls.driver_version(&status.driver_version) != kSuccess) status.driver_version = 0;
  if (error == kSuccess) error = calls.device_count(&count);
  if (error == kSuccess && count == 0) error = kNoDevice;
  for (int ordinal = 0; error == kSuccess && ordinal < count; ++ordinal) {
    CudaDeviceInfo info;
    error = read_device(calls, ordinal, info);
    if (error == kSuccess) status.devices.push_back(std::move(info));
  }
  if (error != kSuccess) status.problem = start_problem(calls, library, error);
  return status;
}

int numa_node_of(const std::string& pci_bus_id, const std::string& devices_folder) {
  std::ifstream file(devices_folder + "/" + pci_bus_id + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

}  // namespace stoker
