// Checks the contract of Device on a CUDA device; its memory is read only through copies.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "staging/device_list.h"
#include "staging/normalise.h"
#include "staging/stager.h"
#include "tests/staging/cuda_fixture.h"
#include "tests/staging/edited_rows.h"
#include "tests/staging/feed.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {
namespace {

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string problem = prepare_cuda(); !problem.empty()) GTEST_SKIP() << problem;
    device_ = make_device("cuda:0");
  }
  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, SaysWhatItIs) {
  EXPECT_EQ(device_->name(), "cuda:0");
  EXPECT_EQ(device_->cuda_ordinal(), 0);
  EXPECT_FALSE(device_->host_accessible());
  EXPECT_NE(device_->make_stream()->native_handle(), nullptr);
  EXPECT_NE(device_->make_event()->native_handle(), nullptr);
}

TEST_F(CudaDeviceTest, MemoryIsAlignedAndPinnedMemoryIsZeroed) {
  for (size_t bytes : {0, 1, 255, 4097, 1 << 20}) {
    for (MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
      auto memory = device_->allocate(bytes, kind);
      EXPECT_EQ(memory->size_bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % BatchLayout::kAlignment, 0);
      for (size_t i = 0; i < bytes && kind == MemoryKind::pinned; ++i) {
        ASSERT_EQ(memory->data()[i], std::byte{0});
      }
    }
  }
}

TEST_F(CudaDeviceTest, BytesComeBackAsTheyWent) {
  constexpr size_t kBytes = 100'000;
  auto stream = device_->make_stream();
  auto from = device_->allocate(kBytes, MemoryKind::pinned);
  auto to = device_->allocate(kBytes, MemoryKind::pinned);
  auto a = device_->allocate(kBytes, MemoryKind::device);
  auto b = device_->allocate(kBytes, MemoryKind::device);
  for (size_t i = 0; i < kBytes; ++i) from->data()[i] = static_cast<std::byte>(i * 7 + i / 256);
  stream->copy(a->data(), from->data(), kBytes, CopyKind::host_to_device);
  stream->copy(b->data(), a->data(), kBytes, CopyKind::device_to_device);
  stream->copy(to->data(), b->data(), kBytes, CopyKind::device_to_host);
  stream->synchronize();
  EXPECT_EQ(std::memcmp(from->data(), to->data(), kBytes), 0);
}

TEST_F(CudaDeviceTest, EventsOrderStreams) {
  auto first = device_->make_stream();
  auto second = device_->make_stream();
  auto event = device_->make_event();
  EXPECT_TRUE(event->query()) << "never recorded counts as reached";
  event->synchronize();
  std::atomic<int> value{0};
  for (int i = 1; i <= 50; ++i) {
    first->call([&, i] {
      be_late(std::chrono::microseconds(50));
      value = i;
    });
    first->record(*event);
    second->wait(*event);
    second->call([&, i] {
      if (value < i) value = -1000;
    });
  }
  second->synchronize();
  event->synchronize();
  EXPECT_TRUE(event->query());
  EXPECT_EQ(value, 50);
}

// CUDA reports "not ready" as an error, which the next launch would otherwise return.
TEST_F(CudaDeviceTest, AnEventThatIsNotReachedIsNobodysError) {
  const NormaliseOptions options{.height = 4, .width = 4};
  const Normaliser normaliser(*device_, options);
  const auto images = device_->allocate(3 * 16, MemoryKind::device);
  const auto out = device_->allocate(normaliser.row_bytes(), MemoryKind::device);
  const auto slow = device_->make_stream(), other = device_->make_stream();
  const auto event = device_->make_event();
  std::atomic<bool> go{false};
  slow->call([&] {
    while (!go) std::this_thread::yield();
  });
  slow->record(*event);
  EXPECT_FALSE(event->query());
  EXPECT_NO_THROW(
      normaliser.run(*other, reinterpret_cast<const uint8_t*>(images->data()), out->data(), 1));
  go = true;
  slow->synchronize();
  EXPECT_TRUE(event->query());
}

// Work that another library queued is waited for, and its stream survives.
TEST_F(CudaDeviceTest, ABorrowedStreamIsOrderedWithOurs) {
  auto theirs = device_->make_stream();
  auto ours = device_->make_stream();
  auto done = device_->make_event();
  std::atomic<int> value{0};
  std::atomic<bool> open{false};
  for (int i = 1; i <= 20; ++i) {
    theirs->call([&, i] {
      while (!open) std::this_thread::yield();
      value = i;
    });
    {
      auto borrowed = device_->borrow_stream(theirs->native_handle());
      EXPECT_EQ(borrowed->native_handle(), theirs->native_handle());
      borrowed->record(*done);
    }
    ours->wait(*done);
    ours->call([&, i] {
      if (value < i) value = -1000;
    });
    EXPECT_TRUE(i > 1 || value == 0) << "to give a borrowed stream back waits for nothing";
    open = true;
    ours->record(*done);
    device_->borrow_stream(theirs->native_handle())->wait(*done);
  }
  {
    auto borrowed = device_->borrow_stream(theirs->native_handle());
    borrowed->call([&] { value = value + 1; });
  }
  EXPECT_EQ(value, 21) << "but for calls made through it";
  theirs->synchronize();
}

TEST_F(CudaDeviceTest, EventsKeepTimeWhereAsked) {
  auto stream = device_->make_stream();
  auto start = device_->make_event(true);
  auto end = device_->make_event(true);
  auto without = device_->make_event();
  EXPECT_THROW(end->elapsed_ms(*without), std::runtime_error);
  stream->record(*start);
  stream->call([] { spin_for(std::chrono::milliseconds(2)); });
  stream->record(*end);
  end->synchronize();
  EXPECT_GE(end->elapsed_ms(*start), 1.9);
  EXPECT_LT(end->elapsed_ms(*start), 5000);
}

TEST_F(CudaDeviceTest, CallsKeepTheirOrderAndLetGoOfWhatTheyHold) {
  auto held = std::make_shared<int>(0);
  std::vector<int> order;
  auto stream = device_->make_stream();
  for (int i = 0; i < 300; ++i) {
    stream->call([&order, i, held] {
      if (i < 5) be_late(std::chrono::microseconds(300));  // so that many are waiting
      order.push_back(i);
    });
  }
  stream->synchronize();
  ASSERT_EQ(order.size(), 300U);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CudaDeviceTest, AStreamsEndWaitsForItsWork) {
  std::atomic<bool> done{false};
  {
    auto stream = device_->make_stream();
    stream->call([&] {
      be_late(std::chrono::microseconds(1000));
      done = true;
    });
  }
  EXPECT_TRUE(done);
}

TEST_F(CudaDeviceTest, EventsOfAnotherKindOfDeviceAreRefused) {
  auto host = make_host_device();
  auto foreign = host->make_event();
  auto stream = device_->make_stream();
  EXPECT_THROW(stream->record(*foreign), std::runtime_error);
  EXPECT_THROW(stream->wait(*foreign), std::runtime_error);
  stream->synchronize();  // a mistake of the caller, not a failure of the device
}

// Every batch arrives whole and in order, with compute that is late and reads after its lease.
TEST_F(CudaDeviceTest, StagersFeedIt) {
  constexpr Step kSteps = 25;
  const BatchLayout layout(small_shape());
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (int capacity : {1, 3}) {
      SCOPED_TRACE("slots " + std::to_string(slots) + ", ring " + std::to_string(capacity));
      auto seen = device_->allocate(kSteps * layout.device_bytes(), MemoryKind::pinned);
      auto compute = device_->make_stream();
      {
        PinnedRing ring(*device_, layout, capacity);
        Producer producer(ring, 0, kSteps);
        Stager stager(*device_, ring, slots, 0, kSteps);
        for (Step step = 0; step < kSteps; ++step) {
          DeviceBatch batch = stager.next(*compute);
          ASSERT_TRUE(batch);
          ASSERT_EQ(host_difference(batch, layout, step), "");
          compute->call([step] { be_late(std::chrono::microseconds(step % 3 * 150)); });
          compute->copy(seen->data() + static_cast<size_t>(step) * layout.device_bytes(),
                        batch.images(), layout.device_bytes(), CopyKind::device_to_host);
        }
        EXPECT_FALSE(stager.next(*compute));
      }
      compute->synchronize();
      for (Step step = 0; step < kSteps; ++step) {
        const DeviceView view(seen->data() + static_cast<size_t>(step) * layout.device_bytes(),
                              layout);
        ASSERT_EQ(difference(view, layout, step), "");
      }
    }
  }
}

TEST_F(CudaDeviceTest, AStagerStopsWithBatchesUnderWay) {
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (Step until = 0; until < 6; ++until) {
      StagedFeed feed(*device_, {.slots = slots, .capacity = 3, .end = 100});
      for (Step step = 0; step < until; ++step) ASSERT_TRUE(feed.next());
      feed.ring.stop();
    }
  }
}

// The kernel gives the same bytes as its twin on the host.
TEST_F(CudaDeviceTest, NormalisesAsTheHostDoes) {
  constexpr int kRows = 3;
  auto host = make_host_device();
  auto stream = device_->make_stream();
  for (const auto& [height, width] : {std::pair{8, 6}, std::pair{5, 7}}) {
    const size_t pixels = static_cast<size_t>(kRows * height * width * 3);
    auto images = device_->allocate(pixels, MemoryKind::pinned);
    for (size_t i = 0; i < pixels; ++i) images->data()[i] = static_cast<std::byte>(i * 29 + 3);
    auto there = device_->allocate(pixels, MemoryKind::device);
    stream->copy(there->data(), images->data(), pixels, CopyKind::host_to_device);
    for (PixelOrder order : {PixelOrder::nhwc, PixelOrder::nchw}) {
      for (PixelType type : {PixelType::bf16, PixelType::fp16, PixelType::fp32}) {
        for (int channels : {3, 4, 8}) {
          const NormaliseOptions options = {.height = height,
                                            .width = width,
                                            .channels = channels,
                                            .type = type,
                                            .order = order,
                                            .mean = {0.4914F, 0.4822F, 0.4465F},
                                            .stddev = {0.247F, 0.2435F, 0.2616F}};
          const Normaliser on_gpu(*device_, options);
          const Normaliser on_host(*host, options);
          const size_t bytes = kRows * on_gpu.row_bytes();
          auto out = device_->allocate(bytes, MemoryKind::device);
          auto result = device_->allocate(bytes, MemoryKind::pinned);
          auto expected = host->allocate(bytes, MemoryKind::device);
          on_gpu.run(*stream, reinterpret_cast<const uint8_t*>(there->data()), out->data(), kRows);
          stream->copy(result->data(), out->data(), bytes, CopyKind::device_to_host);
          auto host_stream = host->make_stream();
          on_host.run(*host_stream, reinterpret_cast<const uint8_t*>(images->data()),
                      expected->data(), kRows);
          host_stream->synchronize();
          stream->synchronize();
          EXPECT_EQ(std::memcmp(result->data(), expected->data(), bytes), 0)
              << height << " x " << width << ", " << channels << " channels, type "
              << static_cast<int>(type) << ", order " << static_cast<int>(order);
        }
      }
    }
  }
}

// The kernel gives the same bytes as the loops on the host.
TEST_F(CudaDeviceTest, EditsRowsAsTheHostDoes) {
  auto stream = device_->make_stream();
  EditMaker maker(5);
  for (const auto& [height, width] : {std::pair{32, 32}, std::pair{5, 7}, std::pair{224, 224}}) {
    for (const int rows : {1, 2, 7, 64}) {
      const EditedRows batch = maker.make(rows, height, width);
      const BatchLayout layout({.rows = rows, .height = height, .width = width, .edits = true});
      auto slab = device_->allocate(layout.device_bytes(), MemoryKind::pinned);
      auto there = device_->allocate(layout.device_bytes(), MemoryKind::device);
      std::memcpy(slab->data(), batch.images.data(), batch.images.size());
      std::copy(batch.edits.begin(), batch.edits.end(),
                reinterpret_cast<RowEdit*>(slab->data() + layout.edits_offset()));
      const RowEditor editor(*device_, &batch.noise);
      stream->copy(there->data(), slab->data(), layout.device_bytes(), CopyKind::host_to_device);
      editor.run(*stream, layout, batch.edits, there->data());
      stream->copy(slab->data(), there->data(), layout.device_bytes(), CopyKind::device_to_host);
      stream->synchronize();
      const std::vector<uint8_t> expected = edited_plainly(batch);
      EXPECT_EQ(std::memcmp(slab->data(), expected.data(), expected.size()), 0)
          << rows << " rows of " << height << " x " << width;
    }
  }
}

}  // namespace
}  // namespace stoker::testing
