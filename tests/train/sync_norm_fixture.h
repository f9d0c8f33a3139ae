// Helpers for tests of engines whose batch norms are synchronised: replicas are as one engine whose
// micro-batches hold the rows of all. Values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/gradient_fixture.h"
#include "train/collective/device_norm_exchange.h"
#include "train/collective/norm_exchange.h"

namespace stoker {

struct SyncShape {
  int replicas = 2, micro_batches = 1, rows = 4;  // rows of a micro-batch of one replica
  int united() const { return replicas * rows; }
};

// The rows that meet: of micro-batch k of all replicas, in the order of the replicas. Some do not
// count, or half.
inline TestBatch united_rows(const NetSpec& net, const SyncShape& shape, int k, uint32_t seed) {
  TestBatch batch = make_batch(net, shape.united(), seed + 100 * static_cast<uint32_t>(k));
  batch.weights[1] = 0.5f;
  batch.weights.back() = 0;
  return batch;
}

inline void append_rows(const TestBatch& from, int first, int rows, TestBatch& to) {
  const auto image = static_cast<std::ptrdiff_t>(from.images.size() / from.labels.size());
  to.images.insert(to.images.end(), from.images.begin() + first * image,
                   from.images.begin() + (first + rows) * image);
  to.labels.insert(to.labels.end(), from.labels.begin() + first,
                   from.labels.begin() + first + rows);
  to.weights.insert(to.weights.end(), from.weights.begin() + first,
                    from.weights.begin() + first + rows);
}

// The same rows as the batches of the replicas.
inline std::vector<TestBatch> batches_of_replicas(const NetSpec& net, const SyncShape& shape,
                                                  uint32_t seed) {
  std::vector<TestBatch> batches(static_cast<size_t>(shape.replicas));
  for (int k = 0; k < shape.micro_batches; ++k) {
    const TestBatch united = united_rows(net, shape, k, seed);
    for (int rank = 0; rank < shape.replicas; ++rank) {
      append_rows(united, rank * shape.rows, shape.rows, batches[static_cast<size_t>(rank)]);
    }
  }
  return batches;
}

// That a replica brings at once.
inline int64_t most_numbers(const NetSpec& net) {
  int64_t channels = 0;
  for (const TensorInfo& info : statistics_table(net)) channels = std::max(channels, info.count);
  return 2 * channels;
}

// Engines of replicas in host memory, with their threads and the sum of their gradients.
class SyncReplicas {
 public:
  // Makes the engine of a replica; the options have its rank.
  using Make = std::function<std::unique_ptr<Engine>(const EngineOptions& options)>;

  SyncReplicas(const NetSpec& net, const SyncShape& shape, Precision precision, const Make& make)
      : net_(net), shape_(shape) {
    for (int rank = 0; rank < shape.replicas; ++rank) {
      EngineOptions options =
          engine_options(shape.rows * shape.micro_batches, shape.rows, 1, precision);
      options.nominal_rows = int64_t{shape.replicas} * options.rows;
      options.rank = rank;
      engines_.push_back(make(options));
    }
  }

  const SyncShape& shape() const { return shape_; }
  Engine& operator[](int rank) { return *engines_[static_cast<size_t>(rank)]; }
  void write(StateKind kind, const std::vector<float>& values) {
    for (const auto& engine : engines_) engine->write(kind, values);
  }

  // Gradients of the batch's rows, added up in the order of the replicas.
  void pass(uint32_t seed) {
    const std::vector<TestBatch> batches = batches_of_replicas(net_, shape_, seed);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < engines_.size(); ++rank) {
      threads.emplace_back([this, rank, &batches] {
        engines_[rank]->forward_backward(batches[rank].rows());
        if (engines_[rank]->stream()) engines_[rank]->stream()->synchronize();
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<float> sum(static_cast<size_t>(engines_[0]->gradient_buffer_floats()), 0.0f);
    for (const auto& engine : engines_) {
      for (const float* part : engine->gradient_buffers()) {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      }
    }
    for (const auto& engine : engines_) std::ranges::copy(sum, engine->reduced_gradients().begin());
  }
  void step(uint32_t seed, const TestSgd& sgd = {}) {
    pass(seed);
    for (const auto& engine : engines_) apply(*engine, sgd);
  }

 private:
  const NetSpec net_;
  const SyncShape shape_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// Replicas whose batch norms meet, or have norms of their own.
class MeetingReplicas {
 public:
  // `make` gets the options of each replica.
  MeetingReplicas(const NetSpec& net, const SyncShape& shape, Precision precision,
                  const SyncReplicas::Make& make, bool synchronised = true)
      : norms_(std::make_unique<NormExchange>(shape.replicas, shape.micro_batches,
                                              static_cast<size_t>(most_numbers(net)))) {
    auto device_norms = std::make_unique<DeviceNormExchange>(shape.replicas, most_numbers(net));
    engines_ = std::make_unique<SyncReplicas>(net, shape, precision, [&](EngineOptions options) {
      if (synchronised) options.norms = norms_.get();
      if (synchronised) options.device_norms = device_norms.get();
      return make(options);
    });
    device_norms_ = std::move(device_norms);
  }

  SyncReplicas& all() { return *engines_; }
  SyncReplicas* operator->() { return engines_.get(); }
  Engine& operator[](int rank) { return (*engines_)[rank]; }
  void abort(const std::string& reason) {
    norms_->abort(reason);
    device_norms_->abort(reason);
  }

 private:
  std::unique_ptr<NormExchange> norms_;
  std::unique_ptr<SyncReplicas> engines_;
  std::unique_ptr<DeviceNormExchange> device_norms_;  // goes first
};

inline int add_norm(NetBuilder& n, const std::string& name, int x) {
  return n.batch_norm(name, x, 1e-5f, 0.3f);
}

// Norms of several numbers of channels, with a ReLU and without, one after the other and side by
// side.
inline NetSpec many_norms() {
  const auto body = [](NetBuilder& n, int x) {
    x = n.plain(OpKind::relu, add_norm(n, "a", x));
    const int left = add_norm(n, "b", n.conv("l", x, 12, 3, 2, 1));
    const int right = add_norm(n, "c", n.conv("r", x, 12, 1, 2, 0));
    x = n.plain(OpKind::relu, n.add(left, right));
    return n.plain(OpKind::gelu, add_norm(n, "d", n.conv("s", x, 20, 1, 1, 0)));
  };
  return around("norms", body);
}

// The distance of two engines' states, as a share of their size.
inline double far(const Engine& a, const Engine& b, StateKind kind) {
  const std::vector<double> values = to_double(read_state(a, kind));
  const std::vector<double> expected = to_double(read_state(b, kind));
  const auto count = static_cast<int64_t>(expected.size());
  return distance(values.data(), expected.data(), count) / norm(expected.data(), count);
}

// Expects that a step of the replicas is that of the reference in double precision, which gets the
// rows that meet as one micro-batch.
inline void expect_united_step(const NetSpec& net, SyncReplicas& replicas, bool fp32) {
  const SyncShape& shape = replicas.shape();
  const std::vector<float> parameters = lively_parameters(net);
  const std::vector<TensorInfo> table = statistics_table(net);
  replicas.write(StateKind::parameters, parameters);
  replicas.step(21, {1e-6f, 0.0f, 0.0f, false});

  const EngineOptions options = engine_options(shape.united(), shape.united());
  std::vector<double> gradients(parameters.size(), 0.0);
  std::vector<std::vector<double>> statistics;
  double loss = 0;
  for (int k = 0; k < shape.micro_batches; ++k) {
    const TestBatch united = united_rows(net, shape, k, 21);
    const ReferenceStep step =
        reference_step(net, to_double(parameters), reference_input(united, options));
    const double weight_sum = shape.micro_batches * (shape.united() - 1.5);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] += step.gradients[i] / weight_sum;
    statistics.push_back(step.statistics);
    loss += step.loss_sum;
  }
  for (int rank = 0; rank < shape.replicas; ++rank) {
    expect_gradients(net, to_double(read_state(replicas[rank], StateKind::momenta)), gradients,
                     fp32 ? 2e-5 : 0.2);
    EXPECT_NEAR(replicas[rank].step_metrics().loss_sum, loss, (fp32 ? 1e-5 : 0.05) * loss);
    EXPECT_EQ(read_state(replicas[rank], StateKind::parameters),
              read_state(replicas[0], StateKind::parameters));
  }

  // The running statistics are those of all rows of the step.
  const std::vector<float> running = read_state(replicas[0], StateKind::statistics);
  const std::vector<NodeShape> shapes = node_shapes(net);
  for (size_t t = 0; t < table.size(); t += 2) {  // means, variances
    const NodeShape& values = shapes[static_cast<size_t>(table[t].node)];
    const double count = 1.0 * shape.micro_batches * shape.united() * values.height * values.width;
    for (int64_t c = 0; c < table[t].count; ++c) {
      const auto mean_at = static_cast<size_t>(table[t].offset + c);
      const auto variance_at = static_cast<size_t>(table[t + 1].offset + c);
      double mean = 0, square = 0;
      for (const std::vector<double>& each : statistics) {
        mean += each[mean_at] / shape.micro_batches;
        square += (each[variance_at] + each[mean_at] * each[mean_at]) / shape.micro_batches;
      }
      const double variance = (square - mean * mean) * count / (count - 1);
      const double near = (fp32 ? 5e-6 : 0.05) * (1 + variance);
      EXPECT_NEAR(running[mean_at], 0.3 * mean, near) << table[t].name << ' ' << c;
      EXPECT_NEAR(running[variance_at], 0.7 + 0.3 * variance, near) << table[t].name << ' ' << c;
    }
  }
}

// Checks that replicas train to the same weights whether or not they are told before a step which
// tensors are frozen: then all of them leave the same work out. `make` makes two replicas.
template <typename Make>
void expect_frozen_parts_change_nothing_else(
    const NetSpec& net, const Make& make, const std::function<bool(const std::string&)>& frozen) {
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<TensorUpdate> tensors(table.size(), {0.05f, 0, false});
  for (size_t t = 0; t < table.size(); ++t) tensors[t].frozen = frozen(table[t].name);
  UpdateArgs args;
  args.tensors = tensors;
  std::vector<std::vector<float>> trained;
  for (const bool told : {false, true}) {
    auto replicas = make();
    for (uint32_t step = 0; step < 2; ++step) {
      for (int rank = 0; rank < 2 && told; ++rank) replicas[rank].expect_frozen(tensors);
      replicas->pass(step);
      for (int rank = 0; rank < 2; ++rank) replicas[rank].update(args);
    }
    trained.push_back(read_state(replicas[1], StateKind::parameters));
  }
  EXPECT_EQ(trained[0], trained[1]);
}
inline bool is_frozen_part(const std::string& name) {
  return name.starts_with("stem") || name.starts_with("a.") || name == "c.weight";
}

}  // namespace stoker
