#include "bench/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "staging/error_text.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, const Json*> figures_by_name(const Json& report) {
  std::map<std::string, const Json*> figures;
  for (const Json& figure : report.at("figures")) figures[figure.at("name")] = &figure;
  return figures;
}

void check_reports(const Json& before, const Json& after) {
  check_report(before);
  check_report(after);
  if (before.at("bench") != after.at("bench")) {
    throw std::invalid_argument(fmt::format("reports of different benches: {} and {}",
                                            before.at("bench").dump(), after.at("bench").dump()));
  }
}

std::vector<std::string> other_settings(const Json& before, const Json& after) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : after.at("settings").items()) {
    const Json old = before.at("settings").value(key, Json());
    if (old != value)
      lines.push_back(fmt::format("{}: {}, then {}", key, old.dump(), value.dump()));
  }
  return lines;
}

bool positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

ChangeVerdict verdict_of(const FigureChange& change, const std::string& better,
                         const CompareOptions& options) {
  const bool sure = change.p <= options.alpha;
  if (!sure || std::abs(change.ratio.value - 1) < options.least_change) return ChangeVerdict::same;
  if (better == "neither") return ChangeVerdict::changed;
  return (change.ratio.value > 1) == (better == "higher") ? ChangeVerdict::better
                                                          : ChangeVerdict::worse;
}

}  // namespace

bool Comparison::worse() const {
  return std::any_of(changes.begin(), changes.end(), [](const FigureChange& change) {
    return change.verdict == ChangeVerdict::worse;
  });
}

void check_report(const Json& report) {
  try {
    if (report.at("schema") != kReportSchema) {
      throw std::invalid_argument(fmt::format("a report of schema {}, this program writes {}",
                                              report.at("schema").dump(), kReportSchema));
    }
    report.at("bench").get<std::string>();
    if (!report.at("settings").is_object()) throw std::invalid_argument("settings is no object");
    for (const Json& figure : report.at("figures")) {
      for (const char* text : {"name", "unit", "better"}) figure.at(text).get<std::string>();
      if (figure.at("values").get<std::vector<double>>().empty()) {
        throw std::invalid_argument(figure.at("name").get<std::string>() + " has no values");
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument("this is not a report of a bench: " + error_text(error));
  }
}

Comparison compare_reports(const Json& before, const Json& after, const CompareOptions& options) {
  Comparison result;
  std::vector<double> p;
  std::vector<size_t> tested;  // indices of changes, in the order of p
  std::vector<std::string> better;
  check_reports(before, after);
  result.other_settings = other_settings(before, after);
  const auto old = figures_by_name(before), fresh = figures_by_name(after);
  for (const auto& [name, figure] : old) {
    if (!fresh.contains(name)) result.only_before.push_back(name);
  }
  for (const Json& figure : after.at("figures")) {
    const std::string name = figure.at("name");
    const auto found = old.find(name);
    if (found == old.end()) {
      result.only_after.push_back(name);
      continue;
    }
    const std::vector<double> a = found->second->at("values"), b = figure.at("values");
    FigureChange change;
    change.name = name;
    change.unit = figure.at("unit");
    change.before = median(a);
    change.after = median(b);
    if (positive(a) && positive(b)) {
      change.ratio = ratio_of(a, b);
      p.push_back(mann_whitney(a, b).p);
      tested.push_back(result.changes.size());
      better.push_back(figure.at("better"));
      change.p = least_p(static_cast<int>(a.size()), static_cast<int>(b.size()));
    }
    result.changes.push_back(std::move(change));
  }
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < tested.size(); ++i) {
    FigureChange& change = result.changes[tested[i]];
    // Could so few repeats show a change at all, even if only this figure had changed?
    const bool could = change.p * static_cast<double>(p.size()) <= options.alpha;
    change.p = adjusted[i];
    change.verdict = verdict_of(change, better[i], options);
    if (change.verdict == ChangeVerdict::same && change.p > options.alpha && !could) {
      change.verdict = ChangeVerdict::unknown;
    }
  }
  return result;
}

const char* text_of(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::same:
      return "same";
    case ChangeVerdict::better:
      return "better";
    case ChangeVerdict::worse:
      return "WORSE";
    case ChangeVerdict::changed:
      return "changed";
    case ChangeVerdict::unknown:
      return "cannot tell";
  }
  return "";
}

Table compare_table(const Comparison& comparison) {
  Table table{"", {"figure", "before", "after", "ratio (interval)", "p", "verdict"}, {}};
  for (const FigureChange& change : comparison.changes) {
    table.rows.push_back({change.name, significant(change.before) + " " + change.unit,
                          significant(change.after) + " " + change.unit,
                          fmt::format("{:.3f} ({:.3f}–{:.3f})", change.ratio.value,
                                      change.ratio.interval.low, change.ratio.interval.high),
                          fmt::format("{:.4f}", change.p), text_of(change.verdict)});
  }
  return table;
}

}  // namespace stoker
