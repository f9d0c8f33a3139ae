#include "tests/support/fake_device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

namespace stoker::testing {
namespace {

constexpr int kMaxPieces = 16;

// splitmix64: enough for delays.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

void sleep_us(int us) {
  if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void sleep_up_to_us(uint64_t& random, int us) {
  if (us > 0) sleep_us(static_cast<int>(next_random(random) % static_cast<uint64_t>(us + 1)));
}

}  // namespace

class FakeDevice::FakeMemory final : public Memory {
 public:
  FakeMemory(FakeDevice& device, std::unique_ptr<Memory> memory)
      : device_(device), memory_(std::move(memory)) {
    std::memset(memory_->data(), kFresh, memory_->size_bytes());
  }
  ~FakeMemory() override {
    std::memset(memory_->data(), kFreed, memory_->size_bytes());
    std::lock_guard lock(device_.mutex_);
    device_.freed_.push_back(std::move(memory_));
  }
  std::byte* data() override { return memory_->data(); }
  size_t size_bytes() const override { return memory_->size_bytes(); }

 private:
  FakeDevice& device_;
  std::unique_ptr<Memory> memory_;
};

class FakeDevice::FakeStream final : public Stream {
 public:
  FakeStream(FakeDevice& device, uint64_t seed)
      : device_(device), random_(seed), stream_(device.host_->make_stream()) {}

  void copy(void* target, const void* source, size_t bytes, CopyKind) override {
    device_.operation();
    uint64_t random = next_random(random_);
    stream_->call([this, target, source, bytes, random] {
      copy_late(static_cast<std::byte*>(target), static_cast<const std::byte*>(source), bytes,
                random);
    });
  }

  void record(Event& event) override {
    device_.operation();
    delay();
    stream_->record(event);
  }

  void wait(const Event& event) override {
    device_.operation();
    stream_->wait(event);
  }

  void call(std::function<void()> function) override {
    device_.operation();
    stream_->call(std::move(function));
  }

  void synchronize() override {
    stream_->synchronize();
    device_.operation();
  }

 private:
  void delay() {
    uint64_t random = next_random(random_);
    stream_->call(
        [this, random]() mutable { sleep_up_to_us(random, device_.options_.max_delay_us); });
  }

  void copy_late(std::byte* target, const std::byte* source, size_t bytes, uint64_t random) {
    const FakeDeviceOptions& options = device_.options_;
    std::memset(target, kFresh, bytes);
    device_.wait_while_held();
    sleep_us(options.copy_us);
    size_t pieces = static_cast<size_t>(std::clamp(options.pieces, 1, kMaxPieces));
    std::array<size_t, kMaxPieces> order{};
    for (size_t i = 0; i < pieces; ++i) {  // a shuffle from the inside out
      size_t j = next_random(random) % (i + 1);
      order[i] = order[j];
      order[j] = i;
    }
    for (size_t i = 0; i < pieces; ++i) {
      sleep_up_to_us(random, options.max_delay_us);
      size_t begin = bytes * order[i] / pieces;
      size_t end = bytes * (order[i] + 1) / pieces;
      std::memcpy(target + begin, source + begin, end - begin);
    }
    device_.copies_.fetch_add(1);
  }

  FakeDevice& device_;
  uint64_t random_;
  std::unique_ptr<Stream> stream_;  // last: its work uses all of the above
};

FakeDevice::FakeDevice(const FakeDeviceOptions& options)
    : options_(options), host_(make_host_device()) {}

FakeDevice::~FakeDevice() = default;

std::unique_ptr<Memory> FakeDevice::allocate(size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::pinned) {
    ++pinned_allocations_;
    pinned_bytes_ += static_cast<int64_t>(bytes);
  }
  return std::make_unique<FakeMemory>(*this, host_->allocate(bytes, kind));
}

std::unique_ptr<Stream> FakeDevice::make_stream() {
  return std::make_unique<FakeStream>(*this, options_.seed * 1000 + streams_.fetch_add(1));
}

std::unique_ptr<Event> FakeDevice::make_event(bool timing) { return host_->make_event(timing); }

void FakeDevice::hold_copies() {
  std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeDevice::let_copies_go() {
  {
    std::lock_guard lock(mutex_);
    held_ = false;
  }
  let_go_.notify_all();
}

void FakeDevice::wait_while_held() {
  std::unique_lock lock(mutex_);
  let_go_.wait(lock, [this] { return !held_; });
}

int64_t FakeDevice::bytes_written_after_free() const {
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& memory : freed_) {
    const std::byte* data = memory->data();
    bytes += std::count_if(data, data + memory->size_bytes(),
                           [](std::byte value) { return value != std::byte{kFreed}; });
  }
  return bytes;
}

void FakeDevice::operation() {
  if (options_.operations_left < 0) return;
  if (operations_.fetch_add(1) >= options_.operations_left) {
    throw std::runtime_error(name() + ": the device has failed");
  }
}

}  // namespace stoker::testing
