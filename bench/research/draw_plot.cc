// Draws a chart for the scripts of this folder: reads a Plot (bench/report/plot.h) as JSON from
// standard input and writes its SVG to standard output.
//   {"title": .., "x_label": .., "y_label": .., "categories": [..],
//    "series": [{"label": .., "points": [[x, y, low, high], ..]}, ..]}
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/report/plot.h"

namespace stoker {
namespace {

Plot plot_of(const nlohmann::json& json) {
  Plot plot;
  json.at("title").get_to(plot.title);
  json.at("x_label").get_to(plot.x_label);
  json.at("y_label").get_to(plot.y_label);
  json.at("categories").get_to(plot.categories);
  for (const nlohmann::json& each : json.at("series")) {
    PlotSeries& series = plot.series.emplace_back();
    each.at("label").get_to(series.label);
    for (const nlohmann::json& point : each.at("points")) {
      series.points.push_back({point.at(0), point.at(1), point.at(2), point.at(3)});
    }
  }
  return plot;
}

}  // namespace
}  // namespace stoker

int main() {
  try {
    std::cout << stoker::to_svg(stoker::plot_of(nlohmann::json::parse(std::cin)));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "draw_plot: %s\n", error.what());
    return 2;
  }
}
