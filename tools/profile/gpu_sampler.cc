#include "tools/profile/gpu_sampler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "staging/stage_stats.h"
#include "staging/threads.h"

namespace stoker {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

GpuSampler::GpuSampler(const std::string& library, const std::string& driver)
    : gpus_(library, driver) {
  readings_.no_gpus = gpus_.why_not();
  if (readings_.no_gpus.empty()) thread_ = start_thread("watching GPUs", [this] { watch(); });
}

GpuSampler::~GpuSampler() { stop(); }

GpuReadings GpuSampler::finish() {
  stop();
  return std::move(readings_);
}

void GpuSampler::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
  thread_.join();
}

void GpuSampler::watch() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    GpuReading reading;
    reading.begin_ns = steady_now_ns();
    reading.gpus = gpus_.read();
    reading.end_ns = steady_now_ns();
    if (reading.gpus.empty()) break;
    readings_.readings.push_back(std::move(reading));
    next = std::max(next + kInterval, std::chrono::steady_clock::now());
    MutexLock lock(mutex_);
    while (!ended_ && ended_changed_.wait_until(lock, next)) {
    }
    if (ended_) return;
  }
  if (readings_.readings.empty()) {
    readings_.no_gpus = "NVIDIA's management library lists no GPU";
  }
}

}  // namespace stoker
