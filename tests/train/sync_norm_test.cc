// Tests of synchronised batch norms in the CPU engine: replicas are as one engine whose
// micro-batches hold the rows of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "tests/train/gradient_fixture.h"
#include "train/collective/norm_exchange.h"
#include "train/model/models.h"

namespace stoker {
namespace {

struct Shape {
  int replicas = 2, micro_batches = 1, rows = 4;  // rows of a micro-batch of one replica
  int united() const { return replicas * rows; }
};

// The rows that meet: of micro-batch k of all replicas, in the order of the replicas. Some do not
// count, or half.
TestBatch united_rows(const NetSpec& net, const Shape& shape, int k, uint32_t seed) {
  TestBatch batch = make_batch(net, shape.united(), seed + 100 * static_cast<uint32_t>(k));
  batch.weights[1] = 0.5f;
  batch.weights.back() = 0;
  return batch;
}

void append(const TestBatch& from, int first, int rows, TestBatch& to) {
  const auto image = static_cast<std::ptrdiff_t>(from.images.size() / from.labels.size());
  to.images.insert(to.images.end(), from.images.begin() + first * image,
                   from.images.begin() + (first + rows) * image);
  to.labels.insert(to.labels.end(), from.labels.begin() + first,
                   from.labels.begin() + first + rows);
  to.weights.insert(to.weights.end(), from.weights.begin() + first,
                    from.weights.begin() + first + rows);
}

// That a replica brings at once.
size_t most_numbers(const NetSpec& net) {
  int64_t channels = 0;
  for (const TensorInfo& info : statistics_table(net)) channels = std::max(channels, info.count);
  return static_cast<size_t>(2 * channels);
}

// Engines of replicas, with their threads and the sum of their gradients.
class Replicas {
 public:
  // `workers` of each replica, in turn.
  Replicas(const NetSpec& net, const Shape& shape, Precision precision,
           const std::vector<int>& workers, bool synchronised = true)
      : net_(net), shape_(shape) {
    norms_ = std::make_unique<NormExchange>(shape.replicas, shape.micro_batches, most_numbers(net));
    for (int rank = 0; rank < shape.replicas; ++rank) {
      EngineOptions options =
          engine_options(shape.rows * shape.micro_batches, shape.rows,
                         workers[static_cast<size_t>(rank) % workers.size()], precision);
      options.nominal_rows = int64_t{shape.replicas} * options.rows;
      if (synchronised) options.norms = norms_.get();
      options.rank = rank;
      engines_.push_back(started_engine(net, options));
    }
  }

  Engine& operator[](int rank) { return *engines_[static_cast<size_t>(rank)]; }
  void write(StateKind kind, const std::vector<float>& values) {
    for (const auto& engine : engines_) engine->write(kind, values);
  }

  // Gradients of the batch's rows, added up in the order of the replicas.
  void pass(uint32_t seed) {
    std::vector<TestBatch> batches(engines_.size());
    for (int k = 0; k < shape_.micro_batches; ++k) {
      const TestBatch united = united_rows(net_, shape_, k, seed);
      for (int rank = 0; rank < shape_.replicas; ++rank) {
        append(united, rank * shape_.rows, shape_.rows, batches[static_cast<size_t>(rank)]);
      }
    }
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < engines_.size(); ++rank) {
      threads.emplace_back(
          [this, rank, &batches] { engines_[rank]->forward_backward(batches[rank].rows()); });
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
  const Shape shape_;
  std::unique_ptr<NormExchange> norms_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

int add_norm(NetBuilder& n, const std::string& name, int x) {
  return n.batch_norm(name, x, 1e-5f, 0.3f);
}

// Norms of several numbers of channels, with a ReLU and without, one after the other and side by
// side.
NetSpec many_norms() {
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
double far(const Engine& a, const Engine& b, StateKind kind) {
  const std::vector<double> values = to_double(read_state(a, kind));
  const std::vector<double> expected = to_double(read_state(b, kind));
  const auto count = static_cast<int64_t>(expected.size());
  return distance(values.data(), expected.data(), count) / norm(expected.data(), count);
}

// A whole net learns as one engine that has all rows in one micro-batch, and otherwise than
// replicas with norms of their own. It has no ReLU, over whose edge rounding moves values.
TEST(SyncNorm, ReplicasAreOneEngineWithAllTheirRows) {
  const NetSpec net = make_net("airnet", {32, 32}, 10, {{8, 16, 16}});
  const Shape shape{4, 1, 4};
  const TestSgd sgd{0.02f, 5e-4f, 0.9f, true};
  const auto whole = started_engine(net, engine_options(shape.united(), shape.united()));
  Replicas together(net, shape, Precision::fp32, {1});
  Replicas apart(net, shape, Precision::fp32, {1}, false);
  for (uint32_t step = 0; step < 3; ++step) {
    train_step(*whole, united_rows(net, shape, 0, step), sgd);
    together.step(step, sgd);
    apart.step(step, sgd);
    for (const StateKind kind :
         {StateKind::parameters, StateKind::momenta, StateKind::statistics}) {
      const double near = far(together[0], *whole, kind);
      EXPECT_LT(near, 1e-5);
      EXPECT_GT(far(apart[0], *whole, kind), 100 * near) << "norms of their own are as good";
    }
  }
}

class SyncNormTest : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!cpu_supports(GetParam())) GTEST_SKIP() << "no bf16 instructions";
  }
  bool fp32() const { return GetParam() == Precision::fp32; }
};

// Against the reference in double precision, which gets the rows that meet as one micro-batch.
TEST_P(SyncNormTest, AMicroBatchHoldsTheRowsOfAllReplicas) {
  const NetSpec net = many_norms();
  const std::vector<float> parameters = lively_parameters(net);
  const std::vector<TensorInfo> table = statistics_table(net);
  for (const Shape& shape : {Shape{2, 1, 4}, Shape{4, 1, 2}, Shape{3, 3, 2}}) {
    SCOPED_TRACE(std::to_string(shape.replicas) + " replicas");
    Replicas replicas(net, shape, GetParam(), {2});
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
                       fp32() ? 2e-5 : 0.2);
      EXPECT_NEAR(replicas[rank].step_metrics().loss_sum, loss, (fp32() ? 1e-5 : 0.05) * loss);
      EXPECT_EQ(read_state(replicas[rank], StateKind::parameters),
                read_state(replicas[0], StateKind::parameters));
    }

    // The running statistics are those of all rows of the step.
    const std::vector<float> running = read_state(replicas[0], StateKind::statistics);
    const std::vector<NodeShape> shapes = node_shapes(net);
    for (size_t t = 0; t < table.size(); t += 2) {  // means, variances
      const NodeShape& values = shapes[static_cast<size_t>(table[t].node)];
      const double count =
          1.0 * shape.micro_batches * shape.united() * values.height * values.width;
      for (int64_t c = 0; c < table[t].count; ++c) {
        const auto mean_at = static_cast<size_t>(table[t].offset + c);
        const auto variance_at = static_cast<size_t>(table[t + 1].offset + c);
        double mean = 0, square = 0;
        for (const std::vector<double>& each : statistics) {
          mean += each[mean_at] / shape.micro_batches;
          square += (each[variance_at] + each[mean_at] * each[mean_at]) / shape.micro_batches;
        }
        const double variance = (square - mean * mean) * count / (count - 1);
        const double near = (fp32() ? 5e-6 : 0.05) * (1 + variance);
        EXPECT_NEAR(running[mean_at], 0.3 * mean, near) << table[t].name << ' ' << c;
        EXPECT_NEAR(running[variance_at], 0.7 + 0.3 * variance, near) << table[t].name << ' ' << c;
      }
    }
  }
}

TEST_P(SyncNormTest, NeitherWorkersNorTimingLeaveATrace) {
  const NetSpec net = many_norms();
  const Shape shape{3, 4, 2};
  std::vector<Trained> all;
  for (const std::vector<int>& workers :
       std::vector<std::vector<int>>{{1}, {1}, {2}, {4}, {1, 4, 2}, {1, 4, 2}}) {
    Replicas replicas(net, shape, GetParam(), workers);
    for (uint32_t step = 0; step < 3; ++step) replicas.step(step);
    for (int rank = 0; rank < shape.replicas; ++rank) all.push_back(state_of(replicas[rank]));
  }
  for (const Trained& each : all) EXPECT_TRUE(each == all[0]);
}

// All replicas leave the same steps out, and those that are left meet.
TEST_P(SyncNormTest, FrozenPartsChangeNothingElse) {
  const NetSpec net = many_norms();
  const Shape shape{2, 2, 2};
  const std::vector<TensorInfo> table = parameter_table(net);
  std::vector<TensorUpdate> tensors(table.size(), {0.05f, 0, false});
  for (size_t t = 0; t < table.size(); ++t) {
    const std::string& name = table[t].name;
    tensors[t].frozen = name.starts_with("stem") || name.starts_with("a.") || name == "c.weight";
  }
  UpdateArgs args;
  args.tensors = tensors;
  std::vector<std::vector<float>> trained;
  for (const bool expected : {false, true}) {
    Replicas replicas(net, shape, GetParam(), {2});
    for (uint32_t step = 0; step < 2; ++step) {
      for (int rank = 0; rank < shape.replicas && expected; ++rank) {
        replicas[rank].expect_frozen(tensors);
      }
      replicas.pass(step);
      for (int rank = 0; rank < shape.replicas; ++rank) replicas[rank].update(args);
    }
    trained.push_back(read_state(replicas[1], StateKind::parameters));
  }
  EXPECT_EQ(trained[0], trained[1]);
}

// The same running statistics and weights give the same logits as without synchronisation.
TEST_P(SyncNormTest, EvaluationMeetsNobody) {
  const NetSpec net = many_norms();
  const Shape shape{2, 1, 4};
  Replicas together(net, shape, GetParam(), {1}), apart(net, shape, GetParam(), {1}, false);
  const TestBatch batch = make_batch(net, shape.rows, 3);
  std::vector<float> a(4 * 5), b(4 * 5);
  together[1].forward(batch.rows(), {}, false, a);  // alone
  apart[1].forward(batch.rows(), {}, false, b);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], fp32() ? 1e-5 : 0.05);
}

TEST_P(SyncNormTest, AFailureInOneReplicaEndsThePassOfTheOthers) {
  const NetSpec net = many_norms();
  NormExchange norms(2, 2, most_numbers(net));
  EngineOptions options = engine_options(4, 2, 2, GetParam());
  options.norms = &norms;
  const auto engine = started_engine(net, options);
  std::string message;
  std::thread waiting([&] {
    try {
      engine->forward_backward(make_batch(net, 4, 1).rows());
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  });
  norms.abort("replica 1 has no batch");
  waiting.join();
  EXPECT_EQ(message, "replica 1 has no batch");
}

INSTANTIATE_TEST_SUITE_P(Each, SyncNormTest, ::testing::Values(Precision::fp32, Precision::bf16),
                         [](const auto& test) {
                           return test.param == Precision::bf16 ? "bf16" : "fp32";
                         });

}  // namespace
}  // namespace stoker
