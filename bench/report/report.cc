#include "bench/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

const char* better_text(Better better) {
  switch (better) {
    case Better::higher:
      return "higher";
    case Better::lower:
      return "lower";
    case Better::neither:
      return "neither";
  }
  return "";
}

Json to_json(const Figure& figure) {
  const Summary summary = summarise(figure.values);
  return {{"name", figure.name},
          {"unit", figure.unit},
          {"better", better_text(figure.better)},
          {"median", summary.median},
          {"low", summary.interval.low},
          {"high", summary.interval.high},
          {"confidence", summary.interval.confidence},
          {"median_deviation", summary.deviation},
          {"values", figure.values}};
}

Json to_json(const Table& table) {
  return {{"title", table.title}, {"columns", table.columns}, {"rows", table.rows}};
}

// Counts characters: a byte that continues a UTF-8 character does not count.
size_t width_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

}  // namespace

Summary Report::add(Figure figure) {
  figures.push_back(std::move(figure));
  return summarise(figures.back().values);
}

Json to_json(const Report& report) {
  Json json = {{"schema", kReportSchema},     {"bench", report.bench},
               {"command", report.command},   {"machine", report.machine},
               {"settings", report.settings}, {"results", report.results}};
  for (const char* list : {"figures", "tables", "plots", "notes"}) json[list] = Json::array();
  for (const Figure& figure : report.figures) json["figures"].push_back(to_json(figure));
  for (const Table& table : report.tables) json["tables"].push_back(to_json(table));
  for (const Plot& plot : report.plots) json["plots"].push_back(to_json(plot));
  for (const std::string& note : report.notes) json["notes"].push_back(note);
  return json;
}

std::string to_markdown(const Table& table) {
  std::vector<size_t> widths;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    widths.push_back(std::max(size_t{3}, width_of(table.columns[column])));
    for (const auto& row : table.rows) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      text += fmt::format(" {} |", padded(cells[i], widths[i]));
    }
    return text + "\n";
  };
  std::string text = table.title.empty() ? "" : table.title + "\n\n";
  text += line(table.columns) + "|";
  for (const size_t width : widths) text += std::string(width + 2, '-') + "|";
  text += "\n";
  for (const auto& row : table.rows) text += line(row);
  return text;
}

std::string to_markdown(const Report& report, const std::string& machine_line) {
  std::string text =
      fmt::format("# {}\n\n{}\n\n`{}`\n", report.bench, machine_line, report.command);
  for (const Table& table : report.tables) text += fmt::format("\n{}", to_markdown(table));
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) text += fmt::format("- {}\n", note);
  return text;
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return fmt::format("{:.0f}", value);
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::max(0, digits - before));
}

PlotPoint plot_point(const Summary& summary, double x) {
  return {x, summary.median, summary.interval.low, summary.interval.high};
}

std::string with_interval(const Summary& summary, int digits) {
  // All three have the median's decimals, so that they line up.
  const std::string middle = significant(summary.median, digits);
  const size_t point = middle.find('.');
  const size_t decimals = point == std::string::npos ? 0 : middle.size() - point - 1;
  return fmt::format("{} ({:.{}f}–{:.{}f})", middle, summary.interval.low, decimals,
                     summary.interval.high, decimals);
}

void add_bar(Plot& plot, const std::string& category, const std::string& series,
             const PlotPoint& bar) {
  auto at = std::find(plot.categories.begin(), plot.categories.end(), category);
  if (at == plot.categories.end()) at = plot.categories.insert(at, category);
  auto group = std::ranges::find(plot.series, series, &PlotSeries::label);
  if (group == plot.series.end()) group = plot.series.insert(group, {series, {}});
  PlotPoint& point = group->points.emplace_back(bar);
  point.x = static_cast<double>(at - plot.categories.begin());
}

nlohmann::ordered_json to_json(const Plot& plot) {
  nlohmann::ordered_json series = nlohmann::ordered_json::array();
  for (const PlotSeries& one : plot.series) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    for (const PlotPoint& p : one.points) points.push_back({p.x, p.y, p.low, p.high});
    series.push_back({{"label", one.label}, {"ideal", one.ideal}, {"points", points}});
  }
  return {{"name", plot.name},       {"title", plot.title}, {"x_label", plot.x_label},
          {"y_label", plot.y_label}, {"series", series},    {"categories", plot.categories}};
}

}  // namespace stoker
