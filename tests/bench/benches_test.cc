// Runs every bench on tiny inputs and checks that its report follows the schema of bench/README.md.
// The measured values mean nothing here.
#include <gtest/gtest.h>

#include <set>

#include "bench/suite/convergence_bench.h"
#include "bench/suite/depth_bench.h"
#include "bench/suite/emulate_bench.h"
#include "bench/suite/feed_bench.h"
#include "bench/suite/feed_parts.h"
#include "bench/suite/guard_bench.h"
#include "bench/suite/layout_bench.h"
#include "bench/suite/links_bench.h"
#include "bench/suite/predict_bench.h"
#include "bench/suite/scaling_bench.h"
#include "bench/suite/slice_bench.h"
#include "pipeline/source/annotated_source.h"
#include "pipeline/source/subset_source.h"
#include "pipeline/source/synthetic_source.h"
#include "train/engine/engine.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

void expect_valid(const Report& report, size_t repeats) {
  const Json json = Json::parse(to_json(report).dump());  // no NaN, which would be null
  EXPECT_EQ(json["schema"], kReportSchema);
  EXPECT_EQ(json["bench"], report.bench);
  ASSERT_FALSE(json["figures"].empty());
  std::set<std::string> names;
  for (const Json& figure : json["figures"]) {
    const std::string name = figure["name"];
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_EQ(figure["values"].size(), repeats) << name;
    for (const char* number : {"median", "low", "high", "confidence", "median_deviation"}) {
      EXPECT_TRUE(figure[number].is_number()) << name << ": " << number;
    }
    EXPECT_LE(figure["low"], figure["median"]) << name;
    EXPECT_GE(figure["high"], figure["median"]) << name;
  }
  EXPECT_FALSE(json["results"].empty());
  EXPECT_FALSE(json["tables"].empty());
  for (const Table& table : report.tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.title;
  }
  EXPECT_FALSE(report.plots.empty());
  for (const Plot& plot : report.plots) {
    EXPECT_EQ(to_json(plot).dump().find("null"), std::string::npos)  // what is no number is null
        << plot.name;
  }
}

class Benches : public ::testing::Test {
 protected:
  const std::unique_ptr<Source> source_ = make_synthetic_source(200, {16, 16}, 10, 1);
  const AugmentSpec augment_{"resize", {16, 16}};
};

TEST_F(Benches, Feed) {
  FeedBenchOptions options;
  options.augment = augment_;
  options.workers = {0, 1, 2};
  options.batches = {8, 16};
  options.ring_depths = {2, 3};
  options.repeats = 2;
  options.cpu_ms = 1;
  const Report report = bench_feed(*source_, options);
  expect_valid(report, 2);
  EXPECT_EQ(report.figures.size(), 3 * 5 + 2 * 2u);
  EXPECT_EQ(report.results["workers"], 2);
  EXPECT_DOUBLE_EQ(report.results["mean_sample_bytes"], 16 * 16 * 3);
  EXPECT_GT(report.results["cpu_ms_per_image"], 0);
  EXPECT_TRUE(report.results["energy"].contains("cpu_joules_per_1000_images"));
  EXPECT_THAT(report.notes.back(), ::testing::StartsWith("Energy, 2 workers, batch 8, ring 2: "));
  options.workers = {};
  EXPECT_THROW(bench_feed(*source_, options), std::invalid_argument);
}

TEST_F(Benches, EmulatedAcceleratorsThatAreFed) {
  EmulateOptions options;
  options.accelerator = accelerator_of_rate(400, 8);  // a step of 20 ms
  options.counts = {1, 2};
  options.augment = augment_;
  options.steps = 4;
  options.repeats = 2;
  const Report report = bench_emulate(*source_, options);
  // On a busy machine even this may be too much for two; then it ends after one.
  ASSERT_FALSE(report.figures.empty());
  expect_valid(report, 2);
  for (const Figure& figure : report.figures) {
    if (figure.unit != "%") continue;
    const bool is_loss = !figure.name.starts_with("AU");
    for (const double percent : figure.values) {
      EXPECT_GT(percent, is_loss ? -1e-9 : 0);
      EXPECT_LE(percent, 100 + 1e-6);  // 100 is a sum of rounded seconds
    }
  }
}

TEST_F(Benches, AcceleratorsThatAreTooFastAreNotFed) {
  EmulateOptions options;
  options.accelerator = accelerator_of_rate(1e9, 16);
  options.counts = {1, 2, 3};
  options.augment = augment_;
  options.steps = 3;
  options.repeats = 1;
  const Report report = bench_emulate(*source_, options);
  EXPECT_EQ(report.results["fed_at_90"], 0);
  EXPECT_EQ(report.results["measured_to"], 1);  // so two are not measured
}

TEST_F(Benches, AFeedThatFailsEndsAnEmulationWithItsError) {
  class Broken final : public Source {
   public:
    explicit Broken(const Source& good) : good_(good) {}
    const SourceInfo& info() const override { return good_.info(); }
    int label(SampleId id) const override { return good_.label(id); }
    std::string name(SampleId id) const override { return good_.name(id); }
    ReadStatus read(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
      return {false, "broken"};
    }

   private:
    const Source& good_;
  };
  const Broken broken(*source_);
  EmulateOptions options;
  options.accelerator = accelerator_of_rate(1000, 8);
  options.counts = {2};
  options.augment = augment_;
  options.steps = 3;
  EXPECT_THROW(bench_emulate(broken, options), std::runtime_error);
}

TEST_F(Benches, MemoryHoldsWhatTheFilesHold) {
  const MemorySource memory(*source_);
  EXPECT_EQ(memory.size(), 100 * source_->size());
  std::vector<uint8_t> a, b;
  std::span<const uint8_t> ours, theirs;
  ASSERT_TRUE(memory.read(203, a, ours).ok);
  ASSERT_TRUE(source_->read(3, b, theirs).ok);
  EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()));
  EXPECT_EQ(memory.label(203), source_->label(3));
}

TEST_F(Benches, MemoryHoldsTheirAnnotations) {
  AnnotationSetBuilder builder({.objects = true});
  SampleAnnotations annotations;
  for (int64_t id = 0; id < source_->size(); ++id) {
    Annotations picture;
    picture.objects = {{.box = {1, 2, 3, 4}, .id = id}};
    builder.add(std::to_string(id), picture);
    annotations.pictures.push_back(id);
  }
  annotations.set = builder.finish();
  const AnnotatedSource annotated(*source_, annotations);
  const MemorySource memory(annotated);
  EXPECT_TRUE(memory.annotations().objects);
  Annotations found;
  ASSERT_TRUE(memory.read_annotations(203, {}, found).ok);
  ASSERT_EQ(found.objects.size(), 1U);
  EXPECT_EQ(found.objects[0].id, 203 % (memory.size() / 100));
}

TEST_F(Benches, Depth) {
  DepthOptions options;
  options.rows = 4;
  options.size = 8;
  options.steps = 3;
  options.repeats = 2;
  options.step_ms = 1;
  const Report report = bench_depth(options);
  expect_valid(report, 2);
  ASSERT_EQ(report.results["depths"].size(), 4u);
  EXPECT_EQ(report.results["depths"][2]["slots"], 2);
  // A host device has nothing to copy without slots: the table must not read as if copies were
  // free.
  EXPECT_EQ(report.tables[0].rows[0][0], "0 (in place)");
  EXPECT_EQ(report.tables[0].rows[1][0], "1");
  EXPECT_NE(report.notes.back().find("nothing is copied"), std::string::npos);
  options.steps = 0;
  EXPECT_THROW(bench_depth(options), std::invalid_argument);
}

// A device with throttled links copies with any number of slots, as a GPU does.
TEST_F(Benches, DepthOnThrottledLinks) {
  DepthOptions options;
  options.machine = find_machine("2xthrottled");
  options.rows = 4;
  options.size = 8;
  options.steps = 3;
  options.repeats = 2;
  options.step_ms = 1;
  const Report report = bench_depth(options);
  expect_valid(report, 2);
  EXPECT_EQ(report.results["host_copies_are_host_work"], false);
  EXPECT_EQ(report.tables[0].rows[0][0], "0");
  EXPECT_EQ(report.results["step"], "a sleep");
}

TEST_F(Benches, Layout) {
  const Report report = bench_layout({.device = "cpu:0", .rows = 2, .size = 8, .repeats = 3});
  expect_valid(report, 3);
  EXPECT_EQ(report.figures.size(), 18u);
  EXPECT_TRUE(report.results.contains("bf16 NHWC, 3 channels"));
}

TEST_F(Benches, GuardRefusesOtherPictures) {
  EXPECT_THROW(bench_guard(*source_, {.repeats = 1, .passes = 1}), std::invalid_argument);
}

TEST_F(Benches, Slice) {
  SliceOptions options;
  options.replicas = 2;
  options.rows = 4;
  options.size = 8;
  options.repeats = 3;
  const Report one = bench_slice(options);
  expect_valid(one, 3);
  const int whole = 4 * 8 * 8 * 3;
  ASSERT_EQ(one.results["places"].size(), 2u);  // one device: each device is the first
  EXPECT_EQ(one.results["places"][0]["devices"][0]["from_host_bytes"], whole);
  EXPECT_EQ(one.results["places"][1]["devices"][0]["inside_bytes"], whole);

  options.devices = {"cpu:0", "cpu:1"};
  options.replicas = 1;
  const Report two = bench_slice(options);
  expect_valid(two, 3);
  const Json& places = two.results["places"];
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0]["devices"][1]["from_host_bytes"], whole / 2);
  EXPECT_EQ(places[1]["devices"][1]["from_host_bytes"], whole);
  EXPECT_EQ(places[2]["devices"][0]["from_host_bytes"], whole);
  EXPECT_EQ(places[2]["devices"][1]["from_host_bytes"], 0);
  EXPECT_EQ(places[2]["devices"][1]["from_device_bytes"], whole / 2);
  // A device holds its half, and the whole batch if it is cut there.
  EXPECT_EQ(places[0]["largest_batch"], (int64_t{1} << 30) * 2 / (8 * 8 * 3));
  EXPECT_EQ(places[1]["largest_batch"], (int64_t{1} << 30) * 2 / 3 / (8 * 8 * 3));

  options.devices = {"gpu:0"};
  EXPECT_THROW(bench_slice(options), std::invalid_argument);
  options.devices = {"cpu:0"};
  options.replicas = 5;  // of 4 samples
  EXPECT_THROW(bench_slice(options), std::invalid_argument);
}

// The bytes over each link are counted there, and are those of the tables of a plan.
TEST_F(Benches, SliceOnThrottledLinks) {
  SliceOptions options;
  options.machine = find_machine("2xthrottled");
  options.replicas = 1;
  options.rows = 4;
  options.size = 8;
  options.repeats = 2;
  const Report report = bench_slice(options);
  expect_valid(report, 2);
  const double whole = 4 * 8 * 8 * 3;
  const auto link = [&](int place, int index) {
    const Json& load = report.results["places"][place]["links"][index];
    return std::pair(load["down_bytes"].get<double>(), load["up_bytes"].get<double>());
  };
  using Bytes = std::pair<double, double>;
  EXPECT_EQ(link(0, 0), Bytes(whole, 0));  // on the host: both halves over the switch
  EXPECT_EQ(link(0, 2), Bytes(whole / 2, 0));
  EXPECT_EQ(link(1, 0), Bytes(2 * whole, 0));  // on each device
  EXPECT_EQ(link(2, 0), Bytes(whole, 0));      // on the first, whose half goes below the switch
  EXPECT_EQ(link(2, 1), Bytes(whole, whole / 2));
  EXPECT_EQ(link(2, 2), Bytes(whole / 2, 0));
  for (const Json& place : report.results["places"]) EXPECT_GT(place["predicted_ms"], 0);
}

TEST_F(Benches, Links) {
  LinksOptions options;
  options.devices = {"cpu:0", "cpu:1"};
  options.bytes = 1 << 16;
  options.repeats = 3;
  options.models = {"resnet20"};
  const Report report = bench_links(options);
  expect_valid(report, 3);
  EXPECT_EQ(report.results["devices"].size(), 2 * 5 + 2u);
  // A payload over a bandwidth is a time.
  const Json& cost = report.results["costs"][0];
  const Json& link = report.results["devices"][0];
  EXPECT_NEAR(cost["ms"].get<double>(),
              1e-6 * cost["bytes"].get<double>() / link["gb_per_second"].get<double>(), 1e-9);
}

TEST_F(Benches, Predict) {
  PredictOptions options;
  options.machine = find_machine("2xthrottled");
  options.counts = {1, 2};
  options.rows = 4;
  options.size = 8;
  options.step_ms = 1;
  options.grad_mib = 0.01;
  options.bucket_mib = 0.002;
  options.steps = 2;
  options.repeats = 2;
  const Report report = bench_predict(options);
  expect_valid(report, 2);
  // One device alone, two without a sum and with either; the other three numbers of slots; whole
  // batches.
  const Json& settings = report.results["settings"];
  ASSERT_EQ(settings.size(), 4 + 3 + 1u);
  for (const Json& each : settings) {
    const double rate = each["images_per_second"], predicted = each["predicted_images_per_second"];
    EXPECT_NEAR(each["difference"].get<double>(), (rate - predicted) / predicted, 1e-9);
  }
  options.counts = {3};
  EXPECT_THROW(bench_predict(options), std::invalid_argument);
}

TEST_F(Benches, Scaling) {
  if (!cpu_engine_available()) GTEST_SKIP() << "this build has no CPU engine";
  ScalingOptions options;
  options.counts = {1, 2};
  options.reductions = {ReduceKind::automatic, ReduceKind::independent};
  options.wires = {GradWire::fp32, GradWire::bf16};  // replicas that exchange nothing have one line
  options.batch = 4;
  options.steps = 2;
  options.repeats = 1;
  const Report report = bench_scaling(options);
  expect_valid(report, 1);
  ASSERT_EQ(report.results["weak"].size(), 6u);
  ASSERT_EQ(report.results["strong"].size(), 6u);
  for (const char* mode : {"weak", "strong"}) {
    const Json& rows = report.results[mode];
    EXPECT_DOUBLE_EQ(rows[0]["speed_up"], 1);
    EXPECT_DOUBLE_EQ(
        rows[1]["speed_up"].get<double>(),
        rows[1]["images_per_second"].get<double>() / rows[0]["images_per_second"].get<double>());
    EXPECT_DOUBLE_EQ(rows[1]["efficiency"].get<double>(), rows[1]["speed_up"].get<double>() / 2);
    EXPECT_GT(rows[1]["gradient_bytes_sent"], 0);
    EXPECT_EQ(rows[5]["reduction"], "independent");
    EXPECT_EQ(rows[5]["gradient_bytes_sent"], 0);
    EXPECT_EQ(rows[5]["weight_bytes_received"], 0);
  }
  // Nothing but devices and strategies varies, so there is nothing to draw against.
  EXPECT_EQ(report.plots.size(), 2u);
  options.counts = {3};
  EXPECT_THROW(bench_scaling(options), std::invalid_argument);  // 4 samples on 3 devices
}

// The same batch gives the same bits on two devices; twice the batch gives others.
TEST_F(Benches, Convergence) {
  if (!cpu_engine_available()) GTEST_SKIP() << "this build has no CPU engine";
  const SubsetSource train(*source_, std::vector<SampleId>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const SubsetSource test(*source_, std::vector<SampleId>{20, 21, 22, 23});
  ConvergenceOptions options;
  options.train = &train;
  options.test = &test;
  options.batch = 4;
  options.epochs = 1;
  options.seeds = 2;
  const Report report = bench_convergence(options);
  expect_valid(report, 2);
  const Json& runs = report.results["runs"];
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[1]["devices"], 2);
  EXPECT_EQ(runs[1]["batch"], 4);
  EXPECT_EQ(runs[1]["same_weights"], 2);
  // The test samples' losses are added up in the order of the batches that devices get.
  EXPECT_DOUBLE_EQ(runs[1]["loss"].get<double>(), runs[0]["loss"].get<double>());
  for (const int doubled : {2, 3}) {
    EXPECT_EQ(runs[doubled]["batch"], 8);
    EXPECT_EQ(runs[doubled]["same_weights"], 0);
  }
  EXPECT_EQ(runs[2]["warmup"], "none");
  EXPECT_EQ(runs[3]["warmup"], "1 epoch");
  options.counts = {2};
  EXPECT_THROW(bench_convergence(options), std::invalid_argument);
}

TEST_F(Benches, ScalingAgainstSizesFeedsAndDataSets) {
  if (!cpu_engine_available()) GTEST_SKIP() << "this build has no CPU engine";
  ScalingOptions options;
  options.counts = {1, 2};
  options.sizes = {16, 24};
  options.samples = {0, 10};
  options.feeds = {FeedKind::synthetic, FeedKind::resident, FeedKind::real};
  options.strong = false;
  options.batch = 2;
  options.steps = 3;
  options.repeats = 1;
  const Report report = bench_scaling(options);
  expect_valid(report, 1);
  const Json& rows = report.results["weak"];
  ASSERT_EQ(rows.size(), 2 * 2 * 3 * 2u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["devices"], 1 + i % 2);
    EXPECT_EQ(rows[i]["feed"],
              std::vector<std::string>({"synthetic", "resident", "real"})[i / 2 % 3]);
    EXPECT_EQ(rows[i]["samples"], i / 6 % 2 == 0 ? 0 : 10);
    EXPECT_EQ(rows[i]["size"][0], i < 12 ? 16 : 24);
    EXPECT_GE(rows[i]["warmup_steps"], 0);
    // A run of one epoch of 3 steps and two more of 3, or of 3 + 3 steps.
    EXPECT_LE(rows[i]["warmup_steps"], rows[i]["samples"] == 0 ? 6 : 10);
  }
  std::set<std::string> plots;
  for (const Plot& plot : report.plots) plots.insert(plot.name);
  EXPECT_EQ(plots, (std::set<std::string>{"scaling_weak", "scaling_image_size", "scaling_data_set",
                                          "scaling_feed"}));
  options.data = source_.get();
  options.sizes = {16};
  options.samples = {source_->size() + 1};
  EXPECT_THROW(bench_scaling(options), std::invalid_argument);
  options.samples = {0, 20};
  options.feeds = {FeedKind::real};
  expect_valid(bench_scaling(options), 1);
}

}  // namespace
}  // namespace stoker
