#include "tools/machine/nvml_library.h"

#include <dlfcn.h>

namespace stoker {

NvmlLibrary::NvmlLibrary(const std::string& file)
    : file_(file), handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) why_not_ = "no NVIDIA driver: " + std::string(dlerror());
}

NvmlLibrary::~NvmlLibrary() {
  int (*shutdown)() = nullptr;
  if (started_ && find("nvmlShutdown", shutdown)) shutdown();
}

void* NvmlLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

bool NvmlLibrary::start(bool found) {
  if (handle_ == nullptr) return false;
  int (*init)() = nullptr;
  if (!found || !find("nvmlInit_v2", init)) {
    why_not_ = file_ + " is too old";
    return false;
  }
  const int code = init();
  started_ = code == kNvmlSuccess;
  if (!started_) why_not_ = file_ + ": nvmlInit failed with code " + std::to_string(code);
  return started_;
}

}  // namespace stoker
