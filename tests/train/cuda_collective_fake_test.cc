// Tests of the three ways to sum over GPUs, with the compiled plugin on a fake CUDA and a fake
// NCCL: what is queued in which order, what waits for what, and what is rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "tests/support/fake_cuda.h"
#include "tests/train/cuda_collective_harness.h"
#include "train/collective/process/nccl_group.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void cast_to_fp32(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(&to[i], &bits, sizeof bits);
  }
}

class CudaCollectiveFakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STOKER_PLUGIN_DIR", STOKER_FAKE_CUDA_DIR, 1);
    reset_fake_cuda({.max_delay_us = 60});
    fake_cuda_kernel("sum_buffers_kernel", {sizeof(BufferSum), sizeof(bool)}, [](void** arguments) {
      sum_buffers_now(*static_cast<const BufferSum*>(arguments[0]));
    });
    fake_cuda_kernel("cast_to_bf16_kernel", {8, 8, 8}, [](void** arguments) {
      const auto* from = *static_cast<const float**>(arguments[0]);
      auto* to = *static_cast<uint16_t**>(arguments[1]);
      for (int64_t i = 0; i < *static_cast<int64_t*>(arguments[2]); ++i) to[i] = bf16_bits(from[i]);
    });
    fake_cuda_kernel("cast_to_fp32_kernel", {8, 8, 8}, [](void** arguments) {
      cast_to_fp32(*static_cast<const uint16_t**>(arguments[0]),
                   *static_cast<float**>(arguments[1]), *static_cast<int64_t*>(arguments[2]));
    });
  }

  void expect_no_misuse() {
    EXPECT_EQ(fake_cuda_count("no context"), 0);
    EXPECT_EQ(fake_cuda_count("pageable copy"), 0);
    EXPECT_EQ(fake_cuda_count("in a host function"), 0);
    EXPECT_EQ(fake_cuda_count("cudaDeviceSynchronize"), 0);
  }
};

TEST_F(CudaCollectiveFakeTest, OnOneGpu) {
  CollectiveHarness harness({1, 1, 1});
  for (int parts : {1, 2}) harness.check(*harness.make(ReduceKind::automatic), parts);
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0) << "no thread waits for the device";
  EXPECT_EQ(fake_cuda_count("cudaStreamSynchronize"), 2 * 3 * 2) << "but at the streams' ends";
  EXPECT_EQ(fake_cuda_count("cudaLaunchKernelExC"), 2 * 3 * CollectiveHarness::kSteps);
}

// An earlier error on this thread must not be reported as the kernel's.
TEST_F(CudaCollectiveFakeTest, SomebodyElsesErrorIsNotASums) {
  CollectiveHarness apart({0, 1});
  const auto nccl = apart.make(ReduceKind::nccl, 100);
  auto memory = apart.replicas()[0].device->allocate(800, MemoryKind::device);
  auto* values = reinterpret_cast<float*>(memory->data());
  const float* parts[] = {values, values + 100};
  fake_cuda_leave_an_error();
  nccl->ranges()->start(0, parts, std::span(values, 100), {0, 100});
  nccl->abort();  // the other rank does not take part
  apart.replicas()[0].stream->synchronize();
}

TEST_F(CudaCollectiveFakeTest, OneReplica) {
  CollectiveHarness harness({0});
  harness.check(*harness.make(ReduceKind::automatic), 2);
  expect_no_misuse();
}

TEST_F(CudaCollectiveFakeTest, OnTheHost) {
  CollectiveHarness harness({0, 1});
  harness.check(*harness.make(ReduceKind::host), 2);
  expect_no_misuse();
}

// Buffers of other GPUs are copied to the server's, where one kernel adds up all of them.
TEST_F(CudaCollectiveFakeTest, AtAServerOnAGpu) {
  constexpr int64_t kSteps = CollectiveHarness::kSteps;
  for (const auto& [ordinals, copied] :
       {std::pair<std::vector<int>, int64_t>{{0}, 0}, {{0, 1}, 1}, {{1, 0, 1}, 1}, {{1, 1}, 0}}) {
    for (const int parts : {1, 2}) {
      for (const int pieces : {1, 3}) {
        CollectiveHarness harness(ordinals);
        const int64_t kernels = fake_cuda_count("cudaLaunchKernelExC"),
                      copies = fake_cuda_count("cudaMemcpyAsync");
        harness.check(*harness.make_server(parts), parts, 0, pieces);
        EXPECT_EQ(fake_cuda_count("cudaLaunchKernelExC") - kernels, pieces * kSteps);
        const int64_t given = std::ssize(ordinals) * parts * pieces * kSteps;
        EXPECT_EQ(fake_cuda_count("cudaMemcpyAsync") - copies,
                  given + copied * parts * pieces * kSteps + kSteps);
      }
    }
  }
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0) << "no thread waits for the device";
}

// On one GPU nothing is copied but what the test itself copies; between GPUs there are two copies
// for each replica.
TEST_F(CudaCollectiveFakeTest, BatchNormsMeet) {
  constexpr int64_t kSteps = CollectiveHarness::kSteps;
  for (const auto& [ordinals, copied] :
       {std::pair<std::vector<int>, int64_t>{{1, 1, 1}, 0}, {{0, 1}, 2}, {{1, 0, 1}, 2}}) {
    CollectiveHarness harness(ordinals);
    const int64_t copies = fake_cuda_count("cudaMemcpyAsync");
    harness.check_norms();
    const int64_t ranks = std::ssize(ordinals);
    EXPECT_EQ(fake_cuda_count("cudaMemcpyAsync") - copies, ranks * kSteps * (1 + ranks + copied));
  }
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0) << "no thread waits for a device";
}

TEST_F(CudaCollectiveFakeTest, ByNccl) {
  CollectiveHarness harness({0, 1});
  for (int parts : {1, 2}) {
    const auto collective = harness.make(ReduceKind::automatic);
    harness.check(*collective, parts);
  }
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0);
}

TEST_F(CudaCollectiveFakeTest, ByNcclWithBf16Gradients) {
  CollectiveHarness harness({0, 1});
  for (int64_t bf16 : {int64_t{300}, CollectiveHarness::kCount}) {
    for (int parts : {1, 2}) {
      harness.check(*harness.make(ReduceKind::nccl, bf16), parts, bf16);
    }
  }
  expect_no_misuse();
}

// CUDA's allocations may wait for the device, on which another rank's sum may wait for this rank's
// sum.
TEST_F(CudaCollectiveFakeTest, NothingIsAllocatedBetweenTheSums) {
  CollectiveHarness harness({0, 1});
  const auto collective = harness.make(ReduceKind::nccl, 300);
  std::vector<std::unique_ptr<Memory>> memory;
  for (const DeviceReplica& replica : harness.replicas()) {
    memory.push_back(replica.device->allocate(4000, MemoryKind::device));
  }
  const int64_t before = fake_cuda_count("cudaMalloc") + fake_cuda_count("cudaHostAlloc");
  for (int rank : {0, 1}) {
    auto* values = reinterpret_cast<float*>(memory[static_cast<size_t>(rank)]->data());
    const float* part = values;
    for (const BufferRange range : {BufferRange{200, 1000}, BufferRange{0, 200}}) {
      collective->ranges()->start(rank, std::span(&part, 1), std::span(values, 1000), range);
    }
  }
  for (int rank : {0, 1}) collective->ranges()->finish(rank);
  for (const DeviceReplica& replica : harness.replicas()) replica.stream->synchronize();
  EXPECT_EQ(fake_cuda_count("cudaMalloc") + fake_cuda_count("cudaHostAlloc"), before);
}

TEST_F(CudaCollectiveFakeTest, InRanges) {
  CollectiveHarness apart({0, 1}), together({1, 1, 1});
  apart.check(*apart.make(ReduceKind::nccl), 1, 0, 3);
  apart.check(*apart.make(ReduceKind::nccl, 500), 2, 500, 3);  // one range has both bf16 and fp32
  together.check(*together.make(ReduceKind::device), 2, 0, 3);
  EXPECT_EQ(fake_cuda_count("cudaEventSynchronize"), 0) << "no thread waits for the device";
  apart.check(*apart.make(ReduceKind::host), 1, 0, 3);
  expect_no_misuse();
}

// Processes that communicate through NCCL; here they are threads, each with its own GPU.
class NcclProcesses {
 public:
  explicit NcclProcesses(int size) : size_(size) {
    setenv("FAKE_CUDA_DEVICES", std::to_string(size).c_str(), 1);
    static int port = 29500;  // each address is used once
    address_ = "127.0.0.1:" + std::to_string(++port);
  }
  ~NcclProcesses() {
    unsetenv("FAKE_CUDA_DEVICES");
    unsetenv("NCCL_COMM_ID");
  }

  // Returns the message that each process threw.
  std::vector<std::string> run(const std::function<void(NcclGroup&)>& body) {
    // Like open_nccl_group(), but before there are threads.
    setenv("NCCL_COMM_ID", address_.c_str(), 1);
    std::vector<std::string> thrown(static_cast<size_t>(size_));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        thrown[static_cast<size_t>(rank)] = message_of([&] {
          Launch launch;
          launch.rank = rank;
          launch.world = size_;
          launch.by = "torchrun";
          launch.meeting_address = address_;
          const auto group = open_nccl_group(launch, {"cuda:" + std::to_string(rank)});
          body(*group->nccl());
          group->finish();
        });
      });
    }
    return thrown;
  }

 private:
  const int size_;
  std::string address_;
};

const std::string kNothing = "nothing was thrown";

TEST_F(CudaCollectiveFakeTest, ProcessesThatSpeakThroughNccl) {
  const auto thrown = NcclProcesses(3).run([](NcclGroup& group) {
    const int rank = group.rank();
    EXPECT_EQ(group.size(), 3);
    EXPECT_EQ(all_gather(group, 10 + rank), (std::vector<int64_t>{10, 11, 12}));
    EXPECT_EQ(all_reduce_max(group, rank == 1 ? 7 : 3), 7);
    std::vector<char> text(100'000, rank == 2 ? 'x' : ' ');
    broadcast(group, std::as_writable_bytes(std::span(text)), 2);
    EXPECT_EQ(text, std::vector<char>(100'000, 'x'));
    const auto all = gather(group, std::vector<std::byte>(static_cast<size_t>(rank), std::byte{5}));
    EXPECT_EQ(all.size(), rank == 0 ? 3u : 0u);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].size(), i);
  });
  for (const std::string& each : thrown) EXPECT_EQ(each, kNothing);
  expect_no_misuse();
  EXPECT_EQ(fake_cuda_count("cudaStreamSynchronize"), 3) << "at the streams' ends";
}

// As in training: gradients are summed bucket by bucket while notes of steps are sent over the same
// communicator, and the host waits for neither until it needs them.
TEST_F(CudaCollectiveFakeTest, SumsAndNotesShareACommunicator) {
  const auto thrown = NcclProcesses(2).run([](NcclGroup& group) {
    CollectiveHarness harness({group.rank()});
    CudaCollectiveOptions options;
    options.ranks = std::make_shared<Ranks>(1, &group);
    const auto collective = make_cuda_collective(harness.replicas(), std::move(options));
    EXPECT_EQ(collective->size(), 2);
    auto memory = harness.replicas()[0].device->allocate(4000, MemoryKind::device);
    auto pinned = harness.replicas()[0].device->allocate(4000, MemoryKind::pinned);
    auto* values = reinterpret_cast<float*>(memory->data());
    auto* host = reinterpret_cast<float*>(pinned->data());
    Stream& stream = *harness.replicas()[0].stream;
    const float* part = values;
    std::vector<int64_t> notes(16);
    std::vector<ProcessGroup::Ticket> tickets;
    int64_t own[8];
    for (int64_t step = 0; step < 8; ++step) {
      std::fill_n(host, 1000, static_cast<float>(group.rank() + 1));
      stream.copy(values, host, 4000, CopyKind::host_to_device);
      for (const BufferRange range : {BufferRange{600, 1000}, BufferRange{0, 600}}) {
        collective->ranges()->start(0, std::span(&part, 1), std::span(values, 1000), range);
      }
      own[step] = 100 * step + group.rank();
      tickets.push_back(group.start_all_gather(
          std::as_bytes(std::span(own + step, 1)),
          std::as_writable_bytes(std::span(notes).subspan(static_cast<size_t>(2 * step), 2))));
      collective->ranges()->finish(0);
    }
    stream.copy(host, values, 4000, CopyKind::device_to_host);
    for (const auto ticket : tickets) group.end_all_gather(ticket);
    for (int64_t step = 0; step < 8; ++step) {
      EXPECT_EQ(notes[static_cast<size_t>(2 * step)], 100 * step);
      EXPECT_EQ(notes[static_cast<size_t>(2 * step) + 1], 100 * step + 1);
    }
    stream.synchronize();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(host[i], 3.0F) << i;
  });
  for (const std::string& each : thrown) EXPECT_EQ(each, kNothing);
  expect_no_misuse();
}

TEST_F(CudaCollectiveFakeTest, AProcessThatFailsEndsTheOthersWait) {
  const auto thrown = NcclProcesses(2).run([](NcclGroup& group) {
    all_reduce_max(group, 1);
    if (group.rank() == 1) throw std::runtime_error("no such folder");
    all_reduce_max(group, 2);
  });
  EXPECT_EQ(thrown[1], "no such folder");
  EXPECT_NE(thrown[0], kNothing);
}

TEST_F(CudaCollectiveFakeTest, ProcessesMeetWhereTheLauncherSays) {
  Launch launch;
  launch.world = 2;
  launch.by = "torchrun";
  EXPECT_FALSE(meets_through_nccl(launch, {"cuda:0"})) << "no address";
  launch.meeting_address = "node7:29501";
  EXPECT_TRUE(meets_through_nccl(launch, {"cuda:0"}));
  EXPECT_FALSE(meets_through_nccl(launch, {"cpu:0"}));
  launch.by = "mpirun";
  EXPECT_FALSE(meets_through_nccl(launch, {"cuda:0"}));
  launch.by = "torchrun";
  EXPECT_THAT(message_of([&] {
                open_nccl_group(launch, {"cuda:0", "cuda:1"});
              }),
              HasSubstr("one GPU each: this one was given 2"));
}

TEST_F(CudaCollectiveFakeTest, AnAbortEndsEverybodysWait) {
  CollectiveHarness harness({0, 1});
  const auto collective = harness.make(ReduceKind::nccl);
  const DeviceReplica& first = harness.replicas()[0];
  auto memory = first.device->allocate(400, MemoryKind::device);
  auto* values = reinterpret_cast<float*>(memory->data());
  const float* part = values;
  collective->all_reduce(0, std::span(&part, 1), std::span(values, 100));  // waits on the device
  collective->abort();
  first.stream->synchronize();
  EXPECT_THROW(collective->all_reduce(1, std::span(&part, 1), std::span(values, 100)),
               std::runtime_error);
}

TEST_F(CudaCollectiveFakeTest, WaysThatTheDevicesDoNotAllow) {
  CollectiveHarness shared({0, 0});
  EXPECT_THAT(message_of([&] { shared.make(ReduceKind::nccl); }),
              HasSubstr("NCCL wants a GPU of its own for every replica"));
  CollectiveHarness apart({0, 1});
  EXPECT_THAT(message_of([&] { apart.make(ReduceKind::device); }),
              HasSubstr("only replicas that share one GPU"));
  auto host = make_host_device();
  apart.replicas()[1].device = host.get();
  EXPECT_THAT(message_of([&] { apart.make(ReduceKind::automatic); }),
              HasSubstr("cpu:0 is no CUDA device"));
}

TEST_F(CudaCollectiveFakeTest, APluginThatIsMissing) {
  CollectiveHarness harness({0, 1});
  const std::string folder = ::testing::TempDir() + "/no_plugins";
  std::filesystem::create_directories(folder);
  setenv("STOKER_PLUGIN_DIR", folder.c_str(), 1);
  EXPECT_EQ(message_of([&] { harness.make(ReduceKind::nccl); }),
            "cannot sum over GPUs: libstoker_cuda_train.so is not in " + folder);
}

TEST(BestReduction, IsChosenByTheDevices) {
  using Ordinals = std::vector<int>;
  EXPECT_EQ(best_reduction(Ordinals{0}, false), ReduceKind::device);
  EXPECT_EQ(best_reduction(Ordinals{1, 1}, false), ReduceKind::device);
  EXPECT_EQ(best_reduction(Ordinals{0, 1}, false), ReduceKind::nccl);
  EXPECT_EQ(best_reduction(Ordinals{0}, true), ReduceKind::nccl);
  EXPECT_EQ(best_reduction(Ordinals{0, 1, 1}, false), ReduceKind::host);
  EXPECT_EQ(best_reduction(Ordinals{1, 1}, true), ReduceKind::host);
}

}  // namespace
}  // namespace stoker::testing
