// The CPU engine under test.
#include "tests/train/tested_engine.h"

namespace stoker {

const TestedEngine& tested_engine() {
  static const TestedEngine engine = [] {
    TestedEngine cpu;
    if (!cpu_supports(Precision::bf16)) cpu.precisions = {Precision::fp32};
    cpu.small_net = make_net("airnet-narrow", {32, 32}, 10);
    cpu.parts_net = make_net("airnet", {32, 32}, 10);
    cpu.channels = {8, 16, 20, 12};
    cpu.refuses_odd_pixel_convolutions = true;
    cpu.growing_cosine = 0.99;
    cpu.bf16_models = {"airnet", "resnet20", "resnet18", "alexnet", "vgg16", "densenet40"};
    cpu.piece_bytes = 1;
    cpu.norm_bytes = {0, 0};
    cpu.part_takes_less = true;
    cpu.same_logits = 1e-4;
    cpu.same_bf16_logits = 0.05;
    cpu.workers = {{1}, {1}, {2}, {4}, {1, 4, 2}, {1, 4, 2}};
    cpu.sync_workers = 2;
    cpu.sync_replicas = 4;
    cpu.sync_steps = 3;
    return cpu;
  }();
  return engine;
}

std::string engine_problem() { return ""; }

std::unique_ptr<Engine> make_engine(const NetSpec& net, const EngineOptions& options) {
  return make_cpu_engine(net, options);
}

BatchRows placed(Engine&, const TestBatch& batch) { return batch.rows(); }

void edit_sum(Engine& engine, const std::function<void(std::span<float>)>& edit) {
  edit(engine.reduced_gradients());
}

}  // namespace stoker
