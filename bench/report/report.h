// The result of a bench: figures with all their repeats, tables and plots for people, the machine
// and the settings. It is written as JSON (README.md has the schema) and Markdown. Values; any
// thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/statistics.h"

namespace stoker {

enum class Better : uint8_t { higher, lower, neither };

// One measured quantity. Its name is the same in every run of the bench with the same settings:
// compare_reports() finds the figure by its name.
struct Figure {
  std::string name;  // "CPU per image, 2 workers, batch 64, ring 4"
  std::string unit;
  Better better = Better::neither;
  std::vector<double> values;  // one per repeat, in order, without the warm-up; at least one
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as wide as columns
};

// A chart: lines over numbers, or bars over categories, each with its interval. A report's JSON
// holds it, and bench/report/plot draws it. Values; any thread.
struct PlotPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // of y; equal to it where there is no interval
};

struct PlotSeries {
  std::string label;  // one or two words
  std::vector<PlotPoint> points;
  bool ideal = false;  // the perfect result, drawn dashed and grey; only over numbers
};

struct Plot {
  std::string name;  // of the file, before its ending: "feed_workers"
  std::string title;
  std::string x_label, y_label;
  std::vector<PlotSeries> series;
  // The names of x = 0, 1, ... If there are any, points are bars: those of one category stand side
  // by side in the order of the series, and an interval is a whisker on its bar.
  std::vector<std::string> categories;
};

struct Report {
  std::string bench;    // "feed"
  std::string command;  // the command line
  nlohmann::ordered_json machine = nlohmann::ordered_json::object();
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  std::vector<Figure> figures;
  // The bench's conclusions, by name, for programs that read it.
  nlohmann::ordered_json results = nlohmann::ordered_json::object();
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<std::string> notes;  // sentences about what the figures do not say

  // Appends a figure and returns its summary.
  Summary add(Figure figure);
};

inline constexpr int kReportSchema = 1;

nlohmann::ordered_json to_json(const Report& report);
nlohmann::ordered_json to_json(const Plot& plot);
// Writes the machine, tables and notes.
std::string to_markdown(const Report& report, const std::string& machine_line);

// Writes aligned columns with a rule below the heads, which is readable in a terminal too.
std::string to_markdown(const Table& table);

// Adds a bar to a plot of categories, with its category and its series if the plot does not have
// them yet. `bar.x` is not used.
void add_bar(Plot& plot, const std::string& category, const std::string& series,
             const PlotPoint& bar);

// Returns the median and its interval, for a plot at `x`.
PlotPoint plot_point(const Summary& summary, double x = 0);

// Returns "12.3 (11.9–12.8)": the median with `digits` significant digits, and its interval.
std::string with_interval(const Summary& summary, int digits = 3);
// Returns `value` with `digits` significant digits, never in scientific notation.
std::string significant(double value, int digits = 3);
inline std::string megabytes(double bytes) { return significant(1e-6 * bytes); }  // without a unit

}  // namespace stoker
