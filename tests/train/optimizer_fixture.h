// Trains a small net with an optimizer, and compares every optimizer with PyTorch
// (tests/golden/train/make_optimizer_golden.py), for any engine. Values.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/train/golden_fixture.h"
#include "tests/train/tested_engine.h"
#include "train/model/recipe.h"

namespace stoker {

inline EngineOptions engine_options_for(const OptimizerSpec& optimizer, int rows, int micro_batch,
                                        int workers = 1, Precision precision = Precision::fp32) {
  EngineOptions options = engine_options(rows, micro_batch, workers, precision);
  options.optimizer = optimizer.kind;
  options.clips = optimizer.clip_norm > 0;
  return options;
}

// Runs forward, backward and the sum of the gradients.
using Gradients = std::function<void(Engine&, const TestBatch&)>;

constexpr OptimizerKind kOptimizerKinds[] = {OptimizerKind::sgd, OptimizerKind::lars,
                                             OptimizerKind::adam, OptimizerKind::adamw};

inline OptimizerSpec clipping(OptimizerKind kind) {
  OptimizerSpec optimizer = with_optimizer({}, kind);
  optimizer.clip_norm = 0.3;
  return optimizer;
}

constexpr int kOptimizerSteps = 4;

// Trains for kOptimizerSteps steps, in which the rate rises linearly. No tensor is frozen but those
// in `frozen`.
inline void train_with(Engine& engine, const OptimizerSpec& optimizer, int rows,
                       const Gradients& gradients, const std::vector<size_t>& frozen = {}) {
  Recipe recipe = default_recipe("resnet20");
  recipe.optimizer = optimizer;
  recipe.optimizer.lr_ref_batch = 0;
  recipe.schedule = {};
  recipe.schedule.warmup_epochs = 1;
  const std::vector<TensorInfo> table = parameter_table(engine.net());
  StepRates rates;
  for (int step = 0; step < kOptimizerSteps; ++step) {
    const TestBatch batch = make_batch(engine.net(), rows, static_cast<uint32_t>(50 + step));
    set_rates(recipe, table, step, 2 * kOptimizerSteps, kOptimizerSteps, rates);
    for (const size_t tensor : frozen) rates.tensors[tensor].frozen = true;
    gradients(engine, batch);
    engine.update(rates.args);
    EXPECT_TRUE(engine.step_metrics().finite);
  }
}

// An update of all tensors with what the optimizer has by itself.
inline void update_once(Engine& engine, const OptimizerSpec& optimizer) {
  const std::vector<TensorUpdate> tensors(parameter_table(engine.net()).size(),
                                          {0.1f, 0.0f, false});
  UpdateArgs args;
  args.tensors = tensors;
  args.kind = optimizer.kind;
  args.clip_norm = static_cast<float>(optimizer.clip_norm);
  engine.update(args);
}

// The cases of the golden file as recipes have them.
inline OptimizerSpec optimizer_of(const nlohmann::json& golden) {
  const auto number = [&](const char* name, double otherwise) {
    return golden.value(name, otherwise);
  };
  OptimizerSpec optimizer;
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::adam, OptimizerKind::adamw}) {
    if (golden.at("kind") == to_string(kind)) optimizer.kind = kind;
  }
  optimizer.learning_rate = golden.at("learning_rate");
  optimizer.weight_decay = golden.at("weight_decay");
  optimizer.clip_norm = golden.at("clip_norm");
  optimizer.nesterov = golden.value("nesterov", false);
  optimizer.momentum = number("momentum", optimizer.momentum);
  optimizer.trust = number("trust", optimizer.trust);
  optimizer.beta1 = number("beta1", optimizer.beta1);
  optimizer.beta2 = number("beta2", optimizer.beta2);
  optimizer.epsilon = number("epsilon", optimizer.epsilon);
  return optimizer;
}

using MakeEngine =
    std::function<std::unique_ptr<Engine>(const NetSpec& net, const EngineOptions& options)>;

inline void compare_optimizers_with_pytorch(const MakeEngine& make, const Gradients& gradients) {
  std::ifstream file(std::string(STOKER_GOLDEN_DIR) + "/train/optimizers.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const NetSpec net = tiny_net();
  ASSERT_EQ(golden.at("steps"), kOptimizerSteps);
  ASSERT_EQ(golden.at("size"), net.input.width);
  const int rows = golden.at("rows");
  for (const nlohmann::json& each : golden.at("cases")) {
    nlohmann::json shown = each;
    shown.erase("parameters");
    SCOPED_TRACE(shown.dump());
    const OptimizerSpec optimizer = optimizer_of(each);
    const auto engine = make(net, engine_options_for(optimizer, rows, rows));
    engine->write(StateKind::parameters, golden_parameters(net));
    train_with(*engine, optimizer, rows, gradients);
    expect_tensors(read_state(*engine, StateKind::parameters), parameter_table(net),
                   each.at("parameters"), 2e-5, "weight");
  }
}

}  // namespace stoker
