// What k = 0 to 3 staging slots buy: the idle gap between two steps on the compute stream, images/s
// and the host's cost per batch, between steps of a model (--model) or emulated ones of a given
// length. Prints one JSON object.
//
// The feed is always ahead (slabs are committed as they are), so a gap is staging's alone. Gaps
// come from timing events around each step; the first one is recorded behind the wait for the
// batch. On a host device copies are the host's work, and with 0 slots there are none.
//
//   staging_depth_bench --device cuda:0 --rows 2048 --size 32 --model airnet
//   staging_depth_bench --device cuda:0 --rows 2048 --size 32 --step-ms 10     a CIFAR-10 batch
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/step_work.h"
#include "staging/device_list.h"
#include "staging/stager.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kRingCapacity = 4;
constexpr int kWarmupSteps = 5;

struct Arguments {
  std::string device = "cpu:0";
  int rows = 2048;
  int size = 32;
  int steps = 100;
  double step_ms = 10;
  std::string model;
};

double cpu_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// CPU time of staging: all threads of the process, except what this thread does outside of it
// (queueing the emulated step, waiting for it).
class StagingCost {
 public:
  void start() {
    process_us_ = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
    thread_us_ = cpu_us(CLOCK_THREAD_CPUTIME_ID);
    inside_us_ = 0;
  }
  // Runs a part of staging on this thread.
  template <class Part>
  void inside(Part part) {
    const double before = cpu_us(CLOCK_THREAD_CPUTIME_ID);
    part();
    inside_us_ += cpu_us(CLOCK_THREAD_CPUTIME_ID) - before;
  }
  double microseconds() const {
    const double thread = cpu_us(CLOCK_THREAD_CPUTIME_ID) - thread_us_;
    return cpu_us(CLOCK_PROCESS_CPUTIME_ID) - process_us_ - thread + inside_us_;
  }

 private:
  double process_us_ = 0, thread_us_ = 0, inside_us_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

BatchShape shape_of(const Arguments& arguments) {
  return {.rows = arguments.rows, .height = arguments.size, .width = arguments.size};
}

struct Marks {  // of one step, on the compute stream
  std::unique_ptr<Event> begin, end;
};

Json summarise(const Arguments& arguments, const std::vector<Marks>& marks,
               const std::vector<double>& next_us, double host_us) {
  std::vector<double> gaps;
  for (size_t step = kWarmupSteps; step < marks.size(); ++step) {
    gaps.push_back(marks[step].begin->elapsed_ms(*marks[step - 1].end));
  }
  const auto count = static_cast<double>(gaps.size());
  const double total_ms = marks.back().end->elapsed_ms(*marks[kWarmupSteps - 1].end);
  return {{"gap_ms_median", median(gaps)},
          {"gap_ms_max", *std::max_element(gaps.begin(), gaps.end())},
          {"images_per_second", 1000.0 * arguments.rows * count / total_ms},
          {"step_ms", total_ms / count},
          {"host_us_per_batch", host_us / count},
          {"next_us_median", median(next_us)}};
}

// Labels and weights of a batch, once for each slab; pixels stay as they are.
void fill(const Slab& slab, int rows) {
  for (int row = 0; row < rows; ++row) {
    slab.labels[row] = row % 10;
    slab.weights[row] = 1;
  }
}

// One depth: a filling thread, a Stager with `slots`, and a consumer that queues a step per batch.
Json run_depth(Device& device, const Arguments& arguments, StepWork& work, int slots) {
  const BatchLayout layout(shape_of(arguments));
  Stream& compute = work.stream();
  PinnedRing ring(device, layout, kRingCapacity);
  const Step end = kWarmupSteps + arguments.steps;
  std::vector<Marks> marks;
  for (Step step = 0; step < end; ++step) {
    marks.push_back({device.make_event(true), device.make_event(true)});
  }
  std::thread filler([&] {
    for (Step step = 0; step < end && ring.wait_free(step); ++step) {
      const Slab& slab = ring.begin(step);
      if (step < kRingCapacity) fill(slab, arguments.rows);
      ring.commit(step);
    }
  });
  std::vector<double> next_us;
  StagingCost cost;
  double host_us = 0;
  {
    Stager stager(device, ring, slots, 0, end);
    for (Step step = 0; step < end; ++step) {
      // As a trainer that reads its loss late: the host is two steps ahead at most.
      if (step >= 2) marks[step - 2].end->synchronize();
      if (step == kWarmupSteps) cost.start();
      DeviceBatch batch;
      const auto before = Clock::now();
      cost.inside([&] { batch = stager.next(compute); });
      if (step >= kWarmupSteps) {
        next_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
      }
      compute.record(*marks[step].begin);
      work.queue(batch);
      compute.record(*marks[step].end);
      cost.inside([&] { batch = {}; });
    }
    marks.back().end->synchronize();
    host_us = cost.microseconds();
  }
  filler.join();
  Json result = summarise(arguments, marks, next_us, host_us);
  result["slots"] = slots;
  return result;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Measures staging with k = 0 to 3 slots; prints JSON."};
  app.add_option("--device", arguments.device, "cpu:N or cuda:N")->capture_default_str();
  app.add_option("--rows", arguments.rows, "of a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--size", arguments.size, "pixels per side")->check(CLI::Range(1, 4096));
  app.add_option("--steps", arguments.steps, "timed, after a few others")
      ->check(CLI::Range(1, 100000));
  app.add_option("--step-ms", arguments.step_ms, "length of the emulated step")
      ->check(CLI::Range(0.0, 10000.0));
  app.add_option("--model", arguments.model, "take this model's training step instead");
  CLI11_PARSE(app, argc, argv);
  const auto device = make_device(arguments.device);
  const auto work = arguments.model.empty()
                        ? make_emulated_step(*device, arguments.step_ms)
                        : make_model_step(*device, arguments.model, shape_of(arguments));
  Json report = {{"device", device->name()},
                 {"rows", arguments.rows},
                 {"size", arguments.size},
                 {"step", work->describe()},
                 {"host_copies_are_host_work", device->host_accessible()}};
  for (int slots = 0; slots <= Stager::kMaxSlots; ++slots) {
    report["depths"].push_back(run_depth(*device, arguments, *work, slots));
  }
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  try {
    return stoker::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "staging_depth_bench: %s\n", error.what());
    return 1;
  }
}
