// Replicas on GPUs that work like a trainer's: parts come late, are summed, and the sum is read
// later on the stream. Device memory is accessed only through copies, so that a fake GPU and a real
// one work.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "staging/device_list.h"
#include "staging/normalise.h"
#include "tests/support/wait_until.h"
#include "train/collective/cuda/collective.h"
#include "train/collective/device_norm_exchange.h"

namespace stoker::testing {

class CollectiveHarness {
 public:
  static constexpr int kSteps = 8;
  static constexpr int64_t kCount = 1000;

  explicit CollectiveHarness(const std::vector<int>& ordinals) {
    for (int ordinal : ordinals) {
      devices_.push_back(make_cuda_device(ordinal));
      streams_.push_back(devices_.back()->make_stream());
      replicas_.push_back({devices_.back().get(), streams_.back().get()});
    }
  }

  std::vector<DeviceReplica>& replicas() { return replicas_; }

  std::unique_ptr<Collective> make(ReduceKind how, int64_t bf16_floats = 0) {
    CudaCollectiveOptions options;
    options.how = how;
    options.sum.wire = bf16_floats > 0 ? GradWire::bf16 : GradWire::fp32;
    options.sum.gradient_floats = bf16_floats;
    return make_cuda_collective(replicas_, std::move(options));
  }

  // Makes a collective whose sum stays with a parameter server on the first replica's GPU.
  std::unique_ptr<Collective> make_server(int parts) {
    Device& device = *devices_.front();
    server_ = std::make_unique<Server>();
    server_->stream = device.make_stream();
    server_->read = device.make_event();
    server_->sum = device.allocate(kCount * sizeof(float), MemoryKind::device);
    CudaCollectiveOptions options;
    options.how = ReduceKind::server_device;
    options.push = {{&device, server_->stream.get()}, parts, kCount};
    return make_cuda_collective(replicas_, std::move(options));
  }

  // Runs each replica on its own thread and checks the sums of all steps. A part is summed in
  // `pieces` ranges; each comes late while the one before is summed.
  void check(Collective& collective, int parts, int64_t bf16_floats = 0, int pieces = 1) {
    check_each([&](int rank) { return train(collective, rank, parts, bf16_floats, pieces); });
  }

  // Lets batch norms of the replicas meet, and checks what each of them gets.
  void check_norms() {
    DeviceNormExchange norms(static_cast<int>(replicas_.size()), kCount);
    for (size_t i = 0; i < replicas_.size(); ++i) norms.join(static_cast<int>(i), replicas_[i]);
    check_each([&](int rank) { return meet(norms, rank); });
  }

 private:
  // Its stream reads the sums, and replicas go on when it has.
  struct Server {
    std::unique_ptr<Event> read;
    std::unique_ptr<Memory> sum;
    std::unique_ptr<Stream> stream;
  };

  // Each replica's part must return "", or else what is wrong.
  void check_each(const std::function<std::string(int rank)>& part) {
    std::vector<std::string> wrong(replicas_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < replicas_.size(); ++rank) {
      threads.emplace_back([&, rank] { wrong[rank] = part(static_cast<int>(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& each : wrong) EXPECT_EQ(each, "");
  }

  static int64_t numbers_of(int step) { return kCount - 100 * (step % 3); }

  std::string meet(DeviceNormExchange& norms, int rank) {
    const auto& [device, stream] = replicas_[static_cast<size_t>(rank)];
    const auto ranks = static_cast<int64_t>(replicas_.size());
    const size_t floats = kSteps * kCount * sizeof(float);
    auto given = device->allocate(floats, MemoryKind::pinned);
    auto got = device->allocate(floats * replicas_.size(), MemoryKind::pinned);
    auto* values = reinterpret_cast<float*>(given->data());
    auto* found = reinterpret_cast<float*>(got->data());
    for (int step = 0; step < kSteps; ++step) {
      const int64_t count = numbers_of(step);
      const size_t bytes = static_cast<size_t>(count) * sizeof(float);
      for (int64_t i = 0; i < count; ++i) values[step * kCount + i] = value_of(step, rank, 0, i);
      stream->call([step, rank] { be_late(std::chrono::microseconds((step + rank) % 4 * 150)); });
      stream->copy(norms.place(rank, count), values + step * kCount, bytes,
                   CopyKind::host_to_device);
      const DeviceNormExchange::Numbers all = norms.meet(rank, step);
      for (int64_t other = 0; other < ranks; ++other) {
        stream->copy(found + (step * ranks + other) * kCount, all.floats + other * all.stride,
                     bytes, CopyKind::device_to_host);
      }
    }
    stream->synchronize();
    for (int step = 0; step < kSteps; ++step) {
      for (int64_t other = 0; other < ranks; ++other) {
        for (int64_t i = 0; i < numbers_of(step); ++i) {
          if (found[(step * ranks + other) * kCount + i] !=
              value_of(step, static_cast<int>(other), 0, i)) {
            return "step " + std::to_string(step) + ", number " + std::to_string(i) + " of rank " +
                   std::to_string(other) + " is wrong at rank " + std::to_string(rank);
          }
        }
      }
    }
    return "";
  }

  static float value_of(int step, int rank, int part, int64_t i) {
    return static_cast<float>((step * 31 + rank * 17 + part * 7 + i * 13) % 1009) / 77.0F - 6.0F;
  }

  std::string train(Collective& collective, int rank, int parts, int64_t bf16_floats, int pieces) {
    const auto& [device, stream] = replicas_[static_cast<size_t>(rank)];
    const auto part_bytes = static_cast<size_t>(kCount) * sizeof(float);
    const size_t step_bytes = part_bytes * static_cast<size_t>(parts);
    auto given = device->allocate(step_bytes * kSteps, MemoryKind::pinned);
    auto summed = device->allocate(part_bytes * kSteps, MemoryKind::pinned);
    auto memory = device->allocate(step_bytes + part_bytes, MemoryKind::device);
    auto* values = reinterpret_cast<float*>(given->data());
    for (int step = 0; step < kSteps; ++step) {
      for (int64_t i = 0; i < parts * kCount; ++i) {
        values[step * parts * kCount + i] =
            value_of(step, rank, static_cast<int>(i / kCount), i % kCount);
      }
    }
    auto* base = reinterpret_cast<float*>(memory->data());
    std::vector<const float*> sources;
    for (int part = 0; part < parts; ++part) sources.push_back(base + part * kCount);
    float* result =
        server_ ? reinterpret_cast<float*>(server_->sum->data()) : base + parts * kCount;
    Stream& reader = server_ ? *server_->stream : *stream;
    const bool reads = !server_ || rank == 0;
    for (int step = 0; step < kSteps; ++step) {
      for (int piece = pieces - 1; piece >= 0; --piece) {
        const BufferRange range{kCount * piece / pieces, kCount * (piece + 1) / pieces};
        stream->call([step, rank, piece] {
          be_late(std::chrono::microseconds((step + rank + piece) % 4 * 150));
        });
        for (int part = 0; part < parts; ++part) {
          const int64_t at = part * kCount + range.begin;
          stream->copy(base + at, values + step * parts * kCount + at,
                       static_cast<size_t>(range.end - range.begin) * sizeof(float),
                       CopyKind::host_to_device);
        }
        if (pieces > 1) {
          collective.ranges()->start(rank, sources, std::span(result, kCount), range);
        }
      }
      if (pieces > 1) {
        collective.ranges()->finish(rank);
      } else {
        collective.all_reduce(rank, sources, std::span(result, kCount));
      }
      if (reads) {
        reader.copy(summed->data() + static_cast<size_t>(step) * part_bytes, result, part_bytes,
                    CopyKind::device_to_host);
      }
      if (!server_) continue;
      if (rank == 0) reader.record(*server_->read);
      collective.barrier(rank);
      stream->wait(*server_->read);
    }
    stream->synchronize();
    if (!reads) return "";
    return difference(reinterpret_cast<const float*>(summed->data()), parts, bf16_floats);
  }

  std::string difference(const float* sums, int parts, int64_t bf16_floats) const {
    const int all_parts = static_cast<int>(replicas_.size()) * parts;
    for (int step = 0; step < kSteps; ++step) {
      for (int64_t i = 0; i < kCount; ++i) {
        double sum = 0;
        double size = 0;
        for (int each = 0; each < all_parts; ++each) {
          const float value = value_of(step, each / parts, each % parts, i);
          sum += value;
          size += std::abs(value);
        }
        const float found = sums[step * kCount + i];
        uint32_t bits = 0;
        std::memcpy(&bits, &found, sizeof bits);
        if (i < bf16_floats && (bits & 0xFFFF) != 0) {
          return "element " + std::to_string(i) + " did not travel as bf16";
        }
        if (std::abs(found - sum) > size * (i < bf16_floats ? 0x1p-7 : 1e-6)) {
          return "step " + std::to_string(step) + ", element " + std::to_string(i) + ": " +
                 std::to_string(found) + " is not " + std::to_string(sum);
        }
      }
    }
    return "";
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<DeviceReplica> replicas_;
  std::unique_ptr<Server> server_;  // null: every rank has the sum
};

}  // namespace stoker::testing
