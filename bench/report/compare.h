// Compares two reports of the same bench, figure by figure: did anything get better or worse beyond
// noise?
//
// The test is Mann and Whitney's on the repeats of each figure, two-sided; over all figures
// together the chance of one false alarm is at most `alpha` (Holm). Differences below
// `least_change` do not count, even if they are significant. Sources: statistics.h.
//
// The test cannot detect that a machine was slower during a whole run; that looks like a change.
// Pure functions; any thread. Errors: std::invalid_argument that says what does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/report/statistics.h"

namespace stoker {

enum class ChangeVerdict : uint8_t {
  same,  // no difference beyond noise, or one below least_change
  better,
  worse,
  changed,  // neither higher nor lower is better
  unknown,  // too few repeats to find any difference, or values of 0 and below
};

struct FigureChange {
  std::string name, unit;
  double before = 0, after = 0;  // medians
  Ratio ratio;                   // after / before
  double p = 1;                  // adjusted by Holm's method
  ChangeVerdict verdict = ChangeVerdict::unknown;
};

struct Comparison {
  std::vector<FigureChange> changes;  // figures of both reports, in the second's order
  std::vector<std::string> only_before, only_after;
  std::vector<std::string> other_settings;  // "repeats: 7, then 5"
  bool worse() const;
};

struct CompareOptions {
  double alpha = 0.05;
  double least_change = 0.02;  // of the ratio
};

// Throws if this is no JSON report (report.h) of this program's schema.
void check_report(const nlohmann::ordered_json& report);

// Compares two JSON reports.
Comparison compare_reports(const nlohmann::ordered_json& before,
                           const nlohmann::ordered_json& after, const CompareOptions& options);

Table compare_table(const Comparison& comparison);
const char* text_of(ChangeVerdict verdict);

}  // namespace stoker
