#include "bench/gpu_figures.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace stoker {
namespace {

constexpr int kSuccess = 0;
// Of nvmlClockType_t and nvmlPcieUtilCounter_t.
constexpr int kSmClock = 1;
constexpr int kPcieFromGpu = 0,
              kPcieToGpu = 1;  // "TX" and "RX", as the GPU sees it
constexpr int64_t kKilobyte = 1024;

// nvmlUtilization_t and nvmlMemory_t.
struct NvmlUtilization {
  unsigned gpu = 0, memory = 0;
};
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};

// NVML's C interface, declared here: its header is not in every toolkit.
struct Calls {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*utilization)(void*, NvmlUtilization*) = nullptr;
  int (*memory)(void*, NvmlMemory*) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*clock_max)(void*, int, unsigned*) = nullptr;
  int (*pcie)(void*, int, unsigned*) = nullptr;  // KB/s, over the last 20 ms
};

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool find_calls(void* library, Calls& calls) {
  return find(library, "nvmlInit_v2", calls.init) &&
         find(library, "nvmlShutdown", calls.shutdown) &&
         find(library, "nvmlDeviceGetCount_v2", calls.count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", calls.handle) &&
         find(library, "nvmlDeviceGetName", calls.name) &&
         find(library, "nvmlDeviceGetUtilizationRates", calls.utilization) &&
         find(library, "nvmlDeviceGetMemoryInfo", calls.memory) &&
         find(library, "nvmlDeviceGetClockInfo", calls.clock) &&
         find(library, "nvmlDeviceGetMaxClockInfo", calls.clock_max) &&
         find(library, "nvmlDeviceGetPcieThroughput", calls.pcie);
}

int clock_of(int (*call)(void*, int, unsigned*), void* gpu) {
  unsigned mhz = 0;
  return call(gpu, kSmClock, &mhz) == kSuccess ? static_cast<int>(mhz) : -1;
}

}  // namespace

struct GpuMonitor::Impl {
  explicit Impl(const std::string& library) {
    void* handle = dlopen(library.c_str(),
                          RTLD_NOW | RTLD_LOCAL);  // stays: as the driver does
    if (handle == nullptr) {
      why_not = "no NVIDIA driver: " + std::string(dlerror());
    } else if (!find_calls(handle, calls)) {
      why_not = library + " is too old";
    } else if (const int code = calls.init(); code != kSuccess) {
      why_not = fmt::format("{}: nvmlInit failed with code {}", library, code);
    } else {
      works = true;
    }
  }
  ~Impl() {
    if (works) calls.shutdown();
  }

  GpuFigures read(unsigned index, void* gpu) const {
    GpuFigures figures{.index = static_cast<int>(index)};
    std::array<char, 96> name{};
    if (calls.name(gpu, name.data(), name.size() - 1) == kSuccess) figures.name = name.data();
    NvmlUtilization use;
    if (calls.utilization(gpu, &use) == kSuccess) figures.busy_percent = static_cast<int>(use.gpu);
    NvmlMemory memory;
    if (calls.memory(gpu, &memory) == kSuccess) {
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
    return calls.pcie(gpu, counter, &kilobytes) == kSuccess ? kilobytes * kKilobyte : -1;
  }

  Calls calls;
  bool works = false;
  std::string why_not;
};

GpuMonitor::GpuMonitor(const std::string& library) : impl_(std::make_unique<Impl>(library)) {}
GpuMonitor::~GpuMonitor() = default;
const std::string& GpuMonitor::why_not() const { return impl_->why_not; }

std::vector<GpuFigures> GpuMonitor::read() {
  std::vector<GpuFigures> all;
  unsigned count = 0;
  if (!impl_->works || impl_->calls.count(&count) != kSuccess) return all;
  for (unsigned i = 0; i < count; ++i) {
    void* gpu = nullptr;
    if (impl_->calls.handle(i, &gpu) == kSuccess) all.push_back(impl_->read(i, gpu));
  }
  return all;
}

}  // namespace stoker
