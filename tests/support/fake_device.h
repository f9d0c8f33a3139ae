// A nasty host device for tests: everything that the Device contract allows to be late is late.
// Copies run long after the call, in pieces, in random order, into a target that is poisoned first;
// events are late; new memory is full of poison, and freed memory is kept, poisoned and checked. It
// can fail permanently after a number of operations. Delays follow from the seed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "staging/device.h"

namespace stoker::testing {

struct FakeDeviceOptions {
  std::string name = "fake";
  uint64_t seed = 1;
  int max_delay_us = 200;       // of each random delay: before a copy, each piece, each event
  int copy_us = 0;              // every copy takes this much longer
  int pieces = 4;               // of a copy
  bool host_accessible = true;  // what it reports
  // After these every stream operation throws std::runtime_error; -1: never.
  int64_t operations_left = -1;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const FakeDeviceOptions& options = {});
  ~FakeDevice() override;

  const std::string& name() const override { return options_.name; }
  bool host_accessible() const override { return options_.host_accessible; }
  std::unique_ptr<Memory> allocate(size_t bytes, MemoryKind kind) override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Event> make_event(bool timing = false) override;

  // Operations of streams; counted only if `operations_left` is not -1.
  int64_t operations() const { return operations_.load(); }
  int64_t copies() const { return copies_.load(); }  // finished
  // Bytes of all pinned memory that was ever allocated.
  int64_t pinned_allocations() const { return pinned_allocations_.load(); }
  int64_t pinned_bytes() const { return pinned_bytes_.load(); }
  void hold_copies();  // delays copies that have not begun, until
  void let_copies_go();
  // Returns the number of bytes that were changed after being freed: 0 unless the user has a bug.
  int64_t bytes_written_after_free() const;

  static constexpr unsigned char kFresh = 0xA5;  // in new memory and in targets of pending copies
  static constexpr unsigned char kFreed = 0xDD;

 private:
  class FakeStream;
  class FakeMemory;
  void operation();  // counts one; throws when the device has failed
  void wait_while_held();

  const FakeDeviceOptions options_;
  const std::unique_ptr<Device> host_;
  std::atomic<int64_t> operations_{0};
  std::atomic<int64_t> copies_{0};
  std::atomic<int64_t> pinned_allocations_{0}, pinned_bytes_{0};
  std::atomic<uint64_t> streams_{0};
  mutable std::mutex mutex_;
  std::condition_variable let_go_;
  bool held_ = false;                           // guarded by mutex_
  std::vector<std::unique_ptr<Memory>> freed_;  // guarded by mutex_
};

}  // namespace stoker::testing
