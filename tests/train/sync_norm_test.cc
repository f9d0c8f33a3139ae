// Synchronised batch norms in every engine: replicas are as one engine whose micro-batches hold the
// rows of all.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/sync_norm_fixture.h"
#include "tests/train/tested_engine.h"

namespace stoker {
namespace {

// `workers` of each replica, in turn.
MeetingReplicas replicas_of(const NetSpec& net, const SyncShape& shape, Precision precision,
                            bool synchronised = true,
                            const std::vector<int>& workers = {tested_engine().sync_workers}) {
  const auto make = [&](EngineOptions options) {
    options.workers = workers[static_cast<size_t>(options.rank) % workers.size()];
    return make_started_engine(net, options);
  };
  return {net, shape, precision, make, synchronised};
}

// A norm with a residual and a ReLU, whose mask is kept, once with a gradient of several readers.
NetSpec residual_norms() {
  const auto body = [](NetBuilder& n, int x) {
    x = n.plain(OpKind::relu, add_norm(n, "a", x));
    const int one = add_norm(n, "b", n.conv("b0", x, 8, 3, 1, 1));
    x = n.plain(OpKind::relu, n.add(one, x));
    const int two = add_norm(n, "c", n.conv("c0", x, 8, 3, 1, 1));
    return n.plain(OpKind::relu, n.add(two, x));
  };
  return around("residual norms", body);
}

class SyncNormTest : public OnTestedEngine, public ::testing::WithParamInterface<Precision> {
 protected:
  bool fp32() const { return GetParam() == Precision::fp32; }
};

// A whole net learns as one engine that has all rows in one micro-batch, and otherwise than
// replicas with norms of their own. It has no ReLU, over whose edge rounding moves values.
TEST(SyncNorm, ReplicasAreOneEngineWithAllTheirRows) {
  const NetSpec net = make_net("airnet", {32, 32}, 10, {{8, 16, 16}});
  const SyncShape shape{tested_engine().sync_replicas, 1, 4};
  const TestSgd sgd{0.02f, 5e-4f, 0.9f, true};
  const auto whole = make_started_engine(net, engine_options(shape.united(), shape.united()));
  MeetingReplicas together = replicas_of(net, shape, Precision::fp32, true, {1});
  MeetingReplicas apart = replicas_of(net, shape, Precision::fp32, false, {1});
  for (uint32_t step = 0; step < tested_engine().sync_steps; ++step) {
    const TestBatch united = united_rows(net, shape, 0, step);
    run_pass(*whole, united);
    apply(*whole, sgd);
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

// Against the reference in double precision, which gets the rows that meet as one micro-batch.
TEST_P(SyncNormTest, AMicroBatchHoldsTheRowsOfAllReplicas) {
  for (const NetSpec& net : {many_norms(), residual_norms()}) {
    for (const SyncShape& shape : {SyncShape{2, 1, 4}, SyncShape{4, 1, 2}, SyncShape{3, 3, 2}}) {
      SCOPED_TRACE(net.name + ", " + std::to_string(shape.replicas) + " replicas");
      MeetingReplicas replicas = replicas_of(net, shape, GetParam());
      expect_united_step(net, replicas.all(), fp32());
    }
  }
}

TEST_P(SyncNormTest, NeitherWorkersNorTimingLeaveATrace) {
  const NetSpec net = many_norms();
  const SyncShape shape{3, 4, 2};
  std::vector<Trained> all;
  for (const std::vector<int>& workers : tested_engine().workers) {
    MeetingReplicas replicas = replicas_of(net, shape, GetParam(), true, workers);
    for (uint32_t step = 0; step < 3; ++step) replicas->step(step);
    for (int rank = 0; rank < shape.replicas; ++rank) all.push_back(state_of(replicas[rank]));
  }
  for (const Trained& each : all) EXPECT_TRUE(each == all[0]);
}

TEST_P(SyncNormTest, FrozenPartsChangeNothingElse) {
  const NetSpec net = many_norms();
  const auto make = [&] { return replicas_of(net, {2, 2, 2}, GetParam()); };
  expect_frozen_parts_change_nothing_else(net, make, is_frozen_part);
  // No norm passes a gradient on.
  expect_frozen_parts_change_nothing_else(
      net, make, [](const std::string& name) { return !name.starts_with("d."); });
}

// The same running statistics and weights give the same logits as without synchronisation.
TEST_P(SyncNormTest, EvaluationMeetsNobody) {
  const NetSpec net = many_norms();
  const SyncShape shape{2, 1, 4};
  MeetingReplicas together = replicas_of(net, shape, GetParam(), true, {1});
  MeetingReplicas apart = replicas_of(net, shape, GetParam(), false, {1});
  const TestBatch batch = make_batch(net, shape.rows, 3);
  std::vector<float> a(4 * 5), b(4 * 5);
  together[1].forward(placed(together[1], batch), {}, false, a);  // alone
  apart[1].forward(placed(apart[1], batch), {}, false, b);
  const double near = fp32() ? tested_engine().same_logits / 10 : tested_engine().same_bf16_logits;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], near);
}

TEST_P(SyncNormTest, AFailureInOneReplicaEndsThePassOfTheOthers) {
  const NetSpec net = many_norms();
  MeetingReplicas replicas = replicas_of(net, {2, 2, 2}, GetParam());
  std::string message;
  std::thread waiting([&] {
    try {
      const TestBatch batch = make_batch(net, 4, 1);
      replicas[0].forward_backward(placed(replicas[0], batch));
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  });
  replicas.abort("replica 1 has no batch");
  waiting.join();
  EXPECT_EQ(message, "replica 1 has no batch");
}

INSTANTIATE_TEST_SUITE_P(Each, SyncNormTest, ::testing::ValuesIn(tested_engine().precisions),
                         [](const auto& test) {
                           return test.param == Precision::bf16 ? "bf16" : "fp32";
                         });

}  // namespace
}  // namespace stoker
