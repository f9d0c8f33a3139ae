#include "bench/suite/depth_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/suite/throttled_device.h"
#include "staging/device_list.h"
#include "staging/stager.h"
#include "staging/threads.h"
#include "tools/machine/load.h"
#include "train/collective/collective.h"
#include "train/cuda/engine.h"
#include "train/engine/engine.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// The work between two batches on a device: an emulated step of a given length, or a model's own
// training step. It is queued on one stream, on which batches are leased. Threads: one. Errors:
// those of the engines.
class StepWork {
 public:
  virtual ~StepWork() = default;
  virtual Stream& stream() = 0;
  virtual void queue(const DeviceBatch& batch) = 0;
  virtual std::string describe() const = 0;
};

// The number of bytes that one kernel copies.
constexpr size_t kKernelBytes = size_t{64} << 20;

class Sleep final : public StepWork {
 public:
  Sleep(Device& device, double milliseconds)
      : stream_(device.make_stream()), milliseconds_(milliseconds) {}

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    stream_->call([length = std::chrono::duration<double, std::milli>(milliseconds_)] {
      std::this_thread::sleep_for(length);
    });
  }
  std::string describe() const override { return "a sleep"; }

 private:
  const std::unique_ptr<Stream> stream_;
  const double milliseconds_;
};

class Kernels final : public StepWork {
 public:
  Kernels(Device& device, double milliseconds)
      : stream_(device.make_stream()),
        memory_(device.allocate(2 * kKernelBytes, MemoryKind::device)) {
    constexpr int kProbe = 20;
    const auto start = device.make_event(true), end = device.make_event(true);
    for (int pass = 0; pass < 2; ++pass) {  // the first one warms up
      stream_->record(*start);
      for (int i = 0; i < kProbe; ++i) kernel();
      stream_->record(*end);
      end->synchronize();
    }
    const double kernel_ms = end->elapsed_ms(*start) / kProbe;
    count_ = std::max(1, static_cast<int>(std::lround(milliseconds / kernel_ms)));
  }

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch&) override {
    for (int i = 0; i < count_; ++i) kernel();
  }
  std::string describe() const override {
    return std::to_string(count_) + " copies of device memory";
  }

 private:
  void kernel() {
    stream_->copy(memory_->data() + kKernelBytes, memory_->data(), kKernelBytes,
                  CopyKind::device_to_device);
  }

  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Memory> memory_;
  int count_ = 0;
};

constexpr int kModelClasses = 10;

EngineOptions options_for(const BatchShape& shape, Precision precision) {
  EngineOptions options;
  options.rows = options.micro_batch_size = shape.rows;
  options.nominal_rows = shape.rows;
  options.precision = precision;
  options.mean = {0.485f, 0.456f, 0.406f};
  options.stddev = {0.229f, 0.224f, 0.225f};
  return options;
}

class ModelStep : public StepWork {
 public:
  explicit ModelStep(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {
    const NetSpec& net = engine_->net();
    engine_->write(StateKind::parameters, initial_parameters(net, {1}));
    engine_->write(StateKind::statistics, initial_statistics(net));
    tensors_.assign(parameter_table(net).size(), {.learning_rate = 1e-3f});
  }

 protected:
  static BatchRows rows_of(const DeviceBatch& batch) {
    return {batch.images(), batch.labels(), batch.weights()};
  }
  Engine& engine() { return *engine_; }
  void update() { engine_->update({.tensors = tensors_, .momentum = 0.9f}); }

 private:
  const std::unique_ptr<Engine> engine_;
  std::vector<TensorUpdate> tensors_;
};

// The engine blocks, so the stream's own thread runs it, and events around it stay in order.
class OnHost final : public ModelStep {
 public:
  OnHost(Device& device, std::unique_ptr<Engine> engine)
      : ModelStep(std::move(engine)),
        collective_(make_host_collective(1)),
        stream_(device.make_stream()) {}

  Stream& stream() override { return *stream_; }
  void queue(const DeviceBatch& batch) override {
    stream_->call([this, rows = rows_of(batch)] {
      engine().forward_backward(rows);
      collective_->all_reduce(0, engine().gradient_buffers(), engine().reduced_gradients());
      update();
    });
  }
  std::string describe() const override { return "the model on the CPU engine"; }

 private:
  const std::unique_ptr<Collective> collective_;
  const std::unique_ptr<Stream> stream_;  // destroyed first
};

// There is one micro-batch, so its gradient buffer is the sum.
class OnDevice final : public ModelStep {
 public:
  using ModelStep::ModelStep;

  Stream& stream() override { return *engine().stream(); }
  void queue(const DeviceBatch& batch) override {
    engine().forward_backward(rows_of(batch));
    const float* part = engine().gradient_buffers().front();
    const std::span<float> sum = engine().reduced_gradients();
    if (sum.data() != part) {
      stream().copy(sum.data(), part, sum.size_bytes(), CopyKind::device_to_device);
    }
    update();
  }
  std::string describe() const override { return "the model on the CUDA engine"; }
};

// Makes a step whose stream sleeps on a host device. On other devices it runs as many kernels that
// copy device memory as fill the time. The device outlives the step, here and below.
std::unique_ptr<StepWork> make_emulated_step(Device& device, double milliseconds) {
  if (device.cuda_ordinal() < 0) return std::make_unique<Sleep>(device, milliseconds);
  return std::make_unique<Kernels>(device, milliseconds);
}

// Makes a step that runs forward, backward and update of a model with 10 classes: batch norm over
// the whole batch, bf16 where the device has it. It uses the CUDA engine, or on a host device the
// CPU engine (on the stream's thread).
std::unique_ptr<StepWork> make_model_step(Device& device, const std::string& model,
                                          const BatchShape& shape) {
  const NetSpec net = make_net(model, {shape.width, shape.height}, kModelClasses);
  if (device.cuda_ordinal() < 0) {
    const Precision precision = cpu_supports(Precision::bf16) ? Precision::bf16 : Precision::fp32;
    return std::make_unique<OnHost>(device, make_cpu_engine(net, options_for(shape, precision)));
  }
  return std::make_unique<OnDevice>(
      make_cuda_engine(net, options_for(shape, Precision::bf16), device));
}

constexpr int kRingCapacity = 4;
constexpr int kDepthWarmupSteps = 5;
constexpr int kDepths = Stager::kMaxSlots + 1;

// Measures the CPU time of staging: that of all threads of the process, without what this thread
// does outside of staging (it queues the step and waits for it).
class StagingCost {
 public:
  void start() {
    process_ = process_cpu_seconds();
    thread_ = thread_cpu_seconds();
    inside_ = 0;
  }
  // Runs a part of staging on this thread.
  template <class Part>
  void inside(Part part) {
    const double before = thread_cpu_seconds();
    part();
    inside_ += thread_cpu_seconds() - before;
  }
  double seconds() const {
    return process_cpu_seconds() - process_ - (thread_cpu_seconds() - thread_) + inside_;
  }

 private:
  double process_ = 0, thread_ = 0, inside_ = 0;
};

// Events of one step, on the compute stream.
struct Marks {
  std::unique_ptr<Event> begin, end;
};

// The result of one repeat with one number of slots.
struct Depth {
  double gap_ms = 0, gap_ms_max = 0, images_per_second = 0, step_ms = 0;
  double host_us = 0, next_us = 0;  // per batch
};

Depth depth_of(const DepthOptions& options, const std::vector<Marks>& marks, double host_seconds,
               const std::vector<double>& next_us) {
  std::vector<double> gaps;
  for (size_t step = kDepthWarmupSteps; step < marks.size(); ++step) {
    gaps.push_back(marks[step].begin->elapsed_ms(*marks[step - 1].end));
  }
  const auto count = static_cast<double>(gaps.size());
  const double total_ms = marks.back().end->elapsed_ms(*marks[kDepthWarmupSteps - 1].end);
  return {.gap_ms = median(gaps),
          .gap_ms_max = *std::max_element(gaps.begin(), gaps.end()),
          .images_per_second = 1e3 * options.rows * count / total_ms,
          .step_ms = total_ms / count,
          .host_us = 1e6 * host_seconds / count,
          .next_us = median(next_us)};
}

// Writes labels and weights, once per slab; pixels are whatever the memory holds.
void fill(const Slab& slab, int rows) {
  for (int row = 0; row < rows; ++row) {
    slab.labels[row] = row % 10;
    slab.weights[row] = 1;
  }
}

BatchShape shape_of(const DepthOptions& options) {
  return {.rows = options.rows, .height = options.size, .width = options.size};
}

// Consumes batches as a trainer that reads its loss late: queues a step per batch.
Depth consume(Stager& stager, const DepthOptions& options, StepWork& work,
              const std::vector<Marks>& marks) {
  Stream& compute = work.stream();
  std::vector<double> next_us;
  StagingCost cost;
  for (Step step = 0; step < std::ssize(marks); ++step) {
    // The host is two steps ahead at most.
    if (step >= 2) marks[step - 2].end->synchronize();
    if (step == kDepthWarmupSteps) cost.start();
    DeviceBatch batch;
    const int64_t before = steady_now_ns();
    cost.inside([&] { batch = stager.next(compute); });
    if (step >= kDepthWarmupSteps) {
      next_us.push_back(1e-3 * static_cast<double>(steady_now_ns() - before));
    }
    compute.record(*marks[step].begin);
    work.queue(batch);
    compute.record(*marks[step].end);
    cost.inside([&] { batch = {}; });
  }
  marks.back().end->synchronize();
  return depth_of(options, marks, cost.seconds(), next_us);
}

Depth run_depth(Device& device, const DepthOptions& options, StepWork& work, int slots) {
  PinnedRing ring(device, BatchLayout(shape_of(options)), kRingCapacity);
  const Step end = kDepthWarmupSteps + options.steps;
  std::vector<Marks> marks;
  for (Step step = 0; step < end; ++step) {
    marks.push_back({device.make_event(true), device.make_event(true)});
  }
  std::jthread filler = start_thread("the feed", [&] {
    for (Step step = 0; step < end && ring.wait_free(step); ++step) {
      const Slab& slab = ring.begin(step);
      if (step < kRingCapacity) fill(slab, options.rows);
      ring.commit(step);
    }
  });
  Depth depth;
  {
    Stager stager(device, ring, slots, 0, end);
    depth = consume(stager, options, work, marks);
  }
  filler.join();
  return depth;
}

using Repeats = std::vector<Depth>;

std::vector<double> values_of(const Repeats& repeats, double Depth::*field) {
  std::vector<double> values;
  for (const Depth& depth : repeats) values.push_back(depth.*field);
  return values;
}

void fill_depth_report(const std::array<Repeats, kDepths>& depths, Report& report) {
  Table table{
      "", {"slots", "idle gap ms", "images/s", "host CPU us per batch", "next() takes us"}, {}};
  Plot plot{"depth", "Idle gap between steps, by staging slots", "slots", "ms", {{"gap", {}}}, {}};
  for (int slots = 0; slots < kDepths; ++slots) {
    const Repeats& repeats = depths[slots];
    const auto add = [&](const char* what, const char* unit, Better better, double Depth::*field) {
      return report.add(
          {fmt::format("{}, {} slots", what, slots), unit, better, values_of(repeats, field)});
    };
    const Summary gap = add("idle gap", "ms", Better::lower, &Depth::gap_ms);
    const Summary rate = add("rate", "images/s", Better::higher, &Depth::images_per_second);
    const Summary host = add("host CPU per batch", "us", Better::lower, &Depth::host_us);
    const Summary next = add("next()", "us", Better::lower, &Depth::next_us);
    const auto longest = values_of(repeats, &Depth::gap_ms_max);
    report.results["depths"].push_back(
        {{"slots", slots},
         {"gap_ms_median", gap.median},
         {"gap_ms_max", *std::max_element(longest.begin(), longest.end())},
         {"images_per_second", rate.median},
         {"step_ms", median(values_of(repeats, &Depth::step_ms))},
         {"host_us_per_batch", host.median},
         {"next_us_median", next.median}});
    const bool in_place = slots == 0 && report.results["host_copies_are_host_work"].get<bool>();
    table.rows.push_back({in_place ? "0 (in place)" : std::to_string(slots), with_interval(gap),
                          with_interval(rate), with_interval(host), with_interval(next)});
    plot.series[0].points.push_back(
        {static_cast<double>(slots), gap.median, gap.interval.low, gap.interval.high});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

}  // namespace

Report bench_depth(const DepthOptions& options) {
  if (options.rows < 1 || options.size < 1 || options.steps < 1 || options.repeats < 1) {
    throw std::invalid_argument(
        fmt::format("bench depth: {} samples of {} px, {} steps, {} repeats: at least 1 of each",
                    options.rows, options.size, options.steps, options.repeats));
  }
  const bool throttled = !options.machine.gpus.empty();
  std::unique_ptr<ThrottledLinks> links;
  if (throttled) links = std::make_unique<ThrottledLinks>(options.machine);
  const auto device = throttled ? make_throttled_device(*links, 0) : make_device(options.device);
  const auto work = options.model.empty()
                        ? make_emulated_step(*device, options.step_ms)
                        : make_model_step(*device, options.model, shape_of(options));
  std::array<Repeats, kDepths> depths;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (int slots = 0; slots < kDepths; ++slots) {
      depths[slots].push_back(run_depth(*device, options, *work, slots));
    }
  }
  Report report;
  report.bench = "depth";
  report.settings = {{"device", device->name()},   {"machine", options.machine.name},
                     {"batch", options.rows},      {"size", options.size},
                     {"steps", options.steps},     {"repeats", options.repeats},
                     {"step_ms", options.step_ms}, {"model", options.model}};
  report.results = {{"device", device->name()},
                    {"batch", options.rows},
                    {"size", options.size},
                    {"step", work->describe()},
                    {"host_copies_are_host_work", device->host_accessible()}};
  fill_depth_report(depths, report);
  report.tables[0].title = fmt::format("{} samples of {} px on {}; a step is {}", options.rows,
                                       options.size, device->name(), work->describe());
  report.notes = {"Host CPU is of all threads, without the step itself."};
  if (throttled) {
    report.results["machine"] = to_json(options.machine);
    report.notes.push_back(
        "The device is a host device whose copies take the time of the machine's links.");
  }
  if (device->host_accessible()) {
    report.notes.push_back("The copies of a host device are work of the host, counted with it.");
    report.notes.push_back(
        "0 slots is in place on a host device: the step reads the batch where it was decoded, and "
        "nothing is copied. Slots can only cost here. What they hide on a GPU, this cannot show.");
  }
  return report;
}

}  // namespace stoker
