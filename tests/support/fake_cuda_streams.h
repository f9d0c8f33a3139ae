// CUDA's default streams on a FakeDevice: the legacy one (cudaStreamLegacy), and each thread's own
// (cudaStreamPerThread). They are ordered as little as CUDA allows: the legacy stream waits for the
// threads' streams when it is given an event to wait for, and they never wait for it. They stay
// until the end; a thread's stream is used by that thread, or by others while it is idle.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "tests/support/fake_device.h"

namespace stoker::testing {

class FakeCudaStreams {
 public:
  explicit FakeCudaStreams(FakeDevice& device);

  Stream& legacy() { return *legacy_; }
  Stream& of_this_thread();
  void legacy_waits_for_threads();

 private:
  FakeDevice& device_;
  const std::unique_ptr<Stream> legacy_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Stream>> of_threads_;  // guarded by mutex_
};

}  // namespace stoker::testing
