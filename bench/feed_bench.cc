// What the feeder itself costs: everything but decode and pixel work. Two figures:
//
// - Its share at 224 px: each round fills the same rows of the same steps once by an Augmenter in a
//   loop (decode and pixel work alone) and once through a Loader; the difference is the feeder:
//   sampling, messages, I/O threads, labels, notes, ring, hand-over. The share is of decode and
//   pixel work. Both pixel policies; pictures in memory, and read from files.
// - CIFAR rows per second and core from the binary source, all included (pad, crop and flip).
//
//   feed_bench [--data DIR] [--cifar DIR] [--rounds N] [--ms N] [--slots N]
//
// All figures are CPU time of the whole process, so that other programs on the machine do no harm
// but to the caches: each line says the median of the rounds and its quartiles. Without --data the
// pictures are made-up JPEGs of 500 x 375, without --cifar the rows are random bytes. --slots 2
// adds what a host device's copy to staging slots costs.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/feed_bench_data.h"
#include "pipeline/loader.h"
#include "pipeline/sampler.h"

namespace stoker {
namespace {

struct Arguments {
  std::string data, cifar;
  int rounds = 15;
  int ms = 150;  // CPU time of one measurement
  int slots = -1;
};

double cpu_seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Case {
  const char* name;
  const Source& source;
  AugmentSpec augment;
  int rows;  // per batch
  PixelPolicy pixels = PixelPolicy::exact;
};

// The pixel work alone, on as many threads and into as many rows as the Loader has.
class PixelsAlone {
 public:
  PixelsAlone(const Case& work, const LoaderOptions& options)
      : work_(work),
        sampler_({.samples = work.source.size(), .rows = work.rows, .seed = options.seed}),
        depth_(options.ring_depth),
        slabs_(size_t{3} * static_cast<size_t>(depth_ * work.rows * work.augment.output.width *
                                               work.augment.output.height)) {
    for (int i = 0; i < options.workers; ++i) {
      augmenters_.push_back(std::make_unique<Augmenter>(work.augment, options.decode));
    }
  }

  // CPU seconds of steps [first, first + steps).
  double fill(Step first, int64_t steps) {
    const double start = cpu_seconds();
    std::vector<std::thread> threads;
    for (int worker = 0; worker < std::ssize(augmenters_); ++worker) {
      threads.emplace_back([this, worker, first, steps] {
        std::vector<uint8_t> buffer;
        for (Step step = first; step < first + steps; ++step) fill_part(step, worker, buffer);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return cpu_seconds() - start;
  }

 private:
  // Every n-th row of a step.
  void fill_part(Step step, int worker, std::vector<uint8_t>& buffer) {
    const int64_t epoch = step / sampler_.steps_per_epoch();
    const Size output = work_.augment.output;
    const size_t row_bytes = size_t{3} * output.width * output.height;
    for (int row = worker; row < work_.rows; row += std::ssize(augmenters_)) {
      const SampleId id = sampler_.row(epoch, step % sampler_.steps_per_epoch(), 0, row).id;
      std::span<const uint8_t> bytes;
      work_.source.read(id, buffer, bytes);
      const auto place = static_cast<size_t>(step % depth_ * work_.rows + row);
      const MutableImageView out{slabs_.data() + place * row_bytes, output.width, output.height,
                                 ptrdiff_t{3} * output.width};
      Size size;
      AugmentDraw draw;
      // A sample that cannot be decoded costs both sides the same attempt.
      augmenters_[worker]->file_row(bytes, 0, epoch, id, out, size, draw);
    }
  }

  const Case& work_;
  const Sampler sampler_;
  const int depth_;
  std::vector<std::unique_ptr<Augmenter>> augmenters_;  // one per thread
  std::vector<uint8_t> slabs_;
};

// A Loader that stands still between measurements: its ring is full, its threads sleep.
class StillLoader {
 public:
  StillLoader(const Case& work, const LoaderOptions& options)
      : rows_(work.rows),
        ahead_(options.workers == 0 ? 0 : options.ring_depth + std::max(options.slots, 0)),
        loader_(work.source, work.augment, {device_.get()}, options) {
    take(2 * options.ring_depth);
  }
  // CPU seconds of `steps` steps: on return they, counted from first_filled(), are filled.
  double take(int64_t steps) {
    const double start = cpu_seconds();
    for (int64_t i = 0; i < steps; ++i) loader_.next(0, *stream_);
    taken_ += steps;
    const double ours = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    while (loader_.stats().decode.items < first_filled() * rows_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const double looking = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - ours;
    return cpu_seconds() - start - looking;
  }
  Step first_filled() const { return taken_ + ahead_; }

 private:
  const int rows_;
  const int ahead_;
  Step taken_ = 0;
  const std::unique_ptr<Device> device_ = make_host_device();
  const std::unique_ptr<Stream> stream_ = device_->make_stream();
  Loader loader_;
};

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

LoaderOptions options_of(const Case& work, const Arguments& arguments, int workers) {
  LoaderOptions options;
  options.batch_size = work.rows;
  options.epochs = -1;
  options.workers = workers;
  options.slots = arguments.slots;
  options.max_bad = 1e18;
  options.decode.pixels = work.pixels;
  return options;
}

// How many steps take about `ms` of CPU time.
int64_t steps_in(StillLoader& loader, int ms) {
  return std::max<int64_t>(1, static_cast<int64_t>(1e-3 * ms / (loader.take(4) / 4)));
}

void report_share(const Case& work, const Arguments& arguments, int workers) {
  const LoaderOptions options = options_of(work, arguments, workers);
  StillLoader loader(work, options);
  PixelsAlone pixels(work, options);
  const int64_t steps = steps_in(loader, arguments.ms);
  const double rows = static_cast<double>(steps * work.rows);
  std::vector<double> share, pixel_us, feeder_us;
  for (int round = 0; round < arguments.rounds; ++round) {
    const Step first = loader.first_filled();
    double pixel_seconds = 0, seconds = 0;  // in turn the one and the other first
    if (round % 2 == 0) pixel_seconds = pixels.fill(first, steps);
    seconds = loader.take(steps);
    if (round % 2 == 1) pixel_seconds = pixels.fill(first, steps);
    share.push_back(100 * (seconds / pixel_seconds - 1));
    pixel_us.push_back(1e6 * pixel_seconds / rows);
    feeder_us.push_back(1e6 * (seconds - pixel_seconds) / rows);
  }
  std::printf("%-8s %-6s %7d   %9.1f   %7.1f   %6.2f  (%.2f to %.2f)\n", work.name,
              work.pixels == PixelPolicy::exact ? "exact" : "fast", workers, at(pixel_us, 0.5),
              at(feeder_us, 0.5), at(share, 0.5), at(share, 0.25), at(share, 0.75));
  std::fflush(stdout);
}

void report_rate(const Case& work, const Arguments& arguments, int workers) {
  StillLoader loader(work, options_of(work, arguments, workers));
  const int64_t steps = steps_in(loader, arguments.ms);
  std::vector<double> row_us;
  for (int round = 0; round < arguments.rounds; ++round) {
    row_us.push_back(1e6 * loader.take(steps) / static_cast<double>(steps * work.rows));
  }
  std::printf("%-8s %14d   %9.3f   %7.3f  (%.3f to %.3f)\n", work.name, workers, at(row_us, 0.5),
              1 / at(row_us, 0.5), 1 / at(row_us, 0.75), 1 / at(row_us, 0.25));
  std::fflush(stdout);
}

void run(const Arguments& arguments) {
  const MadeUpData made_up;
  const auto cifar =
      open_source(arguments.cifar.empty() ? made_up.cifar() : arguments.cifar, Split::test);
  const auto files =
      open_source(arguments.data.empty() ? made_up.pictures() : arguments.data, Split::all);
  const MemorySource memory(*files);
  std::printf("CPU time, median of %d rounds of %d ms (quartiles)\n\n", arguments.rounds,
              arguments.ms);
  std::printf("at 224 px        workers   pixels us/row   feeder us/row   %% of pixel work\n");
  AugmentSpec crop{
      .output = {224, 224}, .crop = CropMode::random_resized, .flip = FlipMode::random};
  for (const Source* source :
       {static_cast<const Source*>(&memory), static_cast<const Source*>(files.get())}) {
    for (const PixelPolicy pixels : {PixelPolicy::exact, PixelPolicy::fast}) {
      for (const int workers : {1, 2}) {
        report_share({source == &memory ? "memory" : "files", *source, crop, 32, pixels}, arguments,
                     workers);
      }
    }
  }
  std::printf("\nCIFAR binary     workers   us/row          million rows/s/core\n");
  AugmentSpec shift{
      .output = {32, 32}, .crop = CropMode::pad_random, .pad = 2, .flip = FlipMode::alternating};
  for (const int workers : {0, 1, 2})
    report_rate({"cifar", *cifar, shift, 512}, arguments, workers);
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::Arguments arguments;
  CLI::App app("What the feeder costs besides decode and pixel work, in CPU time");
  app.add_option("--data", arguments.data, "Image folder (else JPEGs are made up)");
  app.add_option("--cifar", arguments.cifar, "CIFAR binary files (else random rows)");
  app.add_option("--rounds", arguments.rounds)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--ms", arguments.ms, "CPU time of one measurement")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  app.add_option("--slots", arguments.slots, "As LoaderOptions::slots")->check(CLI::Range(-1, 3));
  CLI11_PARSE(app, argc, argv);
  try {
    stoker::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "feed_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
