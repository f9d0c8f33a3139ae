// libnvidia-ml.so.1 for the fake GPUs of fake_cuda_driver.cc: the second one's link has slowed
// down.
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  static int devices[2];
  if (std::strcmp(pci_bus_id, "0000:3a:00.0") == 0) return *device = &devices[0], 0;
  if (std::strcmp(pci_bus_id, "0000:3b:00.0") == 0) return *device = &devices[1], devices[1] = 1, 0;
  return 6;
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
  if (*static_cast<int*>(device) == 1) return 3;  // has none
  *is_active = link < 4 ? 1 : 0;
  return 0;
}
}
