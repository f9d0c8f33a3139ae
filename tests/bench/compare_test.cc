#include "bench/report/compare.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFigures = 10, kRepeats = 7;

// Returns a report of ten figures with noise of 5 % of the value; a tenth of the values is ten
// times as far off, as on a shared machine.
Json noisy_report(std::mt19937& noise, double rate_factor = 1) {
  std::normal_distribution<double> small(0, 0.05);
  std::uniform_real_distribution<double> share(0, 1);
  Report report;
  report.bench = "feed";
  report.settings["repeats"] = kRepeats;
  for (int i = 0; i < kFigures; ++i) {
    std::vector<double> values;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double off = small(noise) * (share(noise) < 0.1 ? 10 : 1);
      values.push_back(100 * (i == 3 ? rate_factor : 1) * std::exp(off));
    }
    report.add({"rate " + std::to_string(i), "images/s", Better::higher, values});
  }
  return to_json(report);
}

TEST(Compare, FalseAlarmsOverAllFiguresAreAsRareAsAskedFor) {
  std::mt19937 noise(20261122);
  int alarms = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    const Comparison comparison =
        compare_reports(noisy_report(noise), noisy_report(noise), {.alpha = 0.05});
    for (const FigureChange& change : comparison.changes) {
      if (change.verdict == ChangeVerdict::worse || change.verdict == ChangeVerdict::better) {
        ++alarms;
        break;
      }
    }
  }
  // At most 20 are expected; the limit is four standard deviations of the binomial above that.
  EXPECT_LE(alarms, 37);
}

TEST(Compare, FindsARealChangeAndWhichWayItGoes) {
  std::mt19937 noise(7);
  int slower_found = 0, faster_found = 0;
  constexpr int kRuns = 50;
  for (int run = 0; run < kRuns; ++run) {
    const Comparison slower = compare_reports(noisy_report(noise), noisy_report(noise, 0.6), {});
    slower_found += slower.changes[3].verdict == ChangeVerdict::worse && slower.worse();
    EXPECT_NE(slower.changes[3].verdict, ChangeVerdict::better);
    const Comparison faster = compare_reports(noisy_report(noise), noisy_report(noise, 1.6), {});
    faster_found += faster.changes[3].verdict == ChangeVerdict::better;
    EXPECT_NE(faster.changes[3].verdict, ChangeVerdict::worse);
    EXPECT_NEAR(faster.changes[3].ratio.value, 1.6, 0.6);
  }
  EXPECT_GE(slower_found, kRuns * 7 / 10);
  EXPECT_GE(faster_found, kRuns * 7 / 10);
}

Json report_of(const std::vector<double>& values, Better better = Better::lower,
               const std::string& name = "CPU per image") {
  Report report;
  report.bench = "feed";
  report.add({name, "ms", better, values});
  return to_json(report);
}

const std::vector<double> kBefore = {1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06};

std::vector<double> times(double factor) {
  std::vector<double> values = kBefore;
  for (double& value : values) value *= factor;
  return values;
}

ChangeVerdict verdict(const std::vector<double>& after, Better better = Better::lower,
                      const CompareOptions& options = {}) {
  return compare_reports(report_of(kBefore, better), report_of(after, better), options)
      .changes[0]
      .verdict;
}

TEST(Compare, KnowsWhatIsBetter) {
  EXPECT_EQ(verdict(kBefore), ChangeVerdict::same);
  EXPECT_EQ(verdict(times(1.2)), ChangeVerdict::worse);
  EXPECT_EQ(verdict(times(0.8)), ChangeVerdict::better);
  EXPECT_EQ(verdict(times(1.2), Better::higher), ChangeVerdict::better);
  EXPECT_EQ(verdict(times(1.2), Better::neither), ChangeVerdict::changed);
  EXPECT_EQ(verdict(times(1.2), Better::lower, {.alpha = 0.05, .least_change = 0.3}),
            ChangeVerdict::same);
}

TEST(Compare, SaysWhenItCannotTell) {
  const auto three = report_of({1, 1.1, 1.2}), others = report_of({2, 2.1, 2.2});
  EXPECT_EQ(compare_reports(three, others, {}).changes[0].verdict, ChangeVerdict::unknown);
  const auto negative = report_of({-1, 0, 1, 2, 3, 4, 5});
  EXPECT_EQ(compare_reports(negative, report_of(kBefore), {}).changes[0].verdict,
            ChangeVerdict::unknown);
}

TEST(Compare, ListsWhatIsNotInBothAndOtherSettings) {
  Json before = report_of(kBefore, Better::lower, "old"), after = report_of(kBefore);
  before["settings"]["batch"] = 64;
  after["settings"]["batch"] = 128;
  const Comparison comparison = compare_reports(before, after, {});
  EXPECT_EQ(comparison.only_before, std::vector<std::string>{"old"});
  EXPECT_EQ(comparison.only_after, std::vector<std::string>{"CPU per image"});
  EXPECT_EQ(comparison.other_settings, std::vector<std::string>{"batch: 64, then 128"});
}

TEST(Compare, RefusesWhatDoesNotFit) {
  Json other = report_of(kBefore);
  other["bench"] = "links";
  EXPECT_THROW(compare_reports(report_of(kBefore), other, {}), std::invalid_argument);
  other = report_of(kBefore);
  other["schema"] = kReportSchema + 1;
  EXPECT_THROW(compare_reports(report_of(kBefore), other, {}), std::invalid_argument);
  EXPECT_THROW(compare_reports(Json::array(), other, {}), std::invalid_argument);
}

}  // namespace
}  // namespace stoker
