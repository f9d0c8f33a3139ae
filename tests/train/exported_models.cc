// Writes models in the forms that other software reads, and the logits of both engines for the same
// images, for exported_models_test.py:
//
//   exported_models OUT [MODEL...]   without models: small forms of all; else those, at full size
//
// OUT/MODEL/ has model.onnx, model.safetensors, images.bin (rows, H, W, 3) u8, cpu.bin (rows,
// outputs) f32, device.bin likewise of small forms (the device's twin is plain loops, too slow for
// others), and case.json. Weights and statistics are random, so that nothing hides.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/device_fixture.h"
#include "tests/train/golden_fixture.h"
#include "tests/train/plan_fixture.h"
#include "train/checkpoint/safetensors.h"
#include "train/device/tuning.h"
#include "train/export/onnx.h"

namespace stoker {
namespace {

constexpr int kRows = 3;

template <typename Number>
void write_numbers(const std::string& path, const std::vector<Number>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(Number)));
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

void write_weights(const std::string& path, const NetSpec& net, const LoadedModel& model) {
  std::vector<TensorView> tensors;
  const auto add = [&](const std::vector<TensorInfo>& table, const std::vector<float>& values) {
    for (const TensorInfo& info : table) {
      tensors.push_back({info.name, info.shape,
                         std::span(values).subspan(static_cast<size_t>(info.offset),
                                                   static_cast<size_t>(info.count))});
    }
  };
  add(parameter_table(net), model.parameters);
  add(statistics_table(net), model.statistics);
  write_safetensors(path, tensors, {});
}

std::vector<float> logits_of(Engine& engine, const LoadedModel& model, const TestBatch& batch) {
  engine.write(StateKind::parameters, model.parameters);
  engine.write(StateKind::statistics, model.statistics);
  std::vector<float> logits(static_cast<size_t>(kRows) * engine.net().classes);
  engine.forward(batch.rows(), {}, false, logits);
  return logits;
}

void write_case(const std::string& folder, const NetSpec& net, bool on_device) {
  std::filesystem::create_directories(folder);
  LoadedModel model;
  model.info.recipe = default_recipe(net.name);
  model.info.classes = label_count(net);
  for (int k = 0; k < model.info.classes; ++k) {
    model.info.class_names.push_back("class " + std::to_string(k));
  }
  model.parameters = golden_parameters(net);
  model.statistics = golden_statistics(net);
  EngineOptions options = engine_options(kRows, kRows);
  options.mean = model.info.recipe.mean;
  options.stddev = model.info.recipe.stddev;
  options.training = false;
  const TestBatch batch = make_batch(net, kRows, 5);

  const std::string onnx = onnx_bytes(net, model);
  write_numbers(folder + "/model.onnx", std::vector<char>(onnx.begin(), onnx.end()));
  write_weights(folder + "/model.safetensors", net, model);
  write_numbers(folder + "/images.bin", batch.images);
  write_numbers(folder + "/cpu.bin", logits_of(*make_cpu_engine(net, options), model, batch));
  if (on_device) {
    const auto device = make_loop_engine(net, options);
    write_numbers(folder + "/device.bin", logits_of(*device, model, batch));
  }
  const nlohmann::json description = {{"rows", kRows},
                                      {"height", net.input.height},
                                      {"width", net.input.width},
                                      {"channels", net.input_channels},
                                      {"outputs", net.classes},
                                      {"mean", options.mean},
                                      {"stddev", options.stddev}};
  std::ofstream(folder + "/case.json") << description.dump(1) << "\n";
}

void write_cases(const std::string& out, const std::vector<std::string>& models) {
  std::vector<NetSpec> nets;
  for (const std::string& name : models) {
    const Recipe recipe = default_recipe(name);
    const int classes = name == "mlp41m" ? 2 : recipe.input.width > 100 ? 1000 : 10;
    nets.push_back(make_net(name, recipe.input, classes));
  }
  if (models.empty()) nets = zoo();
  for (const NetSpec& net : nets) {
    write_case(out + "/" + net.name, net, models.empty());
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::invalid_argument("usage: exported_models OUT [MODEL...]");
    stoker::write_cases(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exported_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
