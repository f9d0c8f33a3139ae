// Tests of sums and messages over several processes, which are threads here.
#include "train/collective/process/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/support/thread_processes.h"
#include "tests/train/ranks_fixture.h"
#include "train/collective/collective.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

// Values of very different magnitude, so that another order of summation gives other bits.
std::vector<Floats> group_parts(int parts, int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::vector<Floats> values(static_cast<size_t>(parts), Floats(static_cast<size_t>(count)));
  for (Floats& part : values) {
    for (float& value : part) {
      value = std::ldexp(mantissa(generator), static_cast<int>(generator() % 24));
    }
  }
  return values;
}

Floats sum_in_order(const std::vector<Floats>& parts) {
  Floats sum = parts[0];
  for (size_t part = 1; part < parts.size(); ++part) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += parts[part][i];
  }
  return sum;
}

// Distributes `parts` in order over `processes` of `local` ranks each, and returns every rank's
// result; sums twice unless `in_place`. In place: the result is the rank's first part.
std::vector<Floats> reduce_in_group(std::vector<Floats> parts, int processes, int local,
                                    bool in_place, bool messages = true) {
  const int ranks = processes * local;
  const size_t each = parts.size() / static_cast<size_t>(ranks);
  std::vector<Floats> results(static_cast<size_t>(ranks), Floats(parts[0].size(), -1.0f));
  ThreadProcesses group(processes);
  const auto thrown = group.run(
      [&](ProcessGroup& process) {
        const auto collective = make_host_collective(std::make_shared<Ranks>(local, &process));
        EXPECT_EQ(collective->size(), ranks);
        run_ranks(local, [&](int rank) {
          const size_t global = static_cast<size_t>(process.rank() * local + rank);
          std::vector<const float*> mine;
          for (size_t i = 0; i < each; ++i) mine.push_back(parts[global * each + i].data());
          if (in_place) {
            collective->all_reduce(rank, mine, parts[global * each]);
            results[global] = parts[global * each];
            return;
          }
          for (int round = 0; round < 2; ++round) {
            std::fill(results[global].begin(), results[global].end(), -1.0f);
            collective->all_reduce(rank, mine, results[global]);
          }
        });
      },
      messages);
  for (const std::string& each_thrown : thrown) EXPECT_EQ(each_thrown, "");
  return results;
}

// The other tests rely on this: the fake sees bytes that change too early.
TEST(ThreadProcesses, AChangeBeforeAGatherEndsIsSeen) {
  ThreadProcesses group(2);
  const auto thrown = group.run(
      [](ProcessGroup& process) {
        std::vector<std::byte> own(9), all(18);
        const auto ticket = process.start_all_gather(own, all);
        own[8] = std::byte{1};
        process.end_all_gather(ticket);
      },
      false);
  for (const std::string& each : thrown) EXPECT_NE(each.find("were changed before"), each.npos);
}

TEST(ProcessCollective, SumsAreThoseOfOneProcess) {
  for (const int64_t count :
       {1, 17, 5000, (128 << 10), 3 * (128 << 10) + 5, 11 * (128 << 10) + 1}) {
    const auto parts = group_parts(12, count);
    const Floats expected = sum_in_order(parts);
    for (const auto& [processes, local] :
         {std::pair{1, 2}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {4, 1}, {6, 1}, {3, 2}}) {
      for (const Floats& result : reduce_in_group(parts, processes, local, false)) {
        ASSERT_TRUE(same_bits(result, expected)) << count << ": " << processes << " x " << local;
      }
    }
  }
}

TEST(ProcessCollective, SumsAreTheSameWithoutMessages) {
  const auto parts = group_parts(12, 5000);
  const Floats expected = sum_in_order(parts);
  for (const auto& [processes, local] : {std::pair{2, 1}, {2, 3}, {3, 2}, {6, 1}}) {
    for (const Floats& result : reduce_in_group(parts, processes, local, false, false)) {
      ASSERT_TRUE(same_bits(result, expected)) << processes << " x " << local;
    }
    for (const Floats& result :
         reduce_in_group(group_parts(processes * local, 99), processes, local, true, false)) {
      ASSERT_TRUE(same_bits(result, sum_in_order(group_parts(processes * local, 99))));
    }
  }
}

// An engine with one micro-batch may have its sum in its gradient buffer.
TEST(ProcessCollective, AResultMayBeThePartItself) {
  const auto parts = group_parts(4, 5 * (128 << 10) + 3);
  const Floats expected = sum_in_order(parts);
  for (const auto& [processes, local] : {std::pair{1, 4}, {2, 2}, {4, 1}}) {
    for (const Floats& result : reduce_in_group(parts, processes, local, true)) {
      ASSERT_TRUE(same_bits(result, expected)) << processes << " x " << local;
    }
  }
}

TEST(ProcessCollective, BroadcastsFromAnyReplica) {
  for (int root = 0; root < 6; ++root) {
    std::vector<Floats> values(6);
    for (int i = 0; i < 6; ++i) values[static_cast<size_t>(i)].assign(1000, static_cast<float>(i));
    ThreadProcesses group(3);
    group.run([&](ProcessGroup& process) {
      const auto collective = make_host_collective(std::make_shared<Ranks>(2, &process));
      run_ranks(2, [&](int rank) {
        collective->broadcast(rank, values[static_cast<size_t>(process.rank() * 2 + rank)], root);
        collective->barrier(rank);
      });
    });
    for (const Floats& each : values) EXPECT_EQ(each, Floats(1000, static_cast<float>(root)));
  }
}

// If any process fails, all others end, whether they wait for it or for a third one.
TEST(ProcessCollective, AFailingProcessEndsAll) {
  for (int faulty = 0; faulty < 3; ++faulty) {
    ThreadProcesses group(3);
    const auto thrown = group.run([&](ProcessGroup& process) {
      const auto collective = make_host_collective(std::make_shared<Ranks>(2, &process));
      std::vector<std::string> errors(2);
      run_ranks(2, [&](int rank) {
        try {
          Floats values(300'000, 1.0f);
          const float* part = values.data();
          collective->all_reduce(rank, {&part, 1}, values);
          if (process.rank() == faulty && rank == 1) throw std::runtime_error("broke down");
          collective->all_reduce(rank, {&part, 1}, values);
        } catch (const std::exception& error) {
          process.abort(error.what());
          collective->abort();
          errors[static_cast<size_t>(rank)] = error.what();
        }
      });
      throw std::runtime_error(errors[0]);
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& error = thrown[static_cast<size_t>(rank)];
      const std::string other = "process " + std::to_string(faulty) + " failed: broke down";
      EXPECT_THAT(error, HasSubstr(rank == faulty ? "" : other));
      EXPECT_NE(error, "");  // its own rank 0 gets rank 1's error in its next wait
    }
  }
}

void check_gathers(int size, int root, bool messages) {
  ThreadProcesses group(size);
  const auto thrown = group.run(
      [&](ProcessGroup& process) {
        const int rank = process.rank();
        const auto values = all_gather(process, 10 + rank);
        ASSERT_EQ(values.size(), static_cast<size_t>(size));
        for (int i = 0; i < size; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 10 + i);
        EXPECT_EQ(all_reduce_max(process, -rank), 0);
        EXPECT_EQ(all_reduce_max(process, rank == root ? 7 : 3), 7);
        std::vector<int> data(1000, rank == root ? root + 1 : -1);
        broadcast(process, std::as_writable_bytes(std::span(data)), root);
        EXPECT_EQ(data, std::vector<int>(1000, root + 1));
        const std::vector<std::byte> mine(static_cast<size_t>(rank), std::byte{9});
        const auto all = gather(process, mine);
        ASSERT_EQ(all.size(), rank == 0 ? static_cast<size_t>(size) : 0);
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(all[i], std::vector<std::byte>(i, std::byte{9}));
        }
      },
      messages);
  for (const std::string& each : thrown) EXPECT_EQ(each, "");
}

TEST(ProcessGroup, GathersAndBroadcasts) {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (int root = 0; root < size; ++root) {
      for (const bool messages : {true, false}) check_gathers(size, root, messages);
    }
  }
}

TEST(ProcessGroup, LeavingWithoutFinishingIsAFailure) {
  ThreadProcesses group(2);
  const auto thrown = group.run([](ProcessGroup& process) {
    if (process.rank() == 1) throw std::runtime_error("no such folder");
    all_gather(process, 1);
  });
  EXPECT_THAT(thrown[0], HasSubstr("process 1 failed: no such folder"));
}

}  // namespace
}  // namespace stoker
