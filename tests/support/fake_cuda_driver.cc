// libcuda.so.1 of fake_cuda.h. A context is the address of a device's entry.
#include "tests/support/fake_cuda_driver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kMaxDevices = 8;
std::array<std::atomic<int>, kMaxDevices> contexts{};  // how often each was retained
thread_local std::vector<void*> current;
std::atomic<int> push_error{0};

int from_environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

int devices() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible == '\0') return 0;
  if (visible != nullptr)
    return 1 + static_cast<int>(std::count(visible, std::strchr(visible, 0), ','));
  return from_environment("FAKE_CUDA_DEVICES", 2);
}

// Returns the machine's number of a GPU, given the process's number.
int gpu_of(int device) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int skip = device; visible != nullptr && skip > 0; --skip)
    visible = std::strchr(visible, ',') + 1;
  return visible == nullptr ? device : std::atoi(visible);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (const int error = from_environment("FAKE_CUDA_INIT", 0)) return error;
  return devices() == 0 ? 100 : 0;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_FAKE";
  return 0;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == 802 ? "system not yet initialized" : "fake";
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = from_environment("FAKE_CUDA_DRIVER", 13000);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = devices();
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices() ? 0 : 101;
}

int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU %c", 'A' + gpu_of(device));
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = size_t{8} << (30 + gpu_of(device));
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int compute = from_environment("FAKE_CUDA_COMPUTE", 90);
  *value = attribute == 75 ? compute / 10 : attribute == 76 ? compute % 10 : 132;
  return 0;
}

int cuDeviceGetPCIBusId(char* bus_id, int length, int device) {
  std::snprintf(bus_id, static_cast<size_t>(length), "0000:%X:00.0", 0x3A + gpu_of(device));
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  std::memset(uuid, 0x10 * (gpu_of(device) + 1), 16);
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  contexts[static_cast<size_t>(device)].fetch_add(1);
  *context = &contexts[static_cast<size_t>(device)];
  return 0;
}

int cuCtxGetCurrent(void** context) {
  *context = current.empty() ? nullptr : current.back();
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  if (const int error = push_error.load()) return error;
  current.push_back(context);
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return 201;
  *context = current.back();
  current.pop_back();
  return 0;
}

int fake_cuda_driver_contexts() {
  int retained = 0;
  for (const auto& count : contexts) retained += count.load();
  return retained;
}

int fake_cuda_driver_device() {
  if (current.empty()) return -1;
  return static_cast<int>(static_cast<std::atomic<int>*>(current.back()) - contexts.data());
}

void fake_cuda_driver_refuse(int error) { push_error = error; }
}
