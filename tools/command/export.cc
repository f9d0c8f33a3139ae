// stoker export: a checkpoint's model as a file for other software.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "pipeline/files/durable_file.h"
#include "tools/command/command.h"
#include "train/export/onnx.h"

namespace stoker {

int run_export(int argc, char** argv) {
  std::string checkpoint, onnx;
  auto app = make_parser(
      "export",
      "Writes the model of a checkpoint for other software. (PyTorch needs no export: it loads "
      "the\n"
      "checkpoint's model.safetensors by name.) The ONNX file is for inference, in fp32: its "
      "input\n"
      "is RGB / 255 minus the mean, divided by the deviation, which its metadata have, as\n"
      "(N, 3, H, W); its output is the logits.",
      "  stoker export --checkpoint runs/r18 --onnx r18.onnx\n"
      "  stoker export --checkpoint runs/r18/checkpoints/step_00000500 --onnx r18.onnx\n");
  app->add_option("--checkpoint", checkpoint,
                  "Checkpoint to export: its folder, its model.safetensors, or a run's folder, of "
                  "which the newest is taken")
      ->required();
  app->add_option("--onnx", onnx, "ONNX file to write; one that is there is replaced")->required();
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (!std::filesystem::exists(checkpoint)) {
    throw std::invalid_argument("--checkpoint: " + checkpoint + ": No such file or directory");
  }
  const LoadedModel model = load_model(checkpoint);
  const NetSpec net = model.info.net();
  const std::string bytes = onnx_bytes(net, model);
  replace_file(onnx, bytes);
  fmt::print("{}: {} with {} outputs for {}x{} pixels, {:.1f} MiB, from {}\n", onnx, net.name,
             net.classes, net.input.width, net.input.height,
             static_cast<double>(bytes.size()) / (1 << 20), model.file);
  return kExitOk;
}

}  // namespace stoker
