#include "bench/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(Report, NumbersKeepTheirSignificantDigits) {
  EXPECT_EQ(significant(1234.6), "1235");
  EXPECT_EQ(significant(12.345), "12.3");
  EXPECT_EQ(significant(0.0012345), "0.00123");
  EXPECT_EQ(significant(-0.5), "-0.500");
  EXPECT_EQ(significant(0), "0");
  Summary summary;
  summary.median = 12.34;
  summary.interval = {11.96, 13.04, 0.95};
  EXPECT_EQ(with_interval(summary), "12.3 (12.0–13.0)");
}

TEST(Report, TablesAreAlignedAsReadersCount) {
  const Table table{"Title", {"a", "what"}, {{"1", "2–3"}, {"1000", "x"}}};
  EXPECT_EQ(to_markdown(table),
            "Title\n\n"
            "| a    | what |\n"
            "|------|------|\n"
            "| 1    | 2–3  |\n"
            "| 1000 | x    |\n");
}

TEST(Report, JsonHoldsEveryRepeat) {
  Report report;
  report.bench = "feed";
  report.command = "stoker bench feed";
  report.settings["repeats"] = 3;
  const Summary summary = report.add({"rate", "images/s", Better::higher, {3, 1, 2}});
  EXPECT_DOUBLE_EQ(summary.median, 2);
  const auto json = to_json(report);
  EXPECT_EQ(json["schema"], kReportSchema);
  EXPECT_EQ(json["figures"][0]["values"].get<std::vector<double>>(),
            (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(json["figures"][0]["median"], 2.0);
  EXPECT_EQ(json["figures"][0]["better"], "higher");
  EXPECT_EQ(json["figures"][0]["low"], 1.0);
  EXPECT_TRUE(json["notes"].is_array());
  EXPECT_THAT(to_markdown(report, "a machine"), HasSubstr("a machine"));
}

TEST(Plot, CategoriesAreBarsOfSeries) {
  Report report;
  Plot& plot = report.plots.emplace_back(Plot{"p", "links", "device", "GB/s", {}, {}});
  add_bar(plot, "cpu:0", "pinned", {0, 10, 9, 11});
  add_bar(plot, "cpu:0", "pageable", {0, 5, 5, 5});
  add_bar(plot, "cpu:1", "pinned", {0, 8, 7, 9});
  const auto json = to_json(report)["plots"][0];
  EXPECT_EQ(json["name"], "p");
  EXPECT_EQ(json["categories"], (std::vector<std::string>{"cpu:0", "cpu:1"}));
  ASSERT_EQ(json["series"].size(), 2u);
  EXPECT_EQ(json["series"][0]["label"], "pinned");
  EXPECT_EQ(json["series"][0]["points"].dump(), "[[0.0,10.0,9.0,11.0],[1.0,8.0,7.0,9.0]]");
  EXPECT_EQ(json["series"][1]["points"].dump(), "[[0.0,5.0,5.0,5.0]]");
}

}  // namespace
}  // namespace stoker
