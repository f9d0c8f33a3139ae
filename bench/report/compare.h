// Did anything get better or worse, beyond noise? Two reports of the same bench, figure by figure.
//
// The test is Mann and Whitney's on the repeats of each figure, two-sided; over all figures
// together the chance of one false alarm is at most `alpha` (Holm). A difference counts from
// `least_change` on: smaller ones do not matter, however sure they are. Sources: rank_test.h.
//
// The test cannot know one thing: a machine that was slower during all of a run looks like a
// change. Pure functions; any thread. Errors: std::invalid_argument that says what does not fit.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/rank_test.h"
#include "bench/report/report.h"

namespace stoker {

enum class ChangeVerdict : uint8_t {
  same,  // no difference beyond noise, or one below least_change
  better,
  worse,
  changed,  // a figure of which neither higher nor lower is better
  unknown,  // too few repeats to find any difference, or values of 0 and below
};

struct FigureChange {
  std::string name, unit;
  double before = 0, after = 0;  // medians
  Ratio ratio;                   // after / before
  double p = 1;                  // adjusted as Holm does
  ChangeVerdict verdict = ChangeVerdict::unknown;
};

struct Comparison {
  std::vector<FigureChange> changes;  // the figures that both have, in the order of the second
  std::vector<std::string> only_before, only_after;
  std::vector<std::string> other_settings;  // "repeats: 7, then 5"
  bool worse() const;
};

struct CompareOptions {
  double alpha = 0.05;
  double least_change = 0.02;  // of the ratio
};

// Compares two JSON reports (report.h).
Comparison compare_reports(const nlohmann::ordered_json& before,
                           const nlohmann::ordered_json& after, const CompareOptions& options);

Table compare_table(const Comparison& comparison);
const char* text_of(ChangeVerdict verdict);

}  // namespace stoker
