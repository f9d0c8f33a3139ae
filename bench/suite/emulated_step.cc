#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/suite/step_work.h"

namespace stoker {
namespace {

// The number of bytes that one kernel copies.
constexpr size_t kKernelBytes = size_t{64} << 20;

class Sleep final : public StepWork {
 public:
  Sleep(Device& device, double milliseconds)
      : stream_(device.make_stream()), milliseconds_(milliseconds) {}

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    stream_->call([length = std::chrono::duration<double, std::milli>(milliseconds_)] {
      std::this_thread::sleep_for(length);
    });
  }
  std::string describe() const override { return "a sleep"; }

 private:
  const std::unique_ptr<Stream> stream_;
  const double milliseconds_;
};

class Kernels final : public StepWork {
 public:
  Kernels(Device& device, double milliseconds)
      : stream_(device.make_stream()),
        memory_(device.allocate(2 * kKernelBytes, MemoryKind::device)) {
    constexpr int kProbe = 20;
    const auto start = device.make_event(true), end = device.make_event(true);
    for (int pass = 0; pass < 2; ++pass) {  // the first one warms up
      stream_->record(*start);
      for (int i = 0; i < kProbe; ++i) kernel();
      stream_->record(*end);
      end->synchronize();
    }
    const double kernel_ms = end->elapsed_ms(*start) / kProbe;
    count_ = std::max(1, static_cast<int>(std::lround(milliseconds / kernel_ms)));
  }

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    for (int i = 0; i < count_; ++i) kernel();
  }
  std::string describe() const override {
    return std::to_string(count_) + " copies of device memory";
  }

 private:
  void kernel() {
    stream_->copy(memory_->data() + kKernelBytes, memory_->data(), kKernelBytes,
                  CopyKind::device_to_device);
  }

  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Memory> memory_;
  int count_ = 0;
};

}  // namespace

std::unique_ptr<StepWork> make_emulated_step(Device& device, double milliseconds) {
  if (device.cuda_ordinal() < 0) return std::make_unique<Sleep>(device, milliseconds);
  return std::make_unique<Kernels>(device, milliseconds);
}

}  // namespace stoker
