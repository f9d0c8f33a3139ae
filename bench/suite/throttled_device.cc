#include "bench/suite/throttled_device.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace stoker {
namespace {

// A piece is what the slowest link carries in so many seconds, and at least so many bytes: small,
// so that copies share links evenly, but worth a sleep.
constexpr double kPieceSeconds = 0.25e-3;
constexpr double kMinPiece = 64 << 10;

class ThrottledMemory final : public Memory {
 public:
  ThrottledMemory(ThrottledLinks& links, int gpu, std::unique_ptr<Memory> memory)
      : links_(links), memory_(std::move(memory)) {
    links_.add_memory(memory_->data(), memory_->size_bytes(), gpu);
  }
  ~ThrottledMemory() override { links_.remove_memory(memory_->data()); }
  ThrottledMemory(const ThrottledMemory&) = delete;
  ThrottledMemory& operator=(const ThrottledMemory&) = delete;

  std::byte* data() override { return memory_->data(); }
  size_t size_bytes() const override { return memory_->size_bytes(); }

 private:
  ThrottledLinks& links_;
  const std::unique_ptr<Memory> memory_;
};

class ThrottledStream final : public Stream {
 public:
  ThrottledStream(ThrottledLinks& links, int gpu, std::unique_ptr<Stream> stream)
      : links_(links), gpu_(gpu), stream_(std::move(stream)) {}

  void copy(void* target, const void* source, size_t bytes, CopyKind kind) override {
    Route route = route_of(target, source, kind);
    stream_->call([&links = links_, target, source, bytes, route = std::move(route)] {
      links.copy(target, source, bytes, route);
    });
  }
  void record(Event& event) override { stream_->record(event); }
  void wait(const Event& event) override { stream_->wait(event); }
  void call(std::function<void()> function) override { stream_->call(std::move(function)); }
  void synchronize() override { stream_->synchronize(); }

 private:
  Route route_of(const void* target, const void* source, CopyKind kind) const {
    if (kind == CopyKind::host_to_device) return route_to_gpu(links_.machine(), gpu_);
    if (kind == CopyKind::device_to_host) return route_to_host(links_.machine(), gpu_);
    const int from = links_.gpu_of(source), to = links_.gpu_of(target);
    return from < 0 || to < 0 || from == to ? Route{} : route_between(links_.machine(), from, to);
  }

  ThrottledLinks& links_;
  const int gpu_;
  const std::unique_ptr<Stream> stream_;
};

class ThrottledDevice final : public Device {
 public:
  ThrottledDevice(ThrottledLinks& links, int gpu)
      : links_(links), gpu_(gpu), device_(make_host_device(gpu)) {}

  const std::string& name() const override { return device_->name(); }
  bool host_accessible() const override { return false; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override {
    std::unique_ptr<Memory> memory = device_->allocate(bytes, kind);
    if (kind == MemoryKind::pinned) return memory;
    return std::make_unique<ThrottledMemory>(links_, gpu_, std::move(memory));
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<ThrottledStream>(links_, gpu_, device_->make_stream());
  }
  std::unique_ptr<Event> make_event(bool timing) override { return device_->make_event(timing); }

 private:
  ThrottledLinks& links_;
  const int gpu_;
  const std::unique_ptr<Device> device_;
};

}  // namespace

ThrottledLinks::ThrottledLinks(const LinkMachine& machine, Clock& clock)
    : machine_(machine), clock_(clock) {
  const MutexLock lock(mutex_);
  for (const MachineLink& link : machine.links) {
    lanes_.push_back({link.down, 0, 0});
    lanes_.push_back({link.up, 0, 0});
  }
  lanes_.push_back({machine.memory_per_second, 0, 0});
}

void ThrottledLinks::copy(void* target, const void* source, size_t bytes, const Route& route) {
  double slowest = machine_.memory_per_second;
  for (const LinkUse& use : route.links) {
    const MachineLink& link = machine_.links[use.link];
    slowest = std::min(slowest, use.down ? link.down : link.up);
  }
  const auto most = static_cast<size_t>(std::max(kMinPiece, kPieceSeconds * slowest));
  // The copy keeps its own time: if its thread wakes late, it does not lose what its links could
  // have carried meanwhile. It is never ahead of the clock, where it would take the turn of others.
  double end = clock_.seconds() + machine_.latency_seconds;
  for (size_t at = 0; at < bytes; at += most) {
    const size_t piece = std::min(most, bytes - at);
    std::memcpy(static_cast<std::byte*>(target) + at, static_cast<const std::byte*>(source) + at,
                piece);
    end = send(route, static_cast<double>(piece), end);
    const double ahead = end - clock_.seconds();
    if (ahead > 0) clock_.sleep(ahead);
  }
}

double ThrottledLinks::send(const Route& route, double bytes, double begin) {
  const MutexLock lock(mutex_);
  double end = begin;
  const auto cross = [&](Lane& lane, double load) REQUIRES(mutex_) {
    lane.free_at = std::max(lane.free_at, begin) + load / lane.per_second;
    lane.sent += load;
    end = std::max(end, lane.free_at);
  };
  for (const LinkUse& use : route.links) cross(lanes_[2 * use.link + (use.down ? 0 : 1)], bytes);
  if (route.memory > 0) cross(lanes_.back(), route.memory * bytes);
  return end;
}

double ThrottledLinks::sent(const LinkUse& use) const {
  const MutexLock lock(mutex_);
  return lanes_[2 * use.link + (use.down ? 0 : 1)].sent;
}

void ThrottledLinks::add_memory(const std::byte* data, size_t bytes, int gpu) {
  const MutexLock lock(mutex_);
  memory_[data] = {data + bytes, gpu};
}

void ThrottledLinks::remove_memory(const std::byte* data) {
  const MutexLock lock(mutex_);
  memory_.erase(data);
}

int ThrottledLinks::gpu_of(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const MutexLock lock(mutex_);
  const auto after = memory_.upper_bound(byte);
  if (after == memory_.begin()) return -1;
  const Range& range = std::prev(after)->second;
  return byte < range.end ? range.gpu : -1;
}

std::unique_ptr<Device> make_throttled_device(ThrottledLinks& links, int gpu) {
  if (gpu < 0 || gpu >= std::ssize(links.machine().gpus)) {
    throw std::invalid_argument("the machine " + links.machine().name + " has no GPU " +
                                std::to_string(gpu));
  }
  return std::make_unique<ThrottledDevice>(links, gpu);
}

}  // namespace stoker
