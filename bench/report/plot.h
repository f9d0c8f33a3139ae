// A chart: lines over numbers, or bars over categories, each with its interval. A report's JSON
// holds it, and bench/report/plot draws it. Values; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stoker {

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

// Adds a bar to a plot of categories, with its category and its series if the plot does not have
// them yet. `bar.x` is not used.
void add_bar(Plot& plot, const std::string& category, const std::string& series,
             const PlotPoint& bar);

nlohmann::ordered_json to_json(const Plot& plot);

}  // namespace stoker
