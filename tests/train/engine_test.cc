#include "train/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "tests/train/engine_fixture.h"
#include "tests/train/optimizer_fixture.h"
#include "tests/train/plan_fixture.h"
#include "tests/train/tested_engine.h"
#include "train/model/models.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Trained train_engine(const NetSpec& net, const EngineOptions& options, int steps) {
  const std::unique_ptr<Engine> engine = started_engine(net, options);
  for (int step = 0; step < steps; ++step) {
    train_step(*engine, make_batch(net, options.rows, 10 + step));
  }
  return state_of(*engine);
}

TEST(EngineTest, WorkersLeaveNoTraceInTheBits) {
  for (const char* model : {"airnet-narrow", "resnet20"}) {
    const NetSpec net = make_net(model, {32, 32}, 10);
    for (const Precision precision : tested_engine().precisions) {
      const Trained one = train_engine(net, engine_options(24, 4, 1, precision), 3);
      EXPECT_TRUE(one == train_engine(net, engine_options(24, 4, 2, precision), 3)) << model;
      EXPECT_TRUE(one == train_engine(net, engine_options(24, 4, 3, precision), 3)) << model;
    }
  }
}

// Tensors that are longer than a chunk, and more workers than one.
TEST(EngineTest, OptimizersBitsDoNotDependOnTheWorkers) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  for (const OptimizerKind kind : kOptimizerKinds) {
    const OptimizerSpec optimizer = clipping(kind);
    const auto run = [&](int workers) {
      const auto engine = started_engine(net, engine_options_for(optimizer, 6, 2, workers));
      train_with(*engine, optimizer, 6, run_pass);
      return state_of(*engine);
    };
    EXPECT_TRUE(run(1) == run(3)) << to_string(kind);
  }
}

// Two engines with half of the micro-batches each, whose gradient buffers are summed in rank order,
// give the bits of one engine.
TEST(EngineTest, ReplicasWithTheSameMicroBatchesLeaveTheSameBits) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  EngineOptions half = engine_options(8, 4);
  half.nominal_rows = 16;
  const auto whole = started_engine(net, engine_options(16, 4));
  std::unique_ptr<Engine> replicas[2] = {started_engine(net, half), started_engine(net, half)};
  const int64_t image = 32 * 32 * 3;
  for (int step = 0; step < 3; ++step) {
    const TestBatch batch = make_batch(net, 16, 10 + step);
    train_step(*whole, batch);
    std::vector<const float*> parts;
    for (int rank = 0; rank < 2; ++rank) {
      replicas[rank]->forward_backward({batch.images.data() + rank * 8 * image,
                                        batch.labels.data() + rank * 8,
                                        batch.weights.data() + rank * 8});
      for (const float* part : replicas[rank]->gradient_buffers()) parts.push_back(part);
    }
    for (int64_t i = 0; i < whole->gradient_buffer_floats(); ++i) {
      float sum = 0;
      for (const float* part : parts) sum += part[i];
      for (auto& replica : replicas) replica->reduced_gradients()[i] = sum;
    }
    for (auto& replica : replicas) apply(*replica, {});
  }
  EXPECT_TRUE(state_of(*whole) == state_of(*replicas[0]));
  EXPECT_TRUE(state_of(*whole) == state_of(*replicas[1]));
}

// An engine that is alone adds up its micro-batches in one buffer, while they run: the bits are
// those of a sum over a buffer for each, also if the batch comes in parts and if tensors are
// frozen.
TEST(EngineTest, AnEngineThatIsAloneSumsInOneBuffer) {
  NetSpec products = make_net("vgg16", {32, 32}, 10, {{16, 16, 16, 16, 24, 64}});
  for (NetNode& node : products.nodes) node.rate = 0;  // dropout
  for (const NetSpec& net :
       {make_net("airnet-narrow", {32, 32}, 10), make_net("resnet20", {32, 32}, 10), products}) {
    for (const Precision precision : tested_engine().precisions) {
      const auto train = [&](EngineOptions options, int parts) {
        options.rows /= parts;
        options.accumulates = parts > 1;
        const auto engine = started_engine(net, options);
        EXPECT_EQ(engine->gradient_buffers().size(),
                  options.alone ? 1u : static_cast<size_t>(options.rows / 2));
        std::vector<TensorUpdate> tensors(parameter_table(net).size(), {.learning_rate = 0.05f});
        for (int step = 0; step < 3; ++step) {
          for (size_t t = 0; t < tensors.size(); ++t) tensors[t].frozen = step == 1 && t % 3 == 0;
          engine->expect_frozen(tensors);
          const TestBatch batch = make_batch(net, 12, 10 + step);
          for (int part = 0; part < parts; ++part) {
            engine->forward_backward(part_of(batch, part, parts));
          }
          reduce(*engine);
          engine->update({.tensors = tensors});
        }
        return state_of(*engine);
      };
      EngineOptions options = engine_options(12, 2, 1, precision);
      const Trained apart = train(options, 1);
      options.alone = true;
      for (const int workers : {1, 2, 3}) {
        options.workers = workers;
        for (const int parts : {1, 2, 6}) {
          EXPECT_TRUE(apart == train(options, parts))
              << net.name << ", " << workers << " workers, " << parts << " parts";
        }
      }
    }
  }
}

TEST(EngineTest, OneBufferTakesLessThanOneForEachMicroBatch) {
  // Most of it are products.
  const NetSpec net = make_net("vgg16", {32, 32}, 10, {{16, 16, 16, 16, 64, 1024}});
  EngineOptions options = engine_options(8, 2, 2);
  const auto apart = make_cpu_engine(net, options);
  options.alone = true;
  const auto alone = make_cpu_engine(net, options);
  const int64_t buffer = apart->gradient_buffer_floats() * static_cast<int64_t>(sizeof(float));
  EXPECT_LT(alone->planned_bytes() + 5 * buffer / 2, apart->planned_bytes());
}

TEST(EngineTest, NoReferenceKernelIsUsed) {
  std::vector<NetSpec> nets = zoo();
  nets.push_back(make_net("resnet20", {32, 32}, 10, {{8, 16, 32}}));
  for (const NetSpec& net : nets) {
    for (const Precision precision : tested_engine().precisions) {
      const auto engine = make_cpu_engine(net, engine_options(4, 4, 1, precision));
      EXPECT_GT(engine->implementations().size(), 4u);
      for (const std::string& name : engine->implementations()) {
        EXPECT_THAT(name, Not(HasSubstr("ref"))) << net.name;
      }
    }
  }
}

int64_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task"), end;
  return std::distance(tasks, end);
}

TEST(EngineTest, NoThreadsButTheWorkers) {
  const NetSpec net = make_net("resnet20", {32, 32}, 10);
  const int64_t before = threads_of_this_process();
  const auto engine = started_engine(net, engine_options(12, 4, 2));
  train_step(*engine, make_batch(net, 12, 1));
  std::vector<float> logits(12 * 10);
  engine->forward(make_batch(net, 12, 1).rows(), {}, false, logits);
  EXPECT_EQ(threads_of_this_process(), before + 2);
}

TEST(EngineTest, LearnsABatchByHeart) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  for (const Precision precision : tested_engine().precisions) {
    const auto engine = started_engine(net, engine_options(16, 8, 2, precision));
    const TestBatch batch = make_batch(net, 16, 5);
    TestSgd sgd;
    sgd.learning_rate = 0.2f;
    for (int step = 0; step < 15; ++step) train_step(*engine, batch, sgd);
    const StepMetrics metrics = engine->step_metrics();
    EXPECT_TRUE(metrics.finite);
    EXPECT_EQ(metrics.weight_sum, 16);
    EXPECT_EQ(metrics.top1, 16);
    EXPECT_LT(metrics.loss_sum / 16, 0.5);
  }
}

// The values that are sent as bf16 are the first gradient_floats() of a buffer: tensors are
// aligned, so the last gradients lie behind as many floats as there are parameters.
TEST(EngineTest, GradientFloatsHoldAllGradientsAndTheirGaps) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  const auto engine = started_engine(net, engine_options(8, 8));
  engine->forward_backward(make_batch(net, 8, 1).rows());
  const int64_t parameters = total_count(parameter_table(net)), end = engine->gradient_floats();
  ASSERT_LT(parameters, end);
  ASSERT_LT(end, engine->gradient_buffer_floats());
  const float* buffer = engine->gradient_buffers()[0];
  const auto is_set = [](float value) { return value != 0; };
  EXPECT_TRUE(std::any_of(buffer + parameters, buffer + end, is_set));
  EXPECT_TRUE(is_set(buffer[end])) << "the moments follow at once";
}

TEST(EngineTest, BadRequestsAreRefusedWithTheirNumbers) {
  const NetSpec net = make_net("airnet-narrow", {32, 32}, 10);
  EXPECT_THROW(make_cpu_engine(net, engine_options(10, 4)), std::invalid_argument);
  EXPECT_THROW(make_cpu_engine(net, engine_options(8, 4, 0)), std::invalid_argument);
  EngineOptions few = engine_options(8, 4);
  few.nominal_rows = 4;
  EXPECT_THROW(make_cpu_engine(net, few), std::invalid_argument);
  const auto engine = make_cpu_engine(net, engine_options(8, 4));
  TestBatch batch = make_batch(net, 8, 1);
  const auto refusal = [&] {
    try {
      engine->forward_backward(batch.rows());
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  batch.labels[3] = 10;
  EXPECT_THAT(refusal(), HasSubstr("row 3 has label 10"));
  batch.labels[3] = 1;
  batch = with_mixed_labels(batch, net, 1);
  EXPECT_EQ(refusal(), "accepted");
  batch.mix_labels[5] = -1;
  EXPECT_THAT(refusal(), HasSubstr("row 5 has second label -1"));
  std::vector<float> small(3);
  EXPECT_THROW(engine->read(StateKind::parameters, small), std::invalid_argument);
  EXPECT_THROW(engine->forward(batch.rows(), {}, false, small), std::invalid_argument);
}

TEST(EngineTest, MemoryIsDescribed) {
  const NetSpec net = make_net("airnet", {32, 32}, 10);
  const auto engine = make_cpu_engine(net, engine_options(64, 32));
  EXPECT_GT(engine->planned_bytes(), 4 * 4 * 1972792);
  EXPECT_THAT(engine->describe_memory(), HasSubstr("2 micro-batches of 32 samples, 1 worker\n"));
}

}  // namespace
}  // namespace stoker
