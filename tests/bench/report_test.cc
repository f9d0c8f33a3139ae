#include "bench/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

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

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Plot, CategoriesAreBarsWithWhiskers) {
  Plot plot{"p", "links", "device", "GB/s", {}, {}};
  add_bar(plot, "cpu:0", "pinned", {0, 10, 9, 11});
  add_bar(plot, "cpu:0", "pageable", {0, 5, 5, 5});
  add_bar(plot, "cpu:1", "pinned", {0, 8, 7, 9});
  ASSERT_EQ(plot.categories, (std::vector<std::string>{"cpu:0", "cpu:1"}));
  ASSERT_EQ(plot.series.size(), 2u);
  EXPECT_EQ(plot.series[0].points[1].x, 1);
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count_of(svg, "<path"), 0);  // no line joins the bars
  EXPECT_EQ(count_of(svg, "<circle"), 0);
  EXPECT_EQ(count_of(svg, "<rect"), 1 + 3);  // the background, a bar each
  // Two intervals: a line with two ends each, over a halo of the same.
  EXPECT_EQ(count_of(svg, "class=\"whisker\""), 2 * 3);
  EXPECT_EQ(count_of(svg, "class=\"halo\""), 2 * 3);
  EXPECT_EQ(count_of(svg, ".whisker { stroke: #"), 2);  // light and dark
  EXPECT_THAT(svg, HasSubstr(">cpu:1</text>"));
}

// The bars of a category end where the next category's begin, and no bar leaves the frame.
TEST(Plot, BarsHaveTheHeightOfTheirValuesAndDoNotOverlap) {
  Plot plot{"p", "t", "x", "y", {}, {}};
  for (const char* category : {"a", "b", "c"}) {
    add_bar(plot, category, "one", {0, 20, 20, 20});
    add_bar(plot, category, "two", {0, 10, 10, 10});
  }
  struct Bar {
    double x, y, width, height;
  };
  std::vector<Bar> bars;
  const std::string svg = to_svg(plot);
  for (size_t at = svg.find("<rect x="); at != std::string::npos;
       at = svg.find("<rect x=", at + 1)) {
    Bar bar{};
    ASSERT_EQ(
        std::sscanf(svg.c_str() + at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"",
                    &bar.x, &bar.y, &bar.width, &bar.height),
        4);
    bars.push_back(bar);
  }
  ASSERT_EQ(bars.size(), 6u);
  EXPECT_NEAR(bars[0].height, 2 * bars[3].height, 0.2);  // "one" is drawn first
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.x < b.x; });
  EXPECT_GT(bars.front().x, 64);
  EXPECT_LT(bars.back().x + bars.back().width, 720);
  for (size_t i = 1; i < bars.size(); ++i) EXPECT_GE(bars[i].x, bars[i - 1].x + bars[i - 1].width);
}

// Names that do not fit beside each other are slanted, below a picture that is higher for them.
TEST(Plot, LongNamesOfCategoriesGetRoom) {
  Plot plot{"p", "t", "x", "y", {}, {}};
  add_bar(plot, "short", "one", {0, 1, 1, 1});
  EXPECT_EQ(count_of(to_svg(plot), "rotate("), 0);
  EXPECT_THAT(to_svg(plot), HasSubstr("viewBox=\"0 0 720 400\""));
  for (int i = 0; i < 60; ++i) {
    add_bar(plot, "cuda:" + std::to_string(i) + " to cuda:9", "one", {0, 1, 1, 1});
  }
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count_of(svg, "rotate("), 61);
  int width = 0, height = 0;
  ASSERT_EQ(
      std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"0 0 %d %d\"", &width, &height), 2);
  EXPECT_GE(width, 61 * 20);
  EXPECT_GT(height, 400);
}

}  // namespace
}  // namespace stoker
