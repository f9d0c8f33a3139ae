// Compares an engine's gradients with the reference's, on small nets. Values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/reference_net.h"
#include "tests/train/engine_fixture.h"
#include "train/model/net_builder.h"

namespace stoker {

inline ReferenceInput reference_input(const TestBatch& batch, const EngineOptions& options,
                                      int micro_batch = 0) {
  const int rows = options.micro_batch_size;
  const size_t image = batch.images.size() / batch.labels.size();
  ReferenceInput input;
  input.images = batch.images.data() + micro_batch * rows * image;
  input.labels = batch.labels.data() + micro_batch * rows;
  input.weights = batch.weights.data() + micro_batch * rows;
  if (!batch.targets.empty()) {
    input.targets =
        batch.targets.data() + micro_batch * rows * (batch.targets.size() / batch.labels.size());
  }
  if (!batch.mix_labels.empty()) {
    input.mix_labels = batch.mix_labels.data() + micro_batch * rows;
    input.mix_weights = batch.mix_weights.data() + micro_batch * rows;
  }
  input.rows = rows;
  input.mean = options.mean;
  input.stddev = options.stddev;
  input.label_smoothing = options.label_smoothing;
  input.seed = options.seed;
  input.position = batch.position + micro_batch * rows;
  return input;
}

inline std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

inline double distance(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

inline double norm(const double* a, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * a[i];
  return std::sqrt(sum);
}

// Returns parameters that hide no error: batch norms without neutral values, no zeros.
inline std::vector<float> lively_parameters(const NetSpec& net) {
  NetSpec uniform = net;
  for (NetNode& node : uniform.nodes) {
    node.init = WeightInit::uniform;
    node.zero_bias = false;
  }
  std::vector<float> values = initial_parameters(uniform, {3});
  for (const TensorInfo& info : parameter_table(net)) {
    for (int64_t i = 0; i < info.count; ++i) {
      const float wobble = static_cast<float>(noise(99, info.offset + i) % 1000) / 1000.0f - 0.5f;
      if (info.kind == ParameterKind::norm_weight) values[info.offset + i] += wobble;
      if (info.kind == ParameterKind::norm_bias) values[info.offset + i] += wobble;
    }
  }
  return values;
}

// Returns the gradients as the optimiser gets them: the momentum after one step from zero with
// momentum 0.
inline std::vector<double> engine_gradients(Engine& engine, const TestBatch& batch) {
  train_step(engine, batch, {1e-6f, 0.0f, 0.0f, false});
  return to_double(read_state(engine, StateKind::momenta));
}

inline void expect_gradients(const NetSpec& net, const std::vector<double>& actual,
                             const std::vector<double>& expected, double tolerance) {
  const double whole = norm(expected.data(), static_cast<int64_t>(expected.size()));
  for (const TensorInfo& info : parameter_table(net)) {
    const double* want = expected.data() + info.offset;
    // If the true gradient is zero (a bias before a batch norm), the scale is that of all
    // gradients.
    const double size = std::max(norm(want, info.count), 2e-2 * whole);
    EXPECT_LT(distance(actual.data() + info.offset, want, info.count), tolerance * size)
        << net.name << " " << info.name;
  }
}

using Body = std::function<int(NetBuilder&, int)>;

// Returns a net of a stem, the tested nodes, and a head with a bias and a scale.
inline NetSpec around(const std::string& name, const Body& body, int stem_channels = 8,
                      int size = 9) {
  NetBuilder net(name, {size, size + 1}, 5);
  int x = net.conv("stem", 0, stem_channels, 3, 1, 1, true);
  x = body(net, x);
  net.linear("fc", net.adaptive_avg_pool(x, {1, 1}), true, 0.7f);
  return net.finish();
}

}  // namespace stoker
