#include "tools/profile/gpu_load.h"

#include <algorithm>
#include <map>

namespace stoker {
namespace {

constexpr double kPercent = 0.01;

// Statistics of the values that are known (not -1).
class Known {
 public:
  void add(double value) {
    if (value < 0) return;
    least_ = count_ == 0 ? value : std::min(least_, value);
    most_ = std::max(most_, value);
    sum_ += value;
    ++count_;
  }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : -1; }
  double least() const { return least_; }
  double most() const { return most_; }

 private:
  double sum_ = 0, least_ = -1, most_ = -1;
  int64_t count_ = 0;
};

struct Readings {
  GpuLoad load;
  Known busy, clock, to_gpu, from_gpu;

  void add(const GpuFigures& gpu) {
    load.index = gpu.index;
    load.cuda = gpu.cuda;
    load.name = gpu.name;
    ++load.readings;
    busy.add(kPercent * gpu.busy_percent);
    clock.add(gpu.sm_clock_mhz);
    load.sm_clock_max_mhz = std::max<double>(load.sm_clock_max_mhz, gpu.sm_clock_max_mhz);
    load.memory_used_bytes = std::max(load.memory_used_bytes, gpu.memory_used_bytes);
    load.memory_bytes = std::max(load.memory_bytes, gpu.memory_bytes);
    to_gpu.add(static_cast<double>(gpu.pcie_to_gpu_bytes_per_second));
    from_gpu.add(static_cast<double>(gpu.pcie_from_gpu_bytes_per_second));
  }
  GpuLoad finish() const {
    GpuLoad result = load;
    result.busy_mean = busy.mean();
    result.busy_least = busy.least();
    result.busy_most = busy.most();
    result.sm_clock_mhz = clock.mean();
    result.pcie_to_gpu_bytes_per_second = to_gpu.mean();
    result.pcie_from_gpu_bytes_per_second = from_gpu.mean();
    return result;
  }
};

bool inside(const GpuReading& reading, const std::vector<PhaseWindow>& windows) {
  return std::any_of(windows.begin(), windows.end(), [&](const PhaseWindow& window) {
    return reading.begin_ns >= window.begin_ns && reading.end_ns <= window.end_ns;
  });
}

}  // namespace

std::vector<GpuLoad> gpu_loads(const ProfiledRun& run, const std::vector<PhaseWindow>& windows) {
  std::map<int, Readings> gpus;
  for (const GpuReading& reading : run.gpus.readings) {
    if (!inside(reading, windows)) continue;
    for (const GpuFigures& gpu : reading.gpus) gpus[gpu.index].add(gpu);
  }
  std::vector<GpuLoad> result;
  for (const auto& [index, readings] : gpus) result.push_back(readings.finish());
  return result;
}

}  // namespace stoker
