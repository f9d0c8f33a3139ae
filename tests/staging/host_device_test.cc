// The host device keeps the rules that staging and the trainer depend on: order within a stream,
// order between streams by events only, real overlap, and CUDA's meaning of record and wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "staging/device.h"
#include "staging/stage_stats.h"
#include "tests/support/thrown.h"
#include "tests/support/wait_until.h"

namespace stoker {
namespace {

// Blocks a stream until it is opened.
class Gate {
 public:
  explicit Gate(Stream& stream) {
    stream.call([opened = opened_.get_future().share()] { opened.wait(); });
  }
  ~Gate() { open(); }
  void open() {
    if (!std::exchange(open_, true)) opened_.set_value();
  }

 private:
  std::promise<void> opened_;
  bool open_ = false;
};

class HostDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_host_device(3);
};

TEST_F(HostDeviceTest, NameAndMemory) {
  EXPECT_EQ(device_->name(), "cpu:3");
  EXPECT_TRUE(device_->host_accessible());
  for (MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    for (size_t bytes : {0, 1, 255, 4097, 1 << 20}) {
      auto memory = device_->allocate(bytes, kind);
      EXPECT_EQ(memory->size_bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 256, 0U);
      std::memset(memory->data(), 1, bytes);
    }
  }
}

TEST_F(HostDeviceTest, WorkOfAStreamRunsInOrderAndAfterTheCall) {
  auto stream = device_->make_stream();
  std::vector<int> order;
  std::vector<int> source = {1, 2, 3};
  std::vector<int> target(3, 0);
  Gate gate(*stream);
  // More than a stream's queue can hold: wrapping around must not change the order.
  std::atomic<bool> is_full{false};
  std::thread opener([&, caller = gettid()] {
    EXPECT_TRUE(wait_until([&] { return is_full || is_asleep(caller); }));
    gate.open();
  });
  for (int i = 0; i < 3000; ++i) stream->call([&order, i] { order.push_back(i); });
  is_full = true;
  stream->copy(target.data(), source.data(), sizeof(int) * 3, CopyKind::host_to_device);
  stream->call([&] { order.push_back(target[2]); });
  stream->synchronize();
  opener.join();
  ASSERT_EQ(order.size(), 3001U);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(order.back(), 3);
  EXPECT_EQ(target, source);
}

TEST_F(HostDeviceTest, AnEventIsReachedWhenTheWorkBeforeItIsDone) {
  auto stream = device_->make_stream();
  auto event = device_->make_event();
  EXPECT_TRUE(event->query()) << "never recorded";
  event->synchronize();
  Gate gate(*stream);
  bool ran = false;
  stream->call([&] { ran = true; });
  stream->record(*event);
  EXPECT_FALSE(event->query());
  Gate later(*stream);  // work after the record does not matter
  gate.open();
  event->synchronize();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(event->query());
}

TEST_F(HostDeviceTest, WaitOrdersStreams) {
  auto first = device_->make_stream();
  auto second = device_->make_stream();
  auto event = device_->make_event();
  int value = 0;  // a race, also for ThreadSanitizer, unless wait() orders the two
  for (int i = 0; i < 200; ++i) {
    first->call([&value] { ++value; });
    first->record(*event);
    second->wait(*event);
    second->call([&value] { value *= 2; });
    second->record(*event);
    first->wait(*event);
    first->call([&value] { value %= 1000; });
  }
  first->synchronize();
  int expected = 0;
  for (int i = 0; i < 200; ++i) expected = (expected + 1) * 2 % 1000;
  EXPECT_EQ(value, expected);
}

TEST_F(HostDeviceTest, WaitMeansTheLastRecordAtTheTimeOfTheCall) {
  auto work = device_->make_stream();
  auto waiter = device_->make_stream();
  auto event = device_->make_event();
  work->record(*event);
  waiter->wait(*event);
  Gate gate(*work);
  work->record(*event);  // later than the wait: not waited for
  waiter->synchronize();

  std::atomic<bool> passed{false};
  waiter->wait(*event);
  waiter->call([&] { passed = true; });
  auto other = device_->make_stream();
  other->record(*event);  // does not cancel the earlier wait
  event->synchronize();
  be_late(std::chrono::microseconds(1000));
  EXPECT_FALSE(passed);
  gate.open();
  waiter->synchronize();
  EXPECT_TRUE(passed);
}

TEST_F(HostDeviceTest, StreamsOverlap) {
  // Each stream's work waits for the other's: it ends only if both run at the same time.
  auto first = device_->make_stream();
  auto second = device_->make_stream();
  std::promise<void> first_runs;
  std::promise<void> second_runs;
  first->call([&] {
    first_runs.set_value();
    second_runs.get_future().wait();
  });
  second->call([&] {
    second_runs.set_value();
    first_runs.get_future().wait();
  });
  first->synchronize();
  second->synchronize();
}

TEST_F(HostDeviceTest, AWaitThatIsOverCostsNoBlocking) {
  auto stream = device_->make_stream();
  auto other = device_->make_stream();
  auto event = device_->make_event();
  other->record(*event);
  other->synchronize();
  other.reset();  // the event outlives its stream
  EXPECT_TRUE(event->query());
  stream->wait(*event);
  stream->synchronize();
}

TEST_F(HostDeviceTest, EventsAndClosuresMayDieBeforeTheirWork) {
  auto held = std::make_shared<int>(7);
  std::atomic<int> seen{0};
  auto waiter = device_->make_stream();
  auto stream = device_->make_stream();
  Gate gate(*stream);
  for (bool timing : {false, true}) {
    auto event = device_->make_event(timing);
    stream->record(*event);
    waiter->wait(*event);
  }
  stream->call([held, &seen] { seen = *held; });
  gate.open();
  stream->synchronize();
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(held.use_count(), 1) << "a closure's captures die with its work";
  stream.reset();
  waiter->synchronize();
}

TEST_F(HostDeviceTest, DestroyingAStreamWaitsForItsWork) {
  std::atomic<int> ran{0};
  {
    auto stream = device_->make_stream();
    stream->call([] { be_late(std::chrono::microseconds(1000)); });
    for (int i = 0; i < 10; ++i) stream->call([&] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

TEST_F(HostDeviceTest, ManyThreadsWaitForOneEvent) {
  auto stream = device_->make_stream();
  auto early = device_->make_event();
  auto late = device_->make_event();
  Gate first(*stream);
  stream->record(*early);
  Gate second(*stream);
  stream->record(*late);
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      (i % 2 == 0 ? *early : *late).synchronize();
      ++woken;
    });
  }
  first.open();
  early->synchronize();
  second.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, 4);
}

TEST_F(HostDeviceTest, TimingEventsMeasureTheStream) {
  auto stream = device_->make_stream();
  auto start = device_->make_event(true);
  auto end = device_->make_event(true);
  for (int ms : {8, 2}) {  // recorded again: the last record counts
    int64_t outer_start_ns = steady_now_ns();
    stream->record(*start);
    stream->call([ms] { spin_for(std::chrono::milliseconds(ms)); });
    stream->record(*end);
    end->synchronize();
    double outer_ms = static_cast<double>(steady_now_ns() - outer_start_ns) * 1e-6;
    EXPECT_GE(end->elapsed_ms(*start), ms);
    EXPECT_LE(end->elapsed_ms(*start), outer_ms);
    EXPECT_LE(start->elapsed_ms(*end), -ms);
  }
}

TEST_F(HostDeviceTest, TimesThatAreNotThereAreRefused) {
  auto stream = device_->make_stream();
  auto plain = device_->make_event(false);
  auto timed = device_->make_event(true);
  EXPECT_THROW(timed->elapsed_ms(*timed), std::runtime_error) << "never recorded";
  stream->record(*plain);
  stream->record(*timed);
  stream->synchronize();
  EXPECT_EQ(timed->elapsed_ms(*timed), 0.0);
  EXPECT_THAT(thrown_by<std::runtime_error>([&] { timed->elapsed_ms(*plain); }),
              ::testing::HasSubstr("cpu:3"));
  Gate gate(*stream);
  stream->record(*timed);
  EXPECT_THROW(timed->elapsed_ms(*timed), std::runtime_error) << "not reached";
}

TEST_F(HostDeviceTest, HasNoNativeStreamsToBorrow) {
  EXPECT_THROW(make_host_device()->borrow_stream(nullptr), std::runtime_error);
}

}  // namespace
}  // namespace stoker
