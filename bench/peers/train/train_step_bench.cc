// Times one full training step (forward, backward, reduce, update) of a model on the CPU engine.
// Prints one JSON object; train_side_by_side.py runs it in turn with PyTorch's
// (torch_step.py).
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/machine/load.h"
#include "train/collective/collective.h"
#include "train/engine/engine.h"
#include "train/model/initialise.h"
#include "train/model/models.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t peak_resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

struct Arguments {
  std::string model = "airnet";
  int size = 32;
  int classes = 10;
  int batch = 512;
  int micro_batches = 2;
  int workers = 2;
  int steps = 5;
  std::string precision = "fp32";
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Times full training steps of a model on the CPU engine; prints JSON."};
  app.add_option("--model", arguments.model, "net to train")->capture_default_str();
  app.add_option("--size", arguments.size, "pixels per side")->capture_default_str();
  app.add_option("--classes", arguments.classes)->capture_default_str();
  app.add_option("--batch", arguments.batch, "samples per step")->capture_default_str();
  app.add_option("--micro-batches", arguments.micro_batches, "micro-batches per batch")
      ->capture_default_str();
  app.add_option("--workers", arguments.workers, "threads")->capture_default_str();
  app.add_option("--steps", arguments.steps, "timed steps, after two warm-up steps")
      ->capture_default_str();
  app.add_option("--precision", arguments.precision)->check(CLI::IsMember({"fp32", "bf16"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return arguments;
}

struct Batch {
  std::vector<uint8_t> images;  // (batch, H, W, 3) u8
  std::vector<int32_t> labels;
  std::vector<float> weights;
};

Batch random_batch(const Arguments& arguments) {
  Batch batch;
  batch.images.resize(static_cast<size_t>(arguments.batch) * arguments.size * arguments.size * 3);
  uint64_t state = 1;
  for (auto& pixel : batch.images) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    pixel = static_cast<uint8_t>(state >> 56);
  }
  for (int i = 0; i < arguments.batch; ++i) batch.labels.push_back(i % arguments.classes);
  batch.weights.assign(arguments.batch, 1.0f);
  return batch;
}

std::unique_ptr<stoker::Engine> build_engine(const Arguments& arguments) {
  const auto net =
      stoker::make_net(arguments.model, {arguments.size, arguments.size}, arguments.classes);
  stoker::EngineOptions options;
  options.rows = arguments.batch;
  options.micro_batch_size = arguments.batch / arguments.micro_batches;
  options.nominal_rows = arguments.batch;
  options.alone = true;
  options.workers = arguments.workers;
  options.precision =
      arguments.precision == "bf16" ? stoker::Precision::bf16 : stoker::Precision::fp32;
  options.mean = {0.485f, 0.456f, 0.406f};
  options.stddev = {0.229f, 0.224f, 0.225f};
  auto engine = stoker::make_cpu_engine(net, options);
  engine->write(stoker::StateKind::parameters, stoker::initial_parameters(net, {1}));
  engine->write(stoker::StateKind::statistics, stoker::initial_statistics(net));
  return engine;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const auto engine = build_engine(arguments);
  const auto collective = stoker::make_host_collective(1);
  const Batch batch = random_batch(arguments);
  const std::vector<stoker::TensorUpdate> tensors(stoker::parameter_table(engine->net()).size(),
                                                  {.learning_rate = 0.01f});
  auto step = [&] {
    engine->forward_backward({batch.images.data(), batch.labels.data(), batch.weights.data()});
    collective->all_reduce(0, engine->gradient_buffers(), engine->reduced_gradients());
    engine->update({.tensors = tensors, .momentum = 0.9f});
  };
  step();
  step();
  std::vector<double> rates;
  const double cpu_before = stoker::process_cpu_seconds();
  for (int i = 0; i < arguments.steps; ++i) {
    const auto start = Clock::now();
    step();
    rates.push_back(arguments.batch / seconds_since(start));
  }
  const double cpu = stoker::process_cpu_seconds() - cpu_before;
  std::sort(rates.begin(), rates.end());
  const nlohmann::json report = {
      {"library", "stoker, oneDNN " STOKER_ONEDNN_VERSION},
      {"model", arguments.model},
      {"precision", arguments.precision},
      {"batch", arguments.batch},
      {"size", arguments.size},
      {"images_per_second_median", rates[rates.size() / 2]},
      {"images_per_second_min", rates.front()},
      {"images_per_second_max", rates.back()},
      {"cpu_seconds_per_1000_images", 1000 * cpu / (arguments.steps * arguments.batch)},
      {"peak_resident_mib", static_cast<double>(peak_resident_kib()) / 1024},
      {"planned_mib", static_cast<double>(engine->planned_bytes()) / (1 << 20)},
  };
  std::printf("%s\n", report.dump().c_str());
  return 0;
}
