// Compares one training step of whole models with PyTorch (tests/golden/train/make_golden.py), for
// any engine. Values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/train/engine_fixture.h"
#include "train/model/models.h"

namespace stoker {

inline double centred(uint32_t seed, int64_t index) {  // [-1, 1)
  return noise(seed, static_cast<uint32_t>(index)) / 2147483648.0 - 1.0;
}

// The same as parameter_values() in make_golden.py.
inline std::vector<float> golden_parameters(const NetSpec& net) {
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<float> values(total_count(table));
  for (size_t t = 0; t < table.size(); ++t) {
    const TensorInfo& info = table[t];
    const std::vector<int64_t>& shape = info.shape;
    for (int64_t i = 0; i < info.count; ++i) {
      double value = centred(static_cast<uint32_t>(1000 + t), i);
      if (shape.size() == 4) {
        value = value * std::sqrt(6.0 / static_cast<double>(shape[0] * shape[2] * shape[3]));
      } else if (shape.size() == 2) {
        value = value / std::sqrt(static_cast<double>(shape[1]));
      } else if (info.kind == ParameterKind::norm_weight) {
        value = 1.0 + 0.2 * value;
      } else {
        value = 0.2 * value;
      }
      values[info.offset + i] = static_cast<float>(value);
    }
  }
  return values;
}

inline std::vector<float> golden_statistics(const NetSpec& net) {
  const std::vector<TensorInfo> table = statistics_table(net);
  std::vector<float> values(total_count(table));
  for (size_t t = 0; t < table.size(); ++t) {
    for (int64_t i = 0; i < table[t].count; ++i) {
      const double value = centred(static_cast<uint32_t>(5000 + t), i);
      const bool mean = t % 2 == 0;
      values[table[t].offset + i] = static_cast<float>(mean ? 0.1 * value : 1.0 + 0.5 * value);
    }
  }
  return values;
}

inline void expect_logits(Engine& engine, const TestBatch& batch, const nlohmann::json& expected,
                          double tolerance) {
  std::vector<float> logits(expected.size());
  engine.forward(batch.rows(), {}, false, logits);
  double error = 0, size = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double want = expected[i];
    error += (logits[i] - want) * (logits[i] - want);
    size += want * want;
  }
  EXPECT_LT(std::sqrt(error), tolerance * std::sqrt(size));
}

// Compares norm, sum and the first values of every tensor, relative to its norm.
inline void expect_tensors(const std::vector<float>& values, const std::vector<TensorInfo>& table,
                           const nlohmann::json& expected, double tolerance, const char* what) {
  ASSERT_EQ(expected.size(), table.size());
  // Gradients that are truly 0 (a bias before a batch norm) are compared on the scale of the
  // others.
  double largest = 0;
  for (const nlohmann::json& each : expected) {
    largest = std::max(largest, each.at("norm").get<double>());
  }
  for (const TensorInfo& info : table) {
    const nlohmann::json& want = expected.at(info.name);
    const double norm = want.at("norm");
    double squares = 0, sum = 0;
    for (int64_t i = 0; i < info.count; ++i) {
      const double value = values[info.offset + i];
      squares += value * value;
      sum += value;
    }
    const double scale = tolerance * norm + 1e-6 * largest;
    EXPECT_NEAR(std::sqrt(squares), norm, scale) << what << " " << info.name;
    EXPECT_NEAR(sum, want.at("sum").get<double>(), scale * std::sqrt(info.count))
        << what << " " << info.name;
    for (size_t i = 0; i < want.at("first").size(); ++i) {
      EXPECT_NEAR(values[info.offset + i], want["first"][i].get<double>(), scale)
          << what << " " << info.name << "[" << i << "]";
    }
  }
}

struct GoldenTolerance {
  double logits, gradients, parameters, logits_after;
};

// `make` returns an engine, `train` runs one step on it.
template <typename Make, typename Step>
void compare_with_pytorch(const std::string& model, const GoldenTolerance& tolerance, Make make,
                          Step train, bool mixed = false, const std::vector<int>& widths = {}) {
  std::ifstream file(std::string(STOKER_GOLDEN_DIR) + "/train/" + model +
                     (mixed ? "_mixed.json" : ".json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden.at("mixed"), mixed);
  const int size = golden.at("size"), rows = golden.at("rows");
  NetSpec net = make_net(model, {size, size}, golden.at("classes"), {widths});
  for (NetNode& node : net.nodes) node.rate = 0;  // PyTorch draws its own
  EngineOptions options = engine_options(rows, rows);
  options.label_smoothing = golden.at("label_smoothing");
  const auto engine = make(net, options);
  const std::vector<float> start = golden_parameters(net);
  engine->write(StateKind::parameters, start);
  engine->write(StateKind::statistics, golden_statistics(net));
  TestBatch batch = make_batch(net, rows, golden.at("seed"));
  if (mixed) batch = with_mixed_labels(batch, net, golden.at("seed"));
  expect_logits(*engine, batch, golden.at("logits_before"), tolerance.logits);

  const float weight_decay = golden.at("weight_decay");
  train(*engine, batch,
        TestSgd{golden.at("learning_rate"), weight_decay, golden.at("momentum"), true});
  EXPECT_NEAR(engine->step_metrics().loss_sum / rows, golden.at("loss").get<double>(),
              tolerance.logits);
  // After one step the momentum is the gradient plus the decay.
  std::vector<float> gradients = read_state(*engine, StateKind::momenta);
  for (size_t i = 0; i < start.size(); ++i) gradients[i] -= weight_decay * start[i];
  const std::vector<TensorInfo> table = parameter_table(net);
  expect_tensors(gradients, table, golden.at("gradients"), tolerance.gradients, "gradient of");
  expect_tensors(read_state(*engine, StateKind::parameters), table, golden.at("parameters"),
                 tolerance.parameters, "weight");
  expect_tensors(read_state(*engine, StateKind::statistics), statistics_table(net),
                 golden.at("statistics"), 1e-5, "statistic");
  expect_logits(*engine, batch, golden.at("logits_after"), tolerance.logits_after);
}

}  // namespace stoker
