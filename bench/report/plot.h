// A chart of lines with their intervals, as one self-contained SVG that follows the reader's light
// or dark setting. Values; any thread.
#pragma once

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
  bool ideal = false;  // the perfect result, drawn dashed and grey
};

struct Plot {
  std::string name;  // of the file, before ".svg": "feed_workers"
  std::string title;
  std::string x_label, y_label;
  std::vector<PlotSeries> series;       // at most six have different colours
  std::vector<std::string> categories;  // labels for x = 0, 1, ... instead of numbers
};

// Draws the plot; y begins at 0. REQUIRES: at least one point.
std::string to_svg(const Plot& plot);

// Returns the marks of an axis from 0 to `most` or a little more: 3 to 7 round numbers.
std::vector<double> axis_marks(double most);

}  // namespace stoker
