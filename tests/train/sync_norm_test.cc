// Tests of synchronised batch norms in the CPU engine: replicas are as one engine whose
// micro-batches hold the rows of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "tests/train/sync_norm_fixture.h"
#include "train/collective/norm_exchange.h"
#include "train/model/models.h"

namespace stoker {
namespace {

// A whole net learns as one engine that has all rows in one micro-batch, and otherwise than
// replicas with norms of their own. It has no ReLU, over whose edge rounding moves values.
TEST(SyncNorm, ReplicasAreOneEngineWithAllTheirRows) {
  const NetSpec net = make_net("airnet", {32, 32}, 10, {{8, 16, 16}});
  const SyncShape shape{4, 1, 4};
  const TestSgd sgd{0.02f, 5e-4f, 0.9f, true};
  const auto whole = started_engine(net, engine_options(shape.united(), shape.united()));
  CpuReplicas together(net, shape, Precision::fp32, {1});
  CpuReplicas apart(net, shape, Precision::fp32, {1}, false);
  for (uint32_t step = 0; step < 3; ++step) {
    train_step(*whole, united_rows(net, shape, 0, step), sgd);
    together->step(step, sgd);
    apart->step(step, sgd);
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

TEST_P(SyncNormTest, AMicroBatchHoldsTheRowsOfAllReplicas) {
  const NetSpec net = many_norms();
  for (const SyncShape& shape : {SyncShape{2, 1, 4}, SyncShape{4, 1, 2}, SyncShape{3, 3, 2}}) {
    SCOPED_TRACE(std::to_string(shape.replicas) + " replicas");
    CpuReplicas replicas(net, shape, GetParam(), {2});
    expect_united_step(net, replicas.all(), fp32());
  }
}

TEST_P(SyncNormTest, NeitherWorkersNorTimingLeaveATrace) {
  const NetSpec net = many_norms();
  const SyncShape shape{3, 4, 2};
  std::vector<Trained> all;
  for (const std::vector<int>& workers :
       std::vector<std::vector<int>>{{1}, {1}, {2}, {4}, {1, 4, 2}, {1, 4, 2}}) {
    CpuReplicas replicas(net, shape, GetParam(), workers);
    for (uint32_t step = 0; step < 3; ++step) replicas->step(step);
    for (int rank = 0; rank < shape.replicas; ++rank) all.push_back(state_of(replicas[rank]));
  }
  for (const Trained& each : all) EXPECT_TRUE(each == all[0]);
}

TEST_P(SyncNormTest, FrozenPartsChangeNothingElse) {
  const NetSpec net = many_norms();
  const SyncShape shape{2, 2, 2};
  const auto make = [&] { return CpuReplicas(net, shape, GetParam(), {2}); };
  expect_frozen_parts_change_nothing_else(net, make, is_frozen_part);
}

// The same running statistics and weights give the same logits as without synchronisation.
TEST_P(SyncNormTest, EvaluationMeetsNobody) {
  const NetSpec net = many_norms();
  const SyncShape shape{2, 1, 4};
  CpuReplicas together(net, shape, GetParam(), {1}), apart(net, shape, GetParam(), {1}, false);
  const TestBatch batch = make_batch(net, shape.rows, 3);
  std::vector<float> a(4 * 5), b(4 * 5);
  together[1].forward(batch.rows(), {}, false, a);  // alone
  apart[1].forward(batch.rows(), {}, false, b);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], fp32() ? 1e-5 : 0.05);
}

TEST_P(SyncNormTest, AFailureInOneReplicaEndsThePassOfTheOthers) {
  const NetSpec net = many_norms();
  NormExchange norms(2, 2, static_cast<size_t>(most_numbers(net)));
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
