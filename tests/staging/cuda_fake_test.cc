// Facts that only a fake can show: how CUDA is called, what happens when it fails, and the messages
// if it cannot be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "staging/cuda_plugin.h"
#include "staging/device_list.h"
#include "staging/normalise.h"
#include "staging/stager.h"
#include "stoker/version.h"
#include "tests/staging/cuda_fixture.h"
#include "tests/staging/feed.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/thrown.h"
#include "tests/support/wait_until.h"

namespace stoker::testing {

std::string prepare_cuda() {
  setenv("STOKER_PLUGIN_DIR", STOKER_FAKE_CUDA_DIR, 1);
  reset_fake_cuda();
  return query_cuda().problem;
}

namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sets an environment variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

class CudaFakeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(prepare_cuda(), ""); }
};

TEST_F(CudaFakeTest, ListsWhatTheDriverShows) {
  const CudaStatus status = query_cuda();
  EXPECT_EQ(status.driver_version, 13000);
  ASSERT_EQ(status.devices.size(), 2U);
  const CudaDeviceInfo& second = status.devices[1];
  EXPECT_EQ(second.name, "cuda:1");
  EXPECT_EQ(second.model, "Fake GPU B");
  EXPECT_EQ(second.uuid, "GPU-20202020-2020-2020-2020-202020202020");
  EXPECT_EQ(second.pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(second.memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(second.compute_major * 10 + second.compute_minor, 90);
  EXPECT_EQ(second.multiprocessors, 132);
}

TEST_F(CudaFakeTest, CountingMakesNoContext) {
  const int before = fake_cuda_contexts_made();
  query_cuda();
  EXPECT_EQ(fake_cuda_contexts_made(), before);
  make_cuda_device(1);
  EXPECT_EQ(fake_cuda_contexts_made(), before + 1);
}

TEST_F(CudaFakeTest, SaysWhyThereIsNone) {
  {
    Variable hidden("CUDA_VISIBLE_DEVICES", "");
    EXPECT_EQ(message_of([] { make_device("cuda:0"); }),
              "cuda:0: no GPU is visible with CUDA_VISIBLE_DEVICES=\"\"");
  }
  {
    Variable none("FAKE_CUDA_DEVICES", "0");
    EXPECT_EQ(message_of([] { make_device("cuda:0"); }), "cuda:0: the NVIDIA driver finds no GPU");
  }
  {
    Variable stub("FAKE_CUDA_INIT", "34");
    EXPECT_EQ(message_of([] { make_device("cuda:0"); }),
              "cuda:0: libcuda.so.1 is the CUDA toolkit's stub, not an NVIDIA driver");
  }
  {
    Variable broken("FAKE_CUDA_INIT", "802");
    EXPECT_EQ(message_of([] { make_device("cuda:0"); }),
              "cuda:0: the NVIDIA driver does not start: CUDA_ERROR_SYSTEM_NOT_READY (802): system "
              "not yet initialized");
  }
  {
    Variable old("FAKE_CUDA_DRIVER", "12040");
    EXPECT_THAT(message_of([] { make_device("cuda:0"); }),
                HasSubstr("cuda:0: the NVIDIA driver is too old: it supports CUDA 12.4, this build "
                          "needs "));
    EXPECT_EQ(query_cuda().devices.size(), 2U) << "they are there all the same";
  }
  {
    Variable turing("FAKE_CUDA_COMPUTE", "75");
    EXPECT_EQ(message_of([] { make_device("cuda:1"); }),
              "cuda:1: Fake GPU B has compute capability 7.5, stoker needs 8.0 or later");
  }
}

TEST_F(CudaFakeTest, OrdinalsThatDoNotExist) {
  EXPECT_EQ(message_of([] { make_device("cuda:2"); }),
            "cuda:2: there is no such GPU; the last is cuda:1");
  Variable visible("CUDA_VISIBLE_DEVICES", "3,5");
  EXPECT_EQ(message_of([] { make_device("cuda:2"); }),
            "cuda:2: there is no such GPU; the last is cuda:1 (CUDA_VISIBLE_DEVICES=\"3,5\")");
}

TEST_F(CudaFakeTest, APluginThatIsMissingOrBroken) {
  const std::string folder = ::testing::TempDir() + "/plugins";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  setenv("STOKER_PLUGIN_DIR", folder.c_str(), 1);
  EXPECT_EQ(message_of([] { make_device("cuda:0"); }),
            "cuda:0: libstoker_cuda.so is not in " + folder);
  std::ofstream(folder + "/libstoker_cuda.so") << std::string(4096, 'x');
  EXPECT_THAT(message_of([] { make_device("cuda:0"); }),
              HasSubstr("cuda:0: libstoker_cuda.so cannot be opened: "));
  EXPECT_THAT(message_of([] { make_device("cuda:0"); }), HasSubstr("invalid ELF header"));
  EXPECT_EQ(query_cuda().devices.size(), 2U);
}

// The plugin of an older version beside this one, as after `pip install --upgrade stoker`: the same
// file, but for the version in it.
TEST_F(CudaFakeTest, APluginOfAnotherVersion) {
  std::ifstream file(STOKER_FAKE_CUDA_DIR "/libstoker_cuda.so", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string version = "stoker " STOKER_VERSION;
  std::string other = version;
  other.back() = other.back() == '9' ? '8' : '9';
  const size_t at = bytes.find(version);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, version.size(), other);
  const std::string folder = ::testing::TempDir() + "/older_plugin";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libstoker_cuda.so", std::ios::binary) << bytes;
  setenv("STOKER_PLUGIN_DIR", folder.c_str(), 1);
  EXPECT_THAT(
      message_of([] { make_device("cuda:0"); }),
      AllOf(StartsWith("cuda:0: libstoker_cuda.so is from another build of stoker (" + other + " "),
            HasSubstr("than what opens it (" + version + " "),
            EndsWith("install all packages of stoker in the same version")));
}

// The steady state has no synchronisation: streams are ordered by events only.
TEST_F(CudaFakeTest, SteadyStateNeverSynchronises) {
  constexpr Step kSteps = 40;
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    reset_fake_cuda();
    auto device = make_device("cuda:0");
    StagedFeed feed(*device, {.slots = slots, .capacity = 3, .end = kSteps});
    for (Step step = 0; step < kSteps; ++step) ASSERT_TRUE(feed.next());
    for (const char* call : {"cudaDeviceSynchronize", "cudaStreamSynchronize",
                             "cudaEventSynchronize", "cudaFree", "cudaFreeHost"}) {
      EXPECT_EQ(fake_cuda_count(call), 0) << call << " with " << slots << " slots";
    }
    EXPECT_EQ(fake_cuda_count("cudaMemcpyAsync"), kSteps) << "one copy per batch";
    EXPECT_EQ(fake_cuda_count("cudaHostAlloc"), 1) << "one allocation per ring";
    EXPECT_EQ(fake_cuda_count("cudaMalloc"), std::max(slots, 1));
    EXPECT_EQ(fake_cuda_count("event with timing"), 0);
    EXPECT_EQ(fake_cuda_count("pageable copy"), 0);
    EXPECT_EQ(fake_cuda_count("in a host function"), 0);
    EXPECT_EQ(fake_cuda_count("no context"), 0);
  }
}

// One launch for each batch with edits, between its copy and its event.
TEST_F(CudaFakeTest, EditsAreOneKernelPerBatch) {
  constexpr Step kSteps = 12;
  BatchShape shape = small_shape();
  shape.edits = true;
  const BatchLayout layout(shape);
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (const bool edited : {false, true}) {
      reset_fake_cuda();
      auto device = make_device("cuda:0");
      auto compute = device->make_stream();
      PinnedRing ring(*device, layout, kSteps);
      for (Step step = 0; step < kSteps; ++step) {
        Slab& slab = ring.begin(step);
        std::fill_n(slab.edits, shape.rows, RowEdit{});
        if (edited && step % 2 == 0) slab.edits[1].erasing = RowErasing::colour;
        ring.commit(step);
      }
      const NoiseBytes noise{};
      const RowEditor editor(*device, &noise);
      const int64_t synchronised = fake_cuda_count("cudaStreamSynchronize");
      const int64_t freed = fake_cuda_count("cudaFreeHost");
      Stager stager(*device, ring, slots, 0, kSteps, 1, nullptr, 0, &editor);
      for (Step step = 0; step < kSteps; ++step) ASSERT_TRUE(stager.next(*compute));
      EXPECT_EQ(fake_cuda_count("cudaLaunchKernelExC"), edited ? kSteps / 2 : 0) << slots;
      EXPECT_EQ(fake_cuda_count("cudaMemcpyAsync"), 1 + kSteps) << "noise, and each batch";
      EXPECT_EQ(fake_cuda_count("cudaStreamSynchronize"), synchronised) << slots;
      EXPECT_EQ(fake_cuda_count("cudaFreeHost"), freed) << slots;
      for (const char* call : {"cudaDeviceSynchronize", "cudaEventSynchronize", "cudaFree"}) {
        EXPECT_EQ(fake_cuda_count(call), 0) << call << " with " << slots << " slots";
      }
      EXPECT_EQ(fake_cuda_count("pageable copy"), 0);
      EXPECT_EQ(fake_cuda_count("no context"), 0);
    }
  }
}

TEST_F(CudaFakeTest, TheCallersDeviceStaysAsItWas) {
  auto device = make_device("cuda:1");
  EXPECT_EQ(fake_cuda_current_device(), -1);
  auto stream = device->make_stream();
  auto event = device->make_event();
  auto memory = device->allocate(100, MemoryKind::device);
  stream->record(*event);
  stream->wait(*event);
  event->synchronize();
  EXPECT_EQ(fake_cuda_current_device(), -1);
  EXPECT_EQ(fake_cuda_count("no context"), 0);
}

// Otherwise the calls would go to whichever GPU is current on the thread.
TEST_F(CudaFakeTest, NothingIsDoneOnAnotherGpu) {
  using Work = std::function<void(Device&, Stream&, Event&, Memory&)>;
  const std::vector<Work> all = {
      [](Device& device, Stream&, Event&, Memory&) { device.make_stream(); },
      [](Device& device, Stream&, Event&, Memory&) { device.make_event(); },
      [](Device& device, Stream&, Event&, Memory&) { device.allocate(8, MemoryKind::device); },
      [](Device& device, Stream&, Event&, Memory&) { device.allocate(8, MemoryKind::pinned); },
      [](Device&, Stream& stream, Event&, Memory& memory) {
        stream.copy(memory.data(), memory.data() + 8, 8, CopyKind::device_to_device);
      },
      [](Device&, Stream& stream, Event& event, Memory&) { stream.record(event); },
      [](Device&, Stream& stream, Event& event, Memory&) { stream.wait(event); },
      [](Device&, Stream& stream, Event&, Memory&) { stream.call([] { FAIL() << "it ran"; }); },
      [](Device&, Stream& stream, Event&, Memory&) { stream.synchronize(); },
      [](Device&, Stream&, Event& event, Memory&) { event.query(); },
      [](Device&, Stream&, Event& event, Memory&) { event.synchronize(); },
  };
  for (size_t i = 0; i < all.size(); ++i) {
    reset_fake_cuda();
    {
      auto device = make_device("cuda:1");
      auto stream = device->make_stream();
      auto event = device->make_event();
      auto memory = device->allocate(16, MemoryKind::device);
      fake_cuda_refuse_context();
      const std::string message = message_of([&] { all[i](*device, *stream, *event, *memory); });
      EXPECT_EQ(message.rfind("cuda:1: cu", 0), 0U) << i << ": " << message;
      EXPECT_THAT(message, HasSubstr("cudaErrorIllegalAddress")) << i;
      EXPECT_EQ(message_of([&] { device->make_stream(); }), message) << "it is final";
    }
    EXPECT_EQ(fake_cuda_count("no context"), 0) << i;
  }
}

TEST_F(CudaFakeTest, MemoryThatCannotBePinned) {
  auto device = make_device("cuda:0");
  fake_cuda_refuse_memory(true);
  ::testing::internal::CaptureStderr();
  auto memory = device->allocate(3 << 20, MemoryKind::pinned);
  auto again = device->allocate(3 << 20, MemoryKind::pinned);
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(memory->size_bytes(), size_t{3} << 20);
  memory->data()[(3 << 20) - 1] = std::byte{1};
  EXPECT_THAT(warning,
              HasSubstr("cuda:0: the system refuses to lock 3 MiB of memory (out of memory "
                        "(cudaErrorMemoryAllocation))"));
  EXPECT_THAT(warning, HasSubstr("ulimit -l"));
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << "once";
  auto compute = device->make_stream();  // the device still works
  compute->synchronize();
}

int memory_policy() {
  int mode = -1;
  syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0);
  return mode;
}

TEST_F(CudaFakeTest, PinnedMemoryIsNearTheGpu) {
  const int before = memory_policy();
  std::string problem;
  const CudaPlugin* plugin = open_cuda_plugin(problem);
  ASSERT_NE(plugin, nullptr) << problem;
  auto anywhere = plugin->make_device(0, -1);
  anywhere->allocate(1 << 20, MemoryKind::pinned);
  EXPECT_EQ(fake_cuda_count("node preferred"), 0);
  auto near = plugin->make_device(0, 0);
  near->allocate(1 << 20, MemoryKind::device);
  EXPECT_EQ(fake_cuda_count("node preferred"), 0);
  near->allocate(1 << 20, MemoryKind::pinned);
  EXPECT_EQ(memory_policy(), before);
  if (fake_cuda_count("node preferred") == 0) {
    unsigned long node = 1;
    const bool allowed = syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node, 64) == 0;
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
    EXPECT_FALSE(allowed) << "the memory is not near though it might be";
  }
}

TEST_F(CudaFakeTest, DeviceMemoryThatIsNotThere) {
  auto device = make_device("cuda:0");
  fake_cuda_refuse_memory(true);
  EXPECT_EQ(message_of([&] { device->allocate(size_t{5} << 30, MemoryKind::device); }),
            "cuda:0: no room for 5120 MiB: 3 MiB of 8192 MiB are free");
  fake_cuda_refuse_memory(false);
  EXPECT_NE(device->allocate(100, MemoryKind::device), nullptr);
}

// To load one at its first launch may wait for the GPU.
TEST_F(CudaFakeTest, KernelsAreLoadedWithTheDevice) {
  const int before = fake_cuda_count("cudaFuncGetAttributes");
  auto device = make_device("cuda:0");
  EXPECT_EQ(fake_cuda_count("cudaFuncGetAttributes"), before + 10);
}

// An earlier error on this thread must not be reported as the kernel's.
TEST_F(CudaFakeTest, SomebodyElsesErrorIsNotTheKernels) {
  auto device = make_device("cuda:0");
  auto stream = device->make_stream();
  const Normaliser normaliser(*device, {.height = 2, .width = 2});
  auto images = device->allocate(3 * 4, MemoryKind::device);
  auto out = device->allocate(normaliser.row_bytes(), MemoryKind::device);
  fake_cuda_leave_an_error();
  normaliser.run(*stream, reinterpret_cast<const uint8_t*>(images->data()), out->data(), 1);
  stream->synchronize();
  EXPECT_EQ(fake_cuda_count("cudaLaunchKernelExC"), 1);
}

// A GPU that failed keeps failing, with the first reason; nothing hangs or is freed too early.
TEST_F(CudaFakeTest, AFailureIsFinal) {
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    for (int64_t operations : {0, 1, 2, 3, 7, 20}) {
      reset_fake_cuda({.operations_left = operations});
      auto device = make_device("cuda:0");
      std::string message;
      {
        StagedFeed feed(*device, {.slots = slots, .capacity = 3, .end = 1000});
        message = message_of([&] {
          for (Step step = 0; step < 1000; ++step) feed.next();
        });
        EXPECT_EQ(message_of([&] { feed.next(); }), message);
      }
      EXPECT_THAT(message, HasSubstr("an illegal memory access was encountered "
                                     "(cudaErrorIllegalAddress)"));
      EXPECT_EQ(message.rfind("cuda:0: cuda", 0), 0U) << message;
      EXPECT_EQ(message_of([&] { device->make_stream(); }), message);
      device.reset();
      EXPECT_EQ(fake_cuda_device().bytes_written_after_free(), 0);
    }
  }
}

// Like a user's stream in front of a feed that continues with another one.
TEST_F(CudaFakeTest, AStreamThatItsOwnerDestroyedEndsNoFeed) {
  constexpr Step kSteps = 12;
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    reset_fake_cuda();
    auto device = make_device("cuda:0");
    auto compute = device->make_stream();
    Stream& theirs = fake_cuda_others_stream();
    auto borrowed = device->borrow_stream(&theirs);
    const BatchLayout layout(small_shape());
    PinnedRing ring(*device, layout, 3);
    Producer producer(ring, 0, kSteps);
    Stager stager(*device, ring, slots, 0, kSteps);
    std::string read = "nothing";
    {
      const DeviceBatch batch = stager.next(*borrowed);
      theirs.call([&, view = DeviceView(batch)] {
        be_late(std::chrono::microseconds(1000));  // the slot must not be filled yet
        read = difference(view, layout, 0);
      });
      fake_cuda_destroy_others_stream(theirs);
    }
    const std::string message = message_of([&] { stager.next(*borrowed); });
    EXPECT_THAT(message, HasSubstr("cuda:0: cuda"));
    EXPECT_THAT(message, HasSubstr("on the borrowed stream 0x"));
    EXPECT_THAT(message, HasSubstr("(cudaErrorInvalidResourceHandle)"));
    std::vector<std::string> later(kSteps, "nothing");
    for (Step step = 1; step < kSteps; ++step) {
      const DeviceBatch batch = stager.next(*compute);
      ASSERT_TRUE(batch) << step;
      compute->call([&, view = DeviceView(batch), step] {
        later[static_cast<size_t>(step)] = difference(view, layout, step);
      });
    }
    compute->synchronize();
    theirs.synchronize();
    EXPECT_EQ(read, "") << slots << " slots";
    for (Step step = 1; step < kSteps; ++step) EXPECT_EQ(later[static_cast<size_t>(step)], "");
    EXPECT_FALSE(stager.next(*compute)) << "no step is left out, none comes twice";
  }
}

TEST_F(CudaFakeTest, OnlyTheCallThatWasGivenADestroyedStreamFails) {
  using Work = std::function<void(Stream&, Event&, Memory&)>;
  const std::vector<Work> all = {
      [](Stream& stream, Event&, Memory& memory) {
        stream.copy(memory.data(), memory.data() + 8, 8, CopyKind::device_to_device);
      },
      [](Stream& stream, Event& event, Memory&) { stream.record(event); },
      [](Stream& stream, Event& event, Memory&) { stream.wait(event); },
      [](Stream& stream, Event&, Memory&) { stream.synchronize(); },
  };
  auto device = make_device("cuda:1");
  auto event = device->make_event();
  auto memory = device->allocate(16, MemoryKind::device);
  Stream& theirs = fake_cuda_others_stream();
  auto borrowed = device->borrow_stream(&theirs);
  for (const Work& work : all) work(*borrowed, *event, *memory);
  fake_cuda_destroy_others_stream(theirs);
  auto ours = device->make_stream();
  for (const Work& work : all) {
    EXPECT_THROW(work(*borrowed, *event, *memory), BorrowedStreamError);
    work(*ours, *event, *memory);
  }
  EXPECT_EQ(fake_cuda_last_error(), 0) << "nor is it left to the next who asks";
  fake_cuda_fail();
  const std::string message = message_of([&] { borrowed->wait(*event); });
  EXPECT_THAT(message, HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_EQ(message_of([&] { device->make_stream(); }), message) << "that is the GPU's, and final";
}

// Work that a failed GPU still runs is waited for; work that it has not begun never runs.
TEST_F(CudaFakeTest, NoCallRunsAfterAFailureWasSeen) {
  auto device = make_device("cuda:0");
  auto stream = device->make_stream();
  std::atomic<bool> begun{false}, over{false}, second{false};
  auto held = std::make_shared<int>(0);
  stream->call([&, held_by_second = std::weak_ptr(held)] {
    begun = true;
    over = wait_until([&] { return held_by_second.expired(); });
  });
  stream->call([&, held = std::move(held)] { second = true; });
  while (!begun) std::this_thread::yield();
  fake_cuda_fail();
  EXPECT_THAT(message_of([&] { stream->synchronize(); }), HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_TRUE(over);
  stream.reset();
  be_late(std::chrono::microseconds(1000));
  EXPECT_FALSE(second);
}

}  // namespace
}  // namespace stoker::testing
