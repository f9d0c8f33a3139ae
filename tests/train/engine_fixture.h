// Small batches and engines for the tests of the CPU engine. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/engine/engine.h"
#include "train/model/initialise.h"

namespace stoker {

// Returns repeatable noise, the same on every machine: 32 well-mixed bits per index.
inline uint32_t noise(uint32_t seed, uint32_t index) {
  uint64_t z = (static_cast<uint64_t>(seed) << 32 | index) + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(z >> 32);
}

struct TestBatch {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  std::vector<float> weights;
  std::vector<float> targets{};       // (rows, classes) of a binary loss; else empty
  std::vector<int32_t> mix_labels{};  // of mixed rows; else empty, as is mix_weights
  std::vector<float> mix_weights{};
  int64_t position = 0;  // in the run

  BatchRows rows() const {
    BatchRows rows{images.data(), labels.data(), weights.data()};
    rows.position = position;
    if (!targets.empty()) rows.targets = targets.data();
    if (mix_labels.empty()) return rows;
    rows.mix_labels = mix_labels.data();
    rows.mix_weights = mix_weights.data();
    return rows;
  }
};

inline TestBatch make_batch(const NetSpec& net, int rows, uint32_t seed) {
  TestBatch batch;
  const int64_t image = static_cast<int64_t>(net.input.width) * net.input.height * 3;
  for (int64_t i = 0; i < rows * image; ++i) {
    batch.images.push_back(static_cast<uint8_t>(noise(seed, static_cast<uint32_t>(i))));
  }
  for (int row = 0; row < rows; ++row) {
    batch.labels.push_back(static_cast<int32_t>(noise(seed + 1, row) % label_count(net)));
    batch.weights.push_back(1.0f);
  }
  return batch;
}

// Gives every row targets from 0 to 1, half of them 0 or 1, instead of its label, which is none.
inline TestBatch with_targets(TestBatch batch, const NetSpec& net, uint32_t seed) {
  const auto rows = static_cast<uint32_t>(batch.labels.size());
  for (uint32_t i = 0; i < rows * static_cast<uint32_t>(net.classes); ++i) {
    const uint32_t draw = noise(seed + 4, i) % 2048;
    batch.targets.push_back(draw < 1024 ? static_cast<float>(draw % 2)
                                        : static_cast<float>(draw - 1024) / 1023.0f);
  }
  batch.labels.assign(rows, -1);
  return batch;
}

// Returns a part of a batch, of equal parts. `batch` must outlive it.
inline BatchRows part_of(const TestBatch& batch, int part, int parts) {
  const size_t rows = batch.labels.size() / static_cast<size_t>(parts);
  const size_t first = rows * static_cast<size_t>(part);
  BatchRows result = batch.rows();
  result.images += first * (batch.images.size() / batch.labels.size());
  result.labels += first;
  result.weights += first;
  if (result.targets != nullptr)
    result.targets += first * (batch.targets.size() / batch.labels.size());
  result.first = part == 0;
  result.last = part == parts - 1;
  return result;
}

// Gives every row a second label and a share of its own, from 0 to 1; the pixels stay.
inline TestBatch with_mixed_labels(TestBatch batch, const NetSpec& net, uint32_t seed) {
  const auto rows = static_cast<uint32_t>(batch.labels.size());
  for (uint32_t row = 0; row < rows; ++row) {
    batch.mix_labels.push_back(static_cast<int32_t>(noise(seed + 2, row) % net.classes));
    batch.mix_weights.push_back(static_cast<float>(noise(seed + 3, row) % 1025) / 1024.0f);
  }
  return batch;
}

inline EngineOptions engine_options(int rows, int micro_batch_size, int workers = 1,
                                    Precision precision = Precision::fp32) {
  EngineOptions options;
  options.rows = rows;
  options.micro_batch_size = micro_batch_size;
  options.nominal_rows = rows;
  options.workers = workers;
  options.precision = precision;
  options.mean = {0.5f, 0.45f, 0.4f};
  options.stddev = {0.25f, 0.22f, 0.2f};
  return options;
}

inline std::unique_ptr<Engine> started_engine(const NetSpec& net, const EngineOptions& options) {
  std::unique_ptr<Engine> engine = make_cpu_engine(net, options);
  engine->write(StateKind::parameters, initial_parameters(net, {1}));
  return engine;
}

// Sums the gradient buffers as a collective of one rank does.
inline void reduce(Engine& engine) {
  const std::span<float> sum = engine.reduced_gradients();
  for (size_t i = 0; i < sum.size(); ++i) {
    float total = 0;
    for (const float* part : engine.gradient_buffers()) total += part[i];
    sum[i] = total;
  }
}

struct TestSgd {
  float learning_rate = 0.05f, weight_decay = 5e-4f, momentum = 0.9f;
  bool nesterov = true;
};

inline void apply(Engine& engine, const TestSgd& sgd) {
  const std::vector<TensorUpdate> tensors(parameter_table(engine.net()).size(),
                                          {sgd.learning_rate, sgd.weight_decay, false});
  UpdateArgs args;
  args.tensors = tensors;
  args.momentum = sgd.momentum;
  args.nesterov = sgd.nesterov;
  engine.update(args);
}

inline void train_step(Engine& engine, const TestBatch& batch, const TestSgd& sgd = {}) {
  engine.forward_backward(batch.rows());
  reduce(engine);
  apply(engine, sgd);
}

inline std::vector<float> read_state(const Engine& engine, StateKind kind) {
  const bool statistics = kind == StateKind::statistics || kind == StateKind::average_statistics;
  std::vector<float> values(
      total_count(statistics ? statistics_table(engine.net()) : parameter_table(engine.net())));
  engine.read(kind, values);
  return values;
}

struct Trained {
  std::vector<float> parameters, momenta, statistics;
  bool operator==(const Trained&) const = default;
};

inline Trained state_of(const Engine& engine) {
  return {read_state(engine, StateKind::parameters), read_state(engine, StateKind::momenta),
          read_state(engine, StateKind::statistics)};
}

}  // namespace stoker
