// libnvidia-ml.so.1 for the fake GPUs of fake_cuda_driver.cc: the second one's link has slowed
// down, and it does not report how busy it is.
#include <atomic>
#include <cstdio>
#include <cstring>

namespace {
int fake_devices[2] = {0, 1};
constexpr int kNotSupported = 3;
std::atomic<int> readings = 0;
std::atomic<int> energy_looks = 0;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  if (std::strcmp(pci_bus_id, "0000:3a:00.0") == 0) return *device = &fake_devices[0], 0;
  if (std::strcmp(pci_bus_id, "0000:3b:00.0") == 0) return *device = &fake_devices[1], 0;
  return 6;
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(*static_cast<int*>(device));
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* value) {
  *value = *static_cast<int*>(device) == 1 ? 1 : 5;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) {
  *value = 16;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) {
  *value = 5;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) {
  *value = 16;
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* is_active) {
  if (*static_cast<int*>(device) == 1) return kNotSupported;  // it has none
  *is_active = link < 4 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &fake_devices[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU");
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  if (*static_cast<int*>(device) == 1) return kNotSupported;
  ++readings;
  gpu_and_memory[0] = 87;
  gpu_and_memory[1] = 40;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = 70ull << 30;
  total_free_used[2] = 10ull << 30;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1755;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetPcieThroughput(void*, int counter, unsigned* kilobytes) {
  *kilobytes = counter == 1 ? 1000 : 20;
  return 0;
}
// The first one alone counts: 2 J more at every look.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (*static_cast<int*>(device) == 1) return kNotSupported;
  *millijoules = 5'000'000 + 2000ull * static_cast<unsigned>(energy_looks++);
  return 0;
}
// How often somebody has begun to read what the GPUs do.
int fake_nvml_readings() { return readings; }
}
