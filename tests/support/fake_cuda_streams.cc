#include "tests/support/fake_cuda_streams.h"

#include <atomic>

namespace stoker::testing {
namespace {

// Unlike a std::thread::id, the number is never used again.
int thread_number() {
  static std::atomic<int> threads{0};
  thread_local const int number = ++threads;
  return number;
}

}  // namespace

FakeCudaStreams::FakeCudaStreams(FakeDevice& device)
    : device_(device), legacy_(device.make_stream()) {}

Stream& FakeCudaStreams::of_this_thread() {
  std::lock_guard lock(mutex_);
  auto& stream = of_threads_[thread_number()];
  if (!stream) stream = device_.make_stream();
  return *stream;
}

void FakeCudaStreams::legacy_waits_for_threads() {
  std::lock_guard lock(mutex_);
  for (auto& [thread, stream] : of_threads_) {
    const auto mark = device_.make_event();
    stream->record(*mark);
    legacy_->wait(*mark);
  }
}

}  // namespace stoker::testing
