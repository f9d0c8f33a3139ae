#include "bench/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace stoker
