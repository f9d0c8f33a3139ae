#include "tools/machine/gpu_figures.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <optional>

namespace stoker {
namespace {

// Values of nvmlClockType_t and nvmlPcieUtilCounter_t.
constexpr int kSmClock = 1;
constexpr int kPcieFromGpu = 0, kPcieToGpu = 1;  // "TX" and "RX", as the GPU sees it
constexpr int64_t kKilobyte = 1024;

int clock_of(int (*call)(void*, int, unsigned*), void* gpu) {
  unsigned mhz = 0;
  return call(gpu, kSmClock, &mhz) == kNvmlSuccess ? static_cast<int>(mhz) : -1;
}

}  // namespace

struct GpuMonitor::Impl {
  // nvmlUtilization_t and nvmlMemory_t.
  struct Utilization {
    unsigned gpu = 0, memory = 0;
  };
  struct Memory {
    unsigned long long total = 0, free = 0, used = 0;
  };
  struct Calls {
    int (*count)(unsigned*) = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    int (*handle_on_bus)(const char*, void**) = nullptr;
    int (*index)(void*, unsigned*) = nullptr;
    int (*name)(void*, char*, unsigned) = nullptr;
    int (*utilization)(void*, Utilization*) = nullptr;
    int (*memory)(void*, Memory*) = nullptr;
    int (*clock)(void*, int, unsigned*) = nullptr;
    int (*clock_max)(void*, int, unsigned*) = nullptr;
    int (*pcie)(void*, int, unsigned*) = nullptr;  // KB/s, over the last 20 ms
  };

  static bool find_calls(const NvmlLibrary& library, Calls& calls) {
    return library.find("nvmlDeviceGetCount_v2", calls.count) &&
           library.find("nvmlDeviceGetHandleByIndex_v2", calls.handle) &&
           library.find("nvmlDeviceGetHandleByPciBusId_v2", calls.handle_on_bus) &&
           library.find("nvmlDeviceGetIndex", calls.index) &&
           library.find("nvmlDeviceGetName", calls.name) &&
           library.find("nvmlDeviceGetUtilizationRates", calls.utilization) &&
           library.find("nvmlDeviceGetMemoryInfo", calls.memory) &&
           library.find("nvmlDeviceGetClockInfo", calls.clock) &&
           library.find("nvmlDeviceGetMaxClockInfo", calls.clock_max) &&
           library.find("nvmlDeviceGetPcieThroughput", calls.pcie);
  }

  Impl(const std::string& file, const std::string& driver_file)
      : driver(driver_file), library(file), works(library.start(find_calls(library, calls))) {}

  // Returns CUDA's names by NVML's index. All MIG parts of a GPU have its bus id; the GPU gets the
  // first one's name.
  std::map<unsigned, std::string> find_cuda_names() const {
    std::map<unsigned, std::string> names;
    for (const CudaDeviceInfo& device : query_driver(driver).devices) {
      void* gpu = nullptr;
      unsigned index = 0;
      if (calls.handle_on_bus(device.pci_bus_id.c_str(), &gpu) == kNvmlSuccess &&
          calls.index(gpu, &index) == kNvmlSuccess) {
        names.emplace(index, device.name);
      }
    }
    return names;
  }

  GpuFigures read(unsigned index, void* gpu) {
    if (!cuda_names) cuda_names = find_cuda_names();
    GpuFigures figures{.index = static_cast<int>(index)};
    if (const auto found = cuda_names->find(index); found != cuda_names->end()) {
      figures.cuda = found->second;
    }
    std::array<char, 96> name{};
    if (calls.name(gpu, name.data(), name.size() - 1) == kNvmlSuccess) figures.name = name.data();
    Utilization use;
    if (calls.utilization(gpu, &use) == kNvmlSuccess)
      figures.busy_percent = static_cast<int>(use.gpu);
    Memory memory;
    if (calls.memory(gpu, &memory) == kNvmlSuccess) {
      figures.memory_used_bytes = static_cast<int64_t>(memory.used);
      figures.memory_bytes = static_cast<int64_t>(memory.total);
    }
    figures.sm_clock_mhz = clock_of(calls.clock, gpu);
    figures.sm_clock_max_mhz = clock_of(calls.clock_max, gpu);
    figures.pcie_to_gpu_bytes_per_second = pcie(gpu, kPcieToGpu);
    figures.pcie_from_gpu_bytes_per_second = pcie(gpu, kPcieFromGpu);
    return figures;
  }
  int64_t pcie(void* gpu, int counter) const {
    unsigned kilobytes = 0;
    return calls.pcie(gpu, counter, &kilobytes) == kNvmlSuccess ? kilobytes * kKilobyte : -1;
  }

  const std::string driver;
  Calls calls;
  NvmlLibrary library;
  const bool works;
  std::optional<std::map<unsigned, std::string>> cuda_names;  // set when a GPU is first read
};

GpuMonitor::GpuMonitor(const std::string& library, const std::string& driver)
    : impl_(std::make_unique<Impl>(library, driver)) {}
GpuMonitor::~GpuMonitor() = default;
const std::string& GpuMonitor::why_not() const { return impl_->library.why_not(); }

std::vector<GpuFigures> GpuMonitor::read() {
  std::vector<GpuFigures> all;
  unsigned count = 0;
  if (!impl_->works || impl_->calls.count(&count) != kNvmlSuccess) return all;
  for (unsigned i = 0; i < count; ++i) {
    void* gpu = nullptr;
    if (impl_->calls.handle(i, &gpu) == kNvmlSuccess) all.push_back(impl_->read(i, gpu));
  }
  return all;
}

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
