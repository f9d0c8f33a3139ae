// Tests of sums of gradients that travel in fewer bits: over threads, processes and devices.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/thread_processes.h"
#include "tests/train/ranks_fixture.h"
#include "train/collective/device.h"
#include "train/collective/wire/codec.h"
#include "train/collective/wire/collective.h"

namespace stoker {
namespace {

using Floats = std::vector<float>;
constexpr GradWire kWires[] = {GradWire::fp32, GradWire::bf16, GradWire::int8, GradWire::one_bit};
constexpr int64_t kGradients = 3001, kFloats = 3050;

Floats random_gradients(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 0.1F);
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

SumOptions options_of(GradWire wire) {
  return {.wire = wire, .gradient_floats = kGradients, .buffer_floats = kFloats, .seed = 7};
}

Floats values_of(int step, int rank, int part) {
  return random_gradients(kFloats, static_cast<unsigned>(step * 1000 + rank * 10 + part));
}

struct WireOutcome {
  std::vector<std::vector<Floats>> results;  // by rank and step
  std::vector<float> residuals;              // at the end
  Traffic traffic;                           // of all ranks
};

// Sums two buffers of each rank, step after step; `begin` goes on where another run ended.
void sum_steps(Collective& collective, int first_rank, int local, int begin, int end,
               WireOutcome& outcome) {
  run_ranks(local, [&](int rank) {
    const int all = first_rank + rank;
    for (int step = begin; step < end; ++step) {
      const Floats one = values_of(step, all, 0), two = values_of(step, all, 1);
      const float* buffers[] = {one.data(), two.data()};
      Floats result(kFloats, -1.0F);
      collective.all_reduce(rank, buffers, result);
      outcome.results[static_cast<size_t>(all)].push_back(std::move(result));
    }
  });
}

WireOutcome run_wire_threads(GradWire wire, int ranks, int begin, int end,
                             const Floats& residuals = {}) {
  const auto collective = make_wire_collective(std::make_shared<Ranks>(ranks), options_of(wire));
  EXPECT_EQ(collective->size(), ranks);
  collective->wire()->restore(begin, residuals);
  WireOutcome outcome;
  outcome.results.resize(static_cast<size_t>(ranks));
  sum_steps(*collective, 0, ranks, begin, end, outcome);
  outcome.residuals = collective->wire()->residuals();
  outcome.traffic = collective->traffic();
  return outcome;
}

WireOutcome run_wire_processes(GradWire wire, int processes, int local, int begin, int end,
                               bool messages, const Floats& residuals = {}) {
  WireOutcome outcome;
  outcome.results.resize(static_cast<size_t>(processes * local));
  std::vector<Traffic> traffic(static_cast<size_t>(processes));
  ThreadProcesses group(processes);
  const auto thrown = group.run(
      [&](ProcessGroup& process) {
        const auto collective =
            make_wire_collective(std::make_shared<Ranks>(local, &process), options_of(wire));
        collective->wire()->restore(begin, residuals);
        sum_steps(*collective, process.rank() * local, local, begin, end, outcome);
        const Floats kept = collective->wire()->residuals();
        if (process.rank() == 0) outcome.residuals = kept;
        traffic[static_cast<size_t>(process.rank())] = collective->traffic();
      },
      messages);
  for (const std::string& each : thrown) EXPECT_EQ(each, "");
  for (const Traffic& each : traffic) outcome.traffic += each;
  return outcome;
}

TEST(WireCollective, AllRanksGetTheSameBitsHoweverTheyAreDivided) {
  for (const GradWire wire : kWires) {
    for (const int ranks : {2, 3, 4, 6}) {
      const WireOutcome threads = run_wire_threads(wire, ranks, 0, 3);
      for (const auto& result : threads.results) {
        for (size_t step = 0; step < 3; ++step) {
          ASSERT_TRUE(same_bits(result[step], threads.results[0][step])) << to_string(wire);
        }
      }
      for (const int local : {1, 2, 3}) {
        if (ranks % local != 0 || ranks == local) continue;
        for (const bool messages : {true, false}) {
          const WireOutcome many = run_wire_processes(wire, ranks / local, local, 0, 3, messages);
          EXPECT_EQ(many.results, threads.results) << to_string(wire) << ' ' << ranks;
          EXPECT_EQ(many.residuals, threads.residuals);
          EXPECT_EQ(many.traffic, threads.traffic);
        }
      }
    }
  }
}

// The plain sums, and what was lost: all that was given was sent or is kept.
TEST(WireCollective, WhatWasSentAndWhatIsKeptIsWhatWasGiven) {
  constexpr int kRanks = 3, kSteps = 20;
  for (const GradWire wire : {GradWire::int8, GradWire::one_bit}) {
    const WireOutcome outcome = run_wire_threads(wire, kRanks, 0, kSteps);
    ASSERT_EQ(outcome.residuals.size(), static_cast<size_t>((kRanks + 1) * kGradients));
    std::vector<double> given(kGradients), sent(kGradients);
    for (int step = 0; step < kSteps; ++step) {
      for (int rank = 0; rank < kRanks; ++rank) {
        const Floats one = values_of(step, rank, 0), two = values_of(step, rank, 1);
        for (size_t i = 0; i < kGradients; ++i) given[i] += double{one[i]} + double{two[i]};
      }
      const Floats& sum = outcome.results[0][static_cast<size_t>(step)];
      for (size_t i = 0; i < kGradients; ++i) sent[i] += sum[i];
    }
    double lost = 0;
    for (size_t i = 0; i < kGradients; ++i) {
      double kept = 0;
      for (size_t row = 0; row <= kRanks; ++row) kept += outcome.residuals[row * kGradients + i];
      lost += std::fabs(kept);
      ASSERT_NEAR(sent[i] + kept, given[i], 2e-5) << to_string(wire) << " at " << i;
    }
    EXPECT_GT(lost, 0);
  }
}

TEST(WireCollective, WhatFollowsTheGradientsIsFp32) {
  for (const GradWire wire : kWires) {
    const WireOutcome outcome = run_wire_threads(wire, 2, 0, 1);
    for (int64_t i = kGradients; i < kFloats; ++i) {
      const auto at = static_cast<size_t>(i);
      const float sum = (values_of(0, 0, 0)[at] + values_of(0, 0, 1)[at]) +
                        (values_of(0, 1, 0)[at] + values_of(0, 1, 1)[at]);
      ASSERT_EQ(outcome.results[1][0][at], sum);
    }
  }
}

TEST(WireCollective, GoesOnExactlyWhereItWasSaved) {
  for (const GradWire wire : {GradWire::int8, GradWire::one_bit}) {
    const WireOutcome whole = run_wire_threads(wire, 4, 0, 6);
    const WireOutcome first = run_wire_threads(wire, 4, 0, 3);
    const WireOutcome second = run_wire_processes(wire, 2, 2, 3, 6, true, first.residuals);
    EXPECT_EQ(second.residuals, whole.residuals) << to_string(wire);
    for (size_t step = 0; step < 3; ++step) {
      EXPECT_EQ(second.results[3][step], whole.results[3][step + 3]);
    }
    EXPECT_NE(run_wire_threads(wire, 4, 3, 6).results, second.results) << "residuals are used";
  }
}

TEST(WireCollective, CountsTheEncodedBytesOfBothDirections) {
  for (const GradWire wire : kWires) {
    const int64_t bytes = WireLayout(wire, kGradients, kFloats).bytes();
    for (const int ranks : {2, 4}) {
      const Traffic traffic = run_wire_threads(wire, ranks, 0, 3).traffic;
      EXPECT_EQ(traffic.gradients_sent, 3 * 2 * (ranks - 1) * bytes);
      EXPECT_EQ(traffic.gradients_received, traffic.gradients_sent);
      EXPECT_EQ(traffic.weights_sent + traffic.weights_received, 0);
    }
  }
}

TEST(WireCollective, ANaNOfOneReachesAll) {
  for (const GradWire wire : kWires) {
    const auto collective = make_wire_collective(std::make_shared<Ranks>(3), options_of(wire));
    run_ranks(3, [&](int rank) {
      Floats values = values_of(0, rank, 0);
      if (rank == 1) values[1500] = std::numeric_limits<float>::infinity();
      const float* buffers[] = {values.data()};
      Floats result(kFloats);
      collective->all_reduce(rank, buffers, result);
      EXPECT_FALSE(std::isfinite(result[1500])) << to_string(wire);
      EXPECT_TRUE(std::isfinite(result[kGradients]));
    });
    for (const float kept : collective->wire()->residuals()) ASSERT_TRUE(std::isfinite(kept));
  }
}

// On devices a buffer arrives in ranges and pieces; the bits are those of whole buffers.
TEST(WireCollective, OverDevicesTheBitsAreTheSame) {
  for (const GradWire wire : {GradWire::bf16, GradWire::int8, GradWire::one_bit}) {
    const WireOutcome expected = run_wire_threads(wire, 2, 0, 3);
    auto device = make_host_device();
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<DeviceReplica> replicas;
    for (int rank = 0; rank < 2; ++rank) {
      streams.push_back(device->make_stream());
      replicas.push_back({device.get(), streams.back().get()});
    }
    const auto collective = make_staged_collective(
        replicas, make_wire_collective(std::make_shared<Ranks>(2), options_of(wire)), 1000);
    ASSERT_NE(collective->wire(), nullptr);
    run_ranks(2, [&](int rank) {
      Stream& stream = *streams[static_cast<size_t>(rank)];
      for (int step = 0; step < 3; ++step) {
        const Floats one = values_of(step, rank, 0), two = values_of(step, rank, 1);
        const float* buffers[] = {one.data(), two.data()};
        Floats result(kFloats);
        for (const BufferRange range : {BufferRange{2000, kFloats}, BufferRange{0, 2000}}) {
          collective->ranges()->start(rank, buffers, result, range);
        }
        collective->ranges()->finish(rank);
        stream.synchronize();
        EXPECT_TRUE(same_bits(result, expected.results[0][static_cast<size_t>(step)]))
            << to_string(wire) << " step " << step;
      }
    });
    EXPECT_EQ(collective->traffic(), expected.traffic);
  }
}

}  // namespace
}  // namespace stoker
