// The tables and plots of scaling, from rows that nobody measured.
#include "bench/suite/scaling_table.h"

#include <gtest/gtest.h>

#include <map>

namespace stoker {
namespace {

ScalingRow row(int devices, double rate) {
  ScalingRow row;
  row.model = "resnet20";
  row.parameters = 270'000;
  row.size = {32, 32};
  row.devices = devices;
  row.global_batch = 64 * devices;
  row.rate = {rate};
  row.cpu_ms = {1};
  row.warmup_steps = {2};
  row.warmup_seconds = {0.5};
  return row;
}

std::map<std::string, Plot> plots_of(const Report& report) {
  std::map<std::string, Plot> plots;
  for (const Plot& plot : report.plots) plots[plot.name] = plot;
  return plots;
}

TEST(ScalingTable, EfficiencyIsOverTheFirstRowOfALine) {
  Report report;
  fill_scaling_report({row(1, 100), row(2, 150), row(4, 400)}, report);
  const auto& rows = report.results["weak"];
  EXPECT_DOUBLE_EQ(rows[1]["speed_up"], 1.5);
  EXPECT_DOUBLE_EQ(rows[1]["efficiency"], 0.75);
  EXPECT_DOUBLE_EQ(rows[2]["efficiency"], 1);
  EXPECT_DOUBLE_EQ(rows[2]["warmup_seconds"], 0.5);
  // Nothing but devices varies: one plot, whose line has the strategy's name.
  ASSERT_EQ(report.plots.size(), 1u);
  EXPECT_EQ(report.plots[0].series[0].label, "all-reduce");
  EXPECT_TRUE(report.plots[0].series[1].ideal);
}

TEST(ScalingTable, DrawsAgainstWhatVariesWithTheMostDevices) {
  std::vector<ScalingRow> rows;
  for (const int size : {16, 64}) {
    for (const FeedKind feed : {FeedKind::resident, FeedKind::real}) {
      for (const int devices : {1, 2}) {
        rows.push_back(row(devices, feed == FeedKind::real ? 90 * devices : 100 + size));
        rows.back().size = {size, size};
        rows.back().feed = feed;
      }
    }
  }
  Report report;
  fill_scaling_report(rows, report);
  const auto plots = plots_of(report);
  ASSERT_EQ(plots.size(), 3u);  // speed-up; against size and feed
  EXPECT_EQ(plots.at("scaling_weak").series[0].label, "16 px, resident");
  const Plot& sizes = plots.at("scaling_image_size");
  EXPECT_EQ(sizes.categories, (std::vector<std::string>{"16", "64"}));
  ASSERT_EQ(sizes.series.size(), 2u);
  EXPECT_EQ(sizes.series[0].label, "weak, resident");
  EXPECT_DOUBLE_EQ(sizes.series[0].points[0].y, 50);  // the same rate on two devices
  EXPECT_DOUBLE_EQ(sizes.series[1].points[1].y, 100);
  const Plot& feeds = plots.at("scaling_feed");
  EXPECT_EQ(feeds.y_label, "images/s");
  EXPECT_DOUBLE_EQ(feeds.series[1].points[0].y, 164);  // 64 px, resident
  EXPECT_DOUBLE_EQ(feeds.series[1].points[1].y, 180);
}

TEST(ScalingTable, ModelsStandFromFewParametersToMany) {
  std::vector<ScalingRow> rows = {row(1, 10), row(1, 20), row(1, 30)};
  rows[0].model = "large";
  rows[0].parameters = 25'000'000;
  rows[1].model = "small";
  rows[2].model = "medium";
  rows[2].parameters = 11'000'000;
  Report report;
  fill_scaling_report(rows, report);
  EXPECT_EQ(plots_of(report).at("scaling_model_size").categories,
            (std::vector<std::string>{"small (0.27 M)", "medium (11.00 M)", "large (25.00 M)"}));
}

}  // namespace
}  // namespace stoker
