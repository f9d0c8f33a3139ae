#include "bench/suite/link_plan.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "train/device/buckets.h"
#include "train/device/program.h"
#include "train/model/models.h"
#include "train/model/recipe.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kPlanMiB = 1 << 20;

// The engine's own buckets, for nets that it runs.
std::vector<int64_t> engine_buckets(const NetSpec& net) {
  EngineOptions options;
  options.rows = options.micro_batch_size = 4;
  options.nominal_rows = 4;
  options.precision = Precision::bf16;
  const GradientLayout layout(net, device_fusion({}));
  const PlanOptions planned = plan_options(options, device_fusion({}), true);
  const ExecutionPlan plan = build_device_program(net, planned, {}, layout, nullptr).plan;
  std::vector<int64_t> floats;
  for (const DeviceBucket& bucket : plan_buckets(plan, layout, 25 * kPlanMiB)) {
    floats.push_back(bucket.range.end - bucket.range.begin);
  }
  return floats;
}

TEST(ModelWork, HasTheBucketsOfTheEngine) {
  for (const char* model : {"resnet18", "resnet50", "resnet110", "airnet"}) {
    const NetSpec net = make_net(model, default_recipe(model).input, 1000);
    const std::vector<BackwardPart> parts = model_parts(net, 25 * kPlanMiB);
    const std::vector<int64_t> buckets = engine_buckets(net);
    ASSERT_EQ(parts.size(), buckets.size()) << model;
    for (size_t i = 0; i < parts.size(); ++i) {
      // The buffer of an engine also has moments of batch norms, and rounds tensors up.
      EXPECT_NEAR(static_cast<double>(parts[i].floats), static_cast<double>(buckets[i]),
                  0.02 * static_cast<double>(buckets[i]) + 1e5)
          << model << " bucket " << i;
    }
  }
}

TEST(ModelWork, PartsHaveAllGradientsAndAllOfThePass) {
  for (const char* model : {"resnet50", "alexnet", "inception_v3", "mlp41m"}) {
    const int classes = model == std::string("mlp41m") ? 2 : 1000;
    const NetSpec net = make_net(model, default_recipe(model).input, classes);
    for (const int64_t bucket : {int64_t{0}, kPlanMiB, 25 * kPlanMiB}) {
      int64_t floats = 0;
      double share = 0;
      const std::vector<BackwardPart> parts = model_parts(net, bucket);
      for (const BackwardPart& part : parts) {
        floats += part.floats;
        share += part.share;
      }
      EXPECT_EQ(floats, total_count(parameter_table(net))) << model;
      EXPECT_NEAR(share, 1, 1e-9) << model;
      EXPECT_EQ(parts.size() == 1, bucket == 0) << model;
    }
  }
  // A residual net has most of its weights at its end and most of its work before it.
  const auto parts = model_parts(make_net("resnet50", {224, 224}, 1000), 25 * kPlanMiB);
  EXPECT_LT(parts.front().share, 0.01);
  EXPECT_GT(parts.back().share, 0.3);
}

TEST(ModelWork, TheLargestBatchFallsWithWhatSlotsTake) {
  const NetSpec net = make_net("resnet50", {224, 224}, 1000);
  constexpr int64_t kMemory = int64_t{8} << 30;
  const double row = 224 * 224 * 3;
  const int64_t two = largest_gpu_batch(net, kMemory, 2 * row);
  const int64_t eight = largest_gpu_batch(net, kMemory, 2 * 8 * row);
  EXPECT_GT(two, 16);
  EXPECT_LT(eight, two);
  EXPECT_GT(eight, two / 2);
  EXPECT_EQ(largest_gpu_batch(net, 1 << 20, row), 0);
  EXPECT_GT(largest_gpu_batch(make_net("inception_v3", {299, 299}, 1000), kMemory, 2 * row), 16);
}

LinkPlanDemand links_demand(int gpus) {
  LinkPlanDemand links_demand;
  for (int count = 1; count <= gpus; ++count) links_demand.counts.push_back(count);
  links_demand.rate = 100;
  links_demand.batch = 56;
  links_demand.row_bytes = 224 * 224 * 3;
  links_demand.parts = even_parts(25'000'000, 25 * kPlanMiB);
  return links_demand;
}

TEST(LinkPlan, PredictsScalingSlotsAndSlices) {
  Report report;
  LinkPlanDemand wanted = links_demand(7);
  wanted.reductions = {ReduceKind::nccl, ReduceKind::server};
  wanted.wires = {GradWire::fp32, GradWire::bf16};
  add_link_plan(find_machine("7gforce"), wanted, report);
  const Json& scaling = report.results["scaling"];
  ASSERT_EQ(scaling.size(), 2 * 4 * 7u);
  for (const Json& row : scaling) {
    if (row["devices"] == 1) {
      EXPECT_NEAR(row["efficiency"].get<double>(), 1, 1e-9);
    }
    EXPECT_LE(row["efficiency"].get<double>(), 1 + 1e-9);
    EXPECT_EQ(row["batch_each"], row["mode"] == "weak" ? 56 : 56 / row["devices"].get<int>());
  }
  // Gradients of 100 MB on links of 0.765 GB/s: a seventh of the batch leaves nothing to hide
  // behind.
  EXPECT_LT(scaling[4 * 7 + 6]["efficiency"], scaling[6]["efficiency"]);
  const Json& input = report.results["input"];
  ASSERT_EQ(input.size(), 7u);
  for (const Json& row : input) {
    EXPECT_GE(row["resident_images_per_second"], row["fed_images_per_second"]);
  }
  EXPECT_EQ(input[6]["fed_images_per_second"], scaling[6]["images_per_second"]);
  ASSERT_EQ(report.results["slots"].size(), 4u);
  EXPECT_GE(report.results["slots"][0]["gap_ms"], report.results["slots"][2]["gap_ms"]);
  const Json& slices = report.results["slices"];
  ASSERT_EQ(slices.size(), 3u);
  for (const Json& slice : slices) EXPECT_FALSE(slice.contains("largest_batch"));  // no net
  const double part = 56.0 * 224 * 224 * 3, ring = 2.0 * 6 / 7 * 1e8;
  EXPECT_NEAR(slices[0]["links"][3]["down_bytes"].get<double>(), part + ring, 1);
  EXPECT_NEAR(slices[1]["links"][3]["down_bytes"].get<double>(), 7 * part + ring, 1);
  for (const Table& table : report.tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.title;
  }
  for (const Plot& plot : report.plots) {
    EXPECT_EQ(to_json(plot).dump().find("null"), std::string::npos)  // what is no number is null
        << plot.name;
  }
}

TEST(LinkPlan, RefusesWhatTheMachineHasNot) {
  Report report;
  EXPECT_THROW(add_link_plan(find_machine("4xm60"), links_demand(5), report),
               std::invalid_argument);
  LinkPlanDemand small = links_demand(4);
  small.batch = 3;
  EXPECT_THROW(add_link_plan(find_machine("4xm60"), small, report), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
