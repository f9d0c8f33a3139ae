// The kernel that turns a batch's bytes into a net's input: milliseconds and GB/s, read and written
// together, for each type, order and padding. Prints one JSON object.
//
//   normalise_bench --device cuda:0 --rows 256 --size 224
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "staging/device_list.h"
#include "staging/normalise.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmupSteps = 3;

struct Arguments {
  std::string device = "cpu:0";
  int rows = 256;
  int size = 224;
  int steps = 50;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Milliseconds of one run of the kernel, by events around it. The images are what the memory holds:
// the kernel reads them all the same.
double measure(Device& device, const Arguments& arguments, const NormaliseOptions& options) {
  const Normaliser normaliser(device, options);
  const size_t rows = arguments.rows;
  const auto images =
      device.allocate(rows * 3 * options.height * options.width, MemoryKind::device);
  const auto out = device.allocate(rows * normaliser.row_bytes(), MemoryKind::device);
  const auto stream = device.make_stream();
  const auto begin = device.make_event(true), end = device.make_event(true);
  std::vector<double> times;
  for (int step = 0; step < kWarmupSteps + arguments.steps; ++step) {
    stream->record(*begin);
    normaliser.run(*stream, reinterpret_cast<const uint8_t*>(images->data()), out->data(),
                   arguments.rows);
    stream->record(*end);
    end->synchronize();
    if (step >= kWarmupSteps) times.push_back(end->elapsed_ms(*begin));
  }
  return median(times);
}

Json measure_all(Device& device, const Arguments& arguments) {
  const std::vector<std::pair<const char*, PixelType>> types = {
      {"bf16", PixelType::bf16}, {"fp16", PixelType::fp16}, {"fp32", PixelType::fp32}};
  const std::vector<std::pair<const char*, PixelOrder>> orders = {{"NHWC", PixelOrder::nhwc},
                                                                  {"NCHW", PixelOrder::nchw}};
  Json report = Json::object();
  for (const auto& [type_name, type] : types) {
    for (const auto& [order_name, order] : orders) {
      for (const int channels : {3, 4, 8}) {
        const NormaliseOptions options{.height = arguments.size,
                                       .width = arguments.size,
                                       .channels = channels,
                                       .type = type,
                                       .order = order};
        const double ms = measure(device, arguments, options);
        const double row_bytes = 3.0 * arguments.size * arguments.size +
                                 static_cast<double>(Normaliser(device, options).row_bytes());
        report[std::string(type_name) + " " + order_name + ", " + std::to_string(channels) +
               " channels"] = {{"ms", ms}, {"gb_per_s", 1e-6 * row_bytes * arguments.rows / ms}};
      }
    }
  }
  return report;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Measures the kernel that makes a net's input; prints JSON."};
  app.add_option("--device", arguments.device, "cpu:N or cuda:N")->capture_default_str();
  app.add_option("--rows", arguments.rows, "of a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--size", arguments.size, "pixels per side")->check(CLI::Range(1, 4096));
  app.add_option("--steps", arguments.steps, "timed, after a few others")
      ->check(CLI::Range(1, 100000));
  CLI11_PARSE(app, argc, argv);
  const auto device = make_device(arguments.device);
  std::printf("%s\n", measure_all(*device, arguments).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  try {
    return stoker::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normalise_bench: %s\n", error.what());
    return 1;
  }
}
