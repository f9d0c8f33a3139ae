// A CUDA driver that does nothing and reports success, as far as cuDNN needs one to compile a
// kernel for a GPU that is only described. It cannot run anything.
#include "tests/support/idle_cuda_driver.h"

#include <atomic>

namespace {

std::atomic<int> loads{0};
char anything;  // the target of all handles

enum Attribute { kMultiprocessors = 16, kComputeMajor = 75 };

int give(void** handle) {
  *handle = &anything;
  return 0;
}

}  // namespace

extern "C" {

int idle_cuda_driver_loads() { return loads; }

int cuInit(unsigned) { return 0; }
int cuGetExportTable(const void**, const void*) { return 1; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_IDLE";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "idle";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == kComputeMajor ? 9 : attribute == kMultiprocessors ? 132 : 0;
  return 0;
}
int cuCtxGetCurrent(void** context) { return give(context); }
int cuLibraryLoadData(void** library) {
  ++loads;
  return give(library);
}
int cuLibraryGetKernel(void** kernel) { return give(kernel); }
int cuModuleLoadData(void** module) {
  ++loads;
  return give(module);
}
int cuModuleLoadDataEx(void** module) {
  ++loads;
  return give(module);
}
int cuModuleGetFunction(void** function) { return give(function); }
int cuKernelGetAttribute(int* value) {
  *value = 0;
  return 0;
}
int cuFuncGetAttribute(int* value) {
  *value = 0;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks) {
  *blocks = 1;
  return 0;
}
int cuOccupancyMaxPotentialClusterSize(int* size) {
  *size = 8;
  return 0;
}

// These must exist, but nothing uses what they return.
#define STOKER_IDLE(name) \
  int name() { return 0; }
STOKER_IDLE(cuCtxGetDevice)
STOKER_IDLE(cuCtxGetLimit)
STOKER_IDLE(cuCtxPopCurrent)
STOKER_IDLE(cuCtxPushCurrent)
STOKER_IDLE(cuDeviceGet)
STOKER_IDLE(cuDevicePrimaryCtxRelease)
STOKER_IDLE(cuDevicePrimaryCtxReset)
STOKER_IDLE(cuDevicePrimaryCtxRetain)
STOKER_IDLE(cuFuncSetAttribute)
STOKER_IDLE(cuKernelSetAttribute)
STOKER_IDLE(cuLaunchCooperativeKernel)
STOKER_IDLE(cuLaunchKernel)
STOKER_IDLE(cuLaunchKernelEx)
STOKER_IDLE(cuLibraryLoadFromFile)
STOKER_IDLE(cuLibraryUnload)
STOKER_IDLE(cuLinkAddData)
STOKER_IDLE(cuLinkAddData_v2)
STOKER_IDLE(cuLinkAddFile_v2)
STOKER_IDLE(cuLinkComplete)
STOKER_IDLE(cuLinkCreate)
STOKER_IDLE(cuLinkCreate_v2)
STOKER_IDLE(cuLinkDestroy)
STOKER_IDLE(cuMemcpyDtoH_v2)
STOKER_IDLE(cuModuleGetGlobal_v2)
STOKER_IDLE(cuModuleLoadFatBinary)
STOKER_IDLE(cuModuleUnload)
STOKER_IDLE(cuStreamGetCtx)
STOKER_IDLE(cuStreamSynchronize)
STOKER_IDLE(cuTensorMapEncodeTiled)
#undef STOKER_IDLE
}
