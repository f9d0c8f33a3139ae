// Measures what recording costs: a feed's CPU time per batch without and with a Tracer, in turn.
// The Tracer is drained as a profile drains it. Without --data the samples are raw, 32 x 32 pixels,
// which cost the least.
//
//   recorder_cost --data DIR --size 224 --batch 64 --steps 20 --repeats 15
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "bench/report/program.h"
#include "bench/report/statistics.h"
#include "bench/suite/memory_source.h"
#include "pipeline/loader.h"
#include "pipeline/source/synthetic_source.h"
#include "staging/mutex.h"
#include "tools/machine/cpu_time.h"

namespace stoker {
namespace {

constexpr int kWarmUpSteps = 4;
constexpr auto kLook = std::chrono::milliseconds(20);  // as ProfileSession

struct Arguments {
  std::string data;
  int size = 32, batch = 512, steps = 200, repeats = 15, workers = 2;
};

// Drains a Tracer until this object is destroyed.
class Drain {
 public:
  explicit Drain(Tracer& tracer) : thread_([this, &tracer] { run(tracer); }) {}
  ~Drain() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  size_t spans() const {
    const MutexLock lock(mutex_);
    return spans_.size();
  }

 private:
  void run(Tracer& tracer) {
    MutexLock lock(mutex_);
    while (!ended_) {
      const auto until = std::chrono::steady_clock::now() + kLook;
      while (!ended_ && changed_.wait_until(lock, until)) {
      }
      if (!ended_) tracer.drain(spans_);
    }
  }
  mutable Mutex mutex_;
  CondVar changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::vector<TrackedSpan> spans_ GUARDED_BY(mutex_);
  std::thread thread_;
};

// Returns the CPU seconds of a batch and sets `spans` to the number of its spans.
double cost_of_batch(const Source& source, const AugmentSpec& augment, const Arguments& arguments,
                     bool traced, double& spans) {
  Tracer tracer;
  const auto drain = traced ? std::make_unique<Drain>(tracer) : nullptr;
  LoaderOptions options;
  options.batch_size = arguments.batch;
  options.feed.workers = arguments.workers;
  options.epochs = -1;
  options.feed.decode.pixels = PixelPolicy::fast;
  options.tracer = traced ? &tracer : nullptr;
  const auto device = make_host_device();
  const auto stream = device->make_stream();
  Loader loader(source, augment, {device.get()}, options);
  double begin = 0;
  size_t spans_before = 0;
  for (int step = 0; step < kWarmUpSteps + arguments.steps; ++step) {
    if (step == kWarmUpSteps) {
      begin = process_cpu_seconds();
      spans_before = drain ? drain->spans() : 0;
    }
    loader.next(0, *stream).synchronize();
  }
  const double cost = process_cpu_seconds() - begin;
  if (drain) spans = static_cast<double>(drain->spans() - spans_before) / arguments.steps;
  return cost / arguments.steps;
}

void print(const char* name, const std::vector<double>& values, const char* unit) {
  const Summary summary = summarise(values);
  std::printf("%-24s %.4g %s (%.4g to %.4g)\n", name, summary.median, unit, summary.interval.low,
              summary.interval.high);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"What recording costs a feed."};
  app.add_option("--data", arguments.data, "Folder of images; they are read into memory first");
  app.add_option("--size", arguments.size, "Side of a sample, pixels")->check(CLI::Range(8, 1024));
  app.add_option("--batch", arguments.batch, "Samples of a batch")->check(CLI::Range(1, 1 << 16));
  app.add_option("--steps", arguments.steps, "Steps of a measurement")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--repeats", arguments.repeats, "Repeats of each measurement")
      ->check(CLI::Range(1, 1000));
  app.add_option("--workers", arguments.workers, "Threads that decode")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  const Size size{arguments.size, arguments.size};
  AugmentSpec augment;
  std::unique_ptr<Source> files, source;
  if (arguments.data.empty()) {
    augment = AugmentSpec("random_crop(padding=4, mode='reflect') | flip", size);
    source = make_synthetic_source(100000, size, 10, 1);
  } else {
    augment = AugmentSpec("random_resized_crop | flip", size);
    files = open_source(arguments.data, Split::train);
    source = std::make_unique<MemorySource>(*files);
  }
  std::vector<double> off, on, more;
  double spans = 0;
  for (int repeat = 0; repeat < arguments.repeats; ++repeat) {
    double cost[2];
    for (const int turn : {0, 1}) {
      const bool traced = (turn + repeat) % 2 == 1;  // each goes first equally often
      cost[traced] = cost_of_batch(*source, augment, arguments, traced, spans);
    }
    off.push_back(1e3 * cost[0]);
    on.push_back(1e3 * cost[1]);
    more.push_back(100 * (cost[1] / cost[0] - 1));
  }
  print("without, CPU per batch", off, "ms");
  print("with", on, "ms");
  print("more", more, "%");
  std::printf("%-24s %.1f\n", "spans of a batch", spans);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  return stoker::run_program("recorder_cost", stoker::run, argc, argv);
}
