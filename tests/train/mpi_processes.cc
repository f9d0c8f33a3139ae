// mpirun runs this program as several processes. It compares sums through the MPI plugin with the
// same sums in one process, and tests what happens when a process fails.
//
//   mpirun -np N mpi_processes sums | fail | vanish | time FLOATS PARTS
// Exit code: 0 if everything was correct.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <future>
#include <random>
#include <stdexcept>

#include "bench/report/program.h"
#include "train/collective/collective.h"
#include "train/collective/process/process_group.h"
#include "train/collective/wire/collective.h"

namespace stoker {
namespace {

using Floats = std::vector<float>;

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

Floats random_part(int part, size_t count) {
  std::mt19937 generator(static_cast<unsigned>(part + 1));
  Floats values(count);
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(generator() % 10007) - 5003,
                       static_cast<int>(generator() % 24));
  }
  return values;
}

// All-reduces `parts` parts per replica, `local` replicas per process, and checks every bit.
void check_sum(ProcessGroup& group, int local, int parts, size_t count) {
  const int all = group.size() * local * parts;
  std::vector<Floats> values;
  for (int part = 0; part < all; ++part) values.push_back(random_part(part, count));
  Floats expected = values[0];
  for (int part = 1; part < all; ++part) {
    for (size_t i = 0; i < count; ++i) expected[i] += values[static_cast<size_t>(part)][i];
  }
  const auto collective = make_host_collective(std::make_shared<Ranks>(local, &group));
  std::vector<Floats> results(static_cast<size_t>(local), Floats(count));
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < local; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      std::vector<const float*> mine;
      const int first = (group.rank() * local + rank) * parts;
      for (int i = 0; i < parts; ++i) mine.push_back(values[static_cast<size_t>(first + i)].data());
      collective->all_reduce(rank, mine, results[static_cast<size_t>(rank)]);
      collective->barrier(rank);
    }));
  }
  for (auto& rank : ranks) rank.get();
  for (const Floats& result : results) {
    require(std::memcmp(result.data(), expected.data(), 4 * count) == 0,
            "the sum of " + std::to_string(count) + " floats has other bits");
  }
}

// Sums gradients in fewer bits over the processes, and in threads of one of them: all bits agree.
void check_wire(ProcessGroup& group, GradWire wire, int local) {
  constexpr size_t kCount = 300'007;
  const SumOptions options{
      .wire = wire, .gradient_floats = 300'000, .buffer_floats = kCount, .seed = 3};
  const int all = group.size() * local;
  const auto over_processes = make_wire_collective(std::make_shared<Ranks>(local, &group), options);
  const auto over_threads = make_wire_collective(std::make_shared<Ranks>(all), options);
  const auto sum = [](Collective& collective, int first, int count) {
    std::vector<Floats> results(static_cast<size_t>(count), Floats(kCount));
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < count; ++rank) {
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        for (int step = 0; step < 2; ++step) {
          const Floats part = random_part(first + rank + 100 * step, kCount);
          const float* buffers[] = {part.data()};
          collective.all_reduce(rank, buffers, results[static_cast<size_t>(rank)]);
        }
      }));
    }
    for (auto& rank : ranks) rank.get();
    return results;
  };
  const auto expected = sum(*over_threads, 0, all);
  for (const Floats& result : sum(*over_processes, group.rank() * local, local)) {
    require(std::memcmp(result.data(), expected[0].data(), 4 * kCount) == 0,
            std::string("gradients as ") + to_string(wire) + " have another sum");
  }
  const Floats kept = over_processes->wire()->residuals();
  if (group.rank() == 0) require(kept == over_threads->wire()->residuals(), "residuals");
}

void check_messages(ProcessGroup& group) {
  const std::vector<int64_t> ranks = all_gather(group, group.rank());
  for (int i = 0; i < group.size(); ++i) require(ranks[static_cast<size_t>(i)] == i, "all_gather");
  std::vector<char> text(100'000'000, group.rank() == 0 ? 'x' : ' ');
  broadcast(group, std::as_writable_bytes(std::span(text)));
  require(text.front() == 'x' && text.back() == 'x', "broadcast");
  const auto all = gather(group, std::as_bytes(std::span(text).first(1000)));
  require(all.size() == (group.rank() == 0 ? static_cast<size_t>(group.size()) : 0), "gather");
}

void time_sums(ProcessGroup& group, size_t count, int parts) {
  const auto collective = make_host_collective(std::make_shared<Ranks>(1, &group));
  std::vector<Floats> values;
  std::vector<const float*> mine;
  for (int i = 0; i < parts; ++i) values.push_back(random_part(i, count));
  for (const Floats& part : values) mine.push_back(part.data());
  Floats result(count);
  double best_ms = 1e9;
  const std::clock_t cpu_begin = std::clock();
  for (int round = 0; round < 20; ++round) {
    collective->barrier(0);
    const auto begin = std::chrono::steady_clock::now();
    collective->all_reduce(0, mine, result);
    const auto end = std::chrono::steady_clock::now();
    best_ms = std::min(best_ms, std::chrono::duration<double, std::milli>(end - begin).count());
  }
  if (group.rank() == 0) {
    std::printf("%zu floats, %d parts, %d processes: best of 20: %.2f ms, CPU %.2f ms\n", count,
                parts, group.size(), best_ms,
                1e3 * static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC / 20);
  }
}

int run_mode(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const Launch launch = find_launch(process_environment());
  const auto group = open_mpi_group(launch);
  if (mode == "sums") {
    check_messages(*group);
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{1'500'001}}) {
      for (const int local : {1, 2}) check_sum(*group, local, 2, count);
    }
    for (const auto& [name, wire] : kGradWires) {
      for (const int local : {1, 2}) check_wire(*group, wire, local);
    }
  } else if (mode == "fail") {
    check_messages(*group);
    if (group->rank() == 1) throw std::runtime_error("told to fail");
    check_sum(*group, 1, 1, 1'500'001);
  } else if (mode == "vanish") {
    check_messages(*group);
    if (group->rank() == 1) std::abort();
    check_sum(*group, 1, 1, 1'500'001);
  } else if (mode == "time" && argc == 4) {
    time_sums(*group, static_cast<size_t>(std::atol(argv[2])), std::atoi(argv[3]));
  } else {
    throw std::runtime_error("unknown mode '" + mode + "'");
  }
  group->finish();
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("mpi_processes", stoker::run_mode, argc, argv);
}
