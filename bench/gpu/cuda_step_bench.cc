// Times the CUDA engine's training step without a feed: images/s, the host's time per step, memory,
// and where the time goes, operation by operation. Samples stay on the device. Prints one JSON
// object, and with --table N also a table of the N slowest operations. Fails if the step cannot be
// captured as a graph, unless --no-graphs was given.
//
//   cuda_step_bench --model resnet50 --size 224 --classes 1000 --batch 256 --table 30
//   cuda_step_bench --model airnet --size 32 --classes 10 --batch 1024 --no-graphs
//   cuda_step_bench --model resnet50 --batch 256 --fusions 6
//   cuda_step_bench --model resnet50 --batch 256 --bytes      (needs no GPU)
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "staging/device_list.h"
#include "train/cuda/engine.h"
#include "train/device/engine.h"
#include "train/device/profile.h"
#include "train/device/program.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string model = "resnet50";
  int size = 224, classes = 1000, batch = 256, steps = 50, table = 0, fusions = 0;
  bool bytes = false, fp32 = false, no_graphs = false, no_autotune = false, any_order = false;
  int input_channels = 8;
};

DeviceTuning tuning_of(const Arguments& a) {
  DeviceTuning tuning;
  tuning.graphs = !a.no_graphs;
  tuning.autotune = !a.no_autotune;
  tuning.deterministic = !a.any_order;
  tuning.input_channels = a.input_channels;
  return tuning;
}

EngineOptions options_of(const Arguments& a) {
  EngineOptions options;
  options.rows = options.micro_batch_size = a.batch;
  options.nominal_rows = a.batch;
  options.precision = a.fp32 ? Precision::fp32 : Precision::bf16;
  options.mean = {0.485f, 0.456f, 0.406f};
  options.stddev = {0.229f, 0.224f, 0.225f};
  options.label_smoothing = 0.1f;
  return options;
}

// A batch of noise, with labels and weights, that stays on the device.
class Resident {
 public:
  Resident(Device& device, Stream& stream, const Arguments& a) {
    const size_t pixels = size_t{3} * a.batch * a.size * a.size;
    const size_t bytes = pixels + size_t{8} * a.batch;
    const auto pinned = device.allocate(bytes, MemoryKind::pinned);
    memory_ = device.allocate(bytes, MemoryKind::device);
    auto* labels = reinterpret_cast<int32_t*>(pinned->data());
    auto* weights = reinterpret_cast<float*>(labels + a.batch);
    auto* images = reinterpret_cast<uint8_t*>(weights + a.batch);
    uint32_t noise = 1;
    for (size_t i = 0; i < pixels; ++i) {
      noise = noise * 1664525u + 1013904223u;
      images[i] = static_cast<uint8_t>(noise >> 24);
    }
    for (int row = 0; row < a.batch; ++row) {
      labels[row] = row % a.classes;
      weights[row] = 1.0f;
    }
    stream.copy(memory_->data(), pinned->data(), bytes, CopyKind::host_to_device);
    stream.synchronize();
    rows_.labels = reinterpret_cast<const int32_t*>(memory_->data());
    rows_.weights = reinterpret_cast<const float*>(rows_.labels + a.batch);
    rows_.images = reinterpret_cast<const uint8_t*>(rows_.weights + a.batch);
  }
  const BatchRows& rows() const { return rows_; }

 private:
  std::unique_ptr<Memory> memory_;
  BatchRows rows_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Prints the `table` slowest operations and returns the milliseconds by kind of operation.
Json time_by_kind(const std::vector<DeviceStepTime>& times, int table) {
  std::map<std::string, double> by_kind;
  double whole = 0;
  for (const DeviceStepTime& time : times) {
    by_kind[time.step] += time.ms;
    whole += time.ms;
  }
  Json kinds = Json::object();
  for (const auto& [kind, ms] : by_kind) kinds[kind] = ms;
  std::vector<DeviceStepTime> slowest = times;
  std::ranges::sort(slowest, std::ranges::greater{}, &DeviceStepTime::ms);
  for (size_t i = 0; i < slowest.size() && i < static_cast<size_t>(table); ++i) {
    const DeviceStepTime& t = slowest[i];
    std::fprintf(stderr, "%6.2f %% %8.3f ms  %-18s %-24s %4dx%-4dx%-5d %7.1f TFLOP/s %6.0f GB/s\n",
                 100 * t.ms / whole, t.ms, t.step.c_str(), t.where.c_str(), t.shape.height,
                 t.shape.width, t.shape.channels, t.flops / (t.ms * 1e9),
                 static_cast<double>(t.bytes) / (t.ms * 1e6));
  }
  return kinds;
}

// Queues steps on the same batch one by one.
class Steps {
 public:
  Steps(Engine& engine, const BatchRows& rows)
      : engine_(engine),
        rows_(rows),
        tensors_(parameter_table(engine.net()).size(), {1e-3f, 5e-5f, false}) {
    update_.tensors = tensors_;
    update_.nesterov = true;
  }
  void queue() {
    engine_.forward_backward(rows_);
    engine_.update(update_);
    ++queued_;
  }
  int64_t queued() const { return queued_; }

 private:
  Engine& engine_;
  const BatchRows rows_;
  const std::vector<TensorUpdate> tensors_;
  UpdateArgs update_;
  int64_t queued_ = 0;
};

Json measure(Engine& engine, Steps& steps, const Arguments& a) {
  constexpr int kWarmupSteps = 5;
  for (int i = 0; i < kWarmupSteps; ++i) steps.queue();
  engine.step_metrics();
  const auto begin = std::chrono::steady_clock::now();
  // This is the host's own time, because metrics are read late, as in the trainer.
  double queued = 0;
  const int64_t lag = engine.metrics_lag();
  for (int i = 0; i < a.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    steps.queue();
    queued += seconds_since(start);
    if (i >= lag) engine.step_metrics_of(steps.queued() - 1 - lag);
  }
  const StepMetrics last = engine.step_metrics();
  const double seconds = seconds_since(begin) / a.steps;
  return {{"images_per_second", a.batch / seconds},
          {"step_ms", 1e3 * seconds},
          {"host_us_per_step", 1e6 * queued / a.steps},
          {"finite", last.finite},
          {"loss", last.loss_sum / last.weight_sum}};
}

// Prints the bytes that the engine's plan moves in memory, by kind of operation. Runs nothing.
int count_bytes(const Arguments& a) {
  const NetSpec net = make_net(a.model, {a.size, a.size}, a.classes);
  Json kinds = Json::object();
  int64_t sum = 0;
  for (const DeviceTraffic& each : planned_traffic(net, options_of(a), tuning_of(a))) {
    kinds[each.step] = {{"steps", each.count}, {"bytes", each.bytes}};
    sum += each.bytes;
  }
  const Json result = {{"model", a.model},      {"size", a.size},
                       {"batch", a.batch},      {"precision", a.fp32 ? "fp32" : "bf16"},
                       {"bytes_per_step", sum}, {"bytes_by_kind", kinds}};
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

// Times cuDNN's fusions and the same work unfused, for the convolutions with the largest outputs,
// where fusions can save most.
int time_fusions(const Arguments& a) {
  const auto device = make_cuda_device(0);
  const NetSpec net = make_net(a.model, {a.size, a.size}, a.classes);
  const DeviceTuning tuning = tuning_of(a);
  std::vector<ConvShape> shapes =
      conv_shapes(net, device_fusion(tuning), a.batch, a.fp32 ? Precision::fp32 : Precision::bf16);
  const auto numbers = [](const ConvShape& s) {
    return int64_t{s.out_height} * s.out_width * s.out_channels;
  };
  std::ranges::stable_sort(shapes, std::ranges::greater{}, numbers);
  shapes.resize(std::min(shapes.size(), static_cast<size_t>(a.fusions)));
  Json rows = Json::array();
  for (const FusionTime& t : time_cuda_fusions(shapes, *device, tuning)) {
    const auto plane = [](int height, int width, int channels) {
      return std::to_string(height) + "x" + std::to_string(width) + "x" + std::to_string(channels);
    };
    const Size kernel = t.shape.kernel;
    Json row = {{"input", plane(t.shape.in_height, t.shape.in_width, t.shape.in_channels)},
                {"output", plane(t.shape.out_height, t.shape.out_width, t.shape.out_channels)},
                {"kernel", std::to_string(kernel.height) + "x" + std::to_string(kernel.width)},
                {"fusion", t.fusion}};
    if (t.plan.empty()) {
      row["plan"] = nullptr;
    } else {
      row.update({{"apart_ms", t.apart_ms}, {"fused_ms", t.fused_ms}, {"plan", t.plan}});
    }
    rows.push_back(row);
  }
  const Json result = {{"model", a.model}, {"batch", a.batch}, {"fusions", rows}};
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

int run(const Arguments& a) {
  const auto begin = std::chrono::steady_clock::now();
  const auto device = make_cuda_device(0);
  const NetSpec net = make_net(a.model, {a.size, a.size}, a.classes);
  const auto engine = make_cuda_engine(net, options_of(a), *device, tuning_of(a));
  engine->write(StateKind::parameters, initial_parameters(net, {1}));
  const Resident resident(*device, *engine->stream(), a);
  Steps steps(*engine, resident.rows());
  steps.queue();
  engine->step_metrics();
  const double start_seconds = seconds_since(begin);  // to the end of the first step
  Json result = {{"model", a.model},
                 {"size", a.size},
                 {"batch", a.batch},
                 {"precision", a.fp32 ? "fp32" : "bf16"},
                 {"graphs", !a.no_graphs},
                 {"autotune", !a.no_autotune},
                 {"deterministic", !a.any_order},
                 {"input_channels", a.input_channels}};
  result.update(measure(*engine, steps, a));
  // Figures of a slower step than the requested one would mislead.
  if (!engine->warning().empty()) throw std::runtime_error(engine->warning());
  result["tflops"] = 3e-12 * forward_flops(net) * result["images_per_second"].get<double>();
  result["start_seconds"] = start_seconds;
  result["planned_mib"] = engine->planned_bytes() >> 20;
  constexpr int kProfileRuns = 5;
  auto* profiled = dynamic_cast<DeviceEngine*>(engine.get());
  result["ms_by_kind"] = time_by_kind(profiled->profile(kProfileRuns), a.table);
  if (a.table > 0) std::fprintf(stderr, "%s", engine->describe_memory().c_str());
  result["implementations"] = engine->implementations();
  std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::Arguments a;
  CLI::App app("The CUDA engine's training step without a feed");
  app.add_option("--model", a.model);
  app.add_option("--size", a.size);
  app.add_option("--classes", a.classes);
  app.add_option("--batch", a.batch);
  app.add_option("--steps", a.steps);
  app.add_option("--table", a.table, "print this many of the slowest operations to stderr");
  app.add_option("--fusions", a.fusions,
                 "time cuDNN's fusions for this many of the convolutions, and run no step")
      ->check(CLI::Range(1, 100));
  app.add_option("--input-channels", a.input_channels, "channels to which the input is padded");
  app.add_flag("--bytes", a.bytes,
               "count what the engine's plan reads and writes in memory per step, and run nothing");
  app.add_flag("--fp32", a.fp32);
  app.add_flag("--no-graphs", a.no_graphs);
  app.add_flag("--no-autotune", a.no_autotune);
  app.add_flag("--any-order", a.any_order, "allow plans whose bits change from run to run");
  CLI11_PARSE(app, argc, argv);
  try {
    if (a.bytes) return stoker::count_bytes(a);
    return a.fusions > 0 ? stoker::time_fusions(a) : stoker::run(a);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_step_bench: %s\n", error.what());
    return 1;
  }
}
