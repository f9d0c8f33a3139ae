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
  EXPECT_THAT(to_markdown(report, "a machine", {"x.svg"}), HasSubstr("a machine"));
  EXPECT_THAT(to_markdown(report, "a machine", {"x.svg"}), HasSubstr("![x.svg](x.svg)"));
}

TEST(Plot, MarksAreRoundAndReachTheLargestValue) {
  EXPECT_EQ(axis_marks(100), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axis_marks(0), (std::vector<double>{0, 1}));
  for (const double most : {0.013, 1.0, 1.01, 2.6, 5.1, 9.99, 1786.0}) {
    const std::vector<double> marks = axis_marks(most);
    EXPECT_GE(marks.back(), most * (1 - 1e-9)) << most;
    EXPECT_LT(marks[marks.size() - 2], most) << most;
    EXPECT_GE(marks.size(), 3u) << most;
    EXPECT_LE(marks.size(), 7u) << most;
  }
}

TEST(Plot, IsOneSvgForLightAndDark) {
  Plot plot{"p", "a < b & c", "x", "y", {}, {}};
  plot.series = {{"measured", {{1, 10, 9, 11}, {2, 19, 19, 19}}},
                 {"ideal", {{1, 10}, {2, 20}}, true}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // A single point has no width of its own.
  plot.series = {{"one", {{4, 3, 3, 3}}}};
  EXPECT_EQ(to_svg(plot).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace stoker
