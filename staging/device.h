// The interface of a device that staging and the trainer need: memory, ordered asynchronous work,
// and events. Host devices run each stream on its own worker thread, with real events and real
// overlap; CUDA devices (cuda_device.cc) map one to one. Streams are ordered by Event record/wait
// only. Errors: std::runtime_error with the device's name; a device that failed once keeps failing
// (sticky).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace stoker {

enum class MemoryKind : unsigned char { device, pinned };
enum class CopyKind : unsigned char { host_to_device, device_to_host, device_to_device };

// A borrowed stream cannot be used: it was destroyed, belongs to another GPU or is being captured.
// The call has queued nothing, and the device can still be used.
class BorrowedStreamError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A mark in a stream. Before its first record it counts as reached. Threads: any.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool query() const = 0;        // has the work before the last record finished?
  virtual void synchronize() const = 0;  // blocks the calling thread until it has
  // Milliseconds from `start`'s mark to this one. REQUIRES: both made with timing, both reached.
  virtual double elapsed_ms(const Event& start) const = 0;
  virtual void* native_handle() const { return nullptr; }  // cudaEvent_t of a CUDA device
};

// Work that runs in order. Threads: one at a time. The destructor waits for all queued work.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy(void* target, const void* source, size_t bytes, CopyKind kind) = 0;
  virtual void record(Event& event) = 0;  // marks all the work queued so far
  virtual void wait(
      const Event& event) = 0;  // later work waits for event's last record as of this call
  virtual void call(
      std::function<void()> function) = 0;  // runs on the host, in order; must not throw
  virtual void synchronize() = 0;           // blocks the calling thread; not for the steady state
  virtual void* native_handle() const { return nullptr; }  // cudaStream_t of a CUDA device
};

// Bytes on a device or pinned on the host; freed with the handle. Aligned to 256 bytes or better.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* data() = 0;
  virtual size_t size_bytes() const = 0;
};

// A device outlives what it made. Threads: any.
class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;  // "cpu:0", "cuda:1"
  virtual bool host_accessible() const = 0;     // the host can read device memory
  virtual std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event(bool timing = false) = 0;
  virtual int cuda_ordinal() const { return -1; }  // for CUDA: the number for cudaSetDevice
  // Wraps another owner's stream (a cudaStream_t of this GPU), to order work with theirs: the
  // stream is neither created nor destroyed, and must outlive what is returned. If it does not, or
  // cannot be used for another reason on its owner's side, calls throw BorrowedStreamError. The
  // destructor waits for the stream only if call() was used. Throws std::runtime_error on devices
  // without native streams: all but CUDA devices.
  virtual std::unique_ptr<Stream> borrow_stream(void* /*native_handle*/) {
    throw std::runtime_error(name() + " has no native streams to borrow");
  }
  // Blocks until all work on the device is done, whoever queued it: a last resort for a borrowed
  // stream on which no event can be recorded any more. Does nothing on devices without native
  // streams.
  virtual void wait_for_everyone() {}
};

// A host device: streams are threads, "device" memory is ordinary memory. `index` only names it.
std::unique_ptr<Device> make_host_device(int index = 0);

}  // namespace stoker
