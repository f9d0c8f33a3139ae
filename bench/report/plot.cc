#include "bench/report/plot.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stoker {

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
