// A chart of lines with their intervals, as one SVG that needs nothing else and follows the
// reader's light or dark setting. Values; any thread.
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
  bool ideal = false;  // what would be perfect: drawn dashed and grey
};

struct Plot {
  std::string name;  // of the file, before ".svg": "feed_workers"
  std::string title;
  std::string x_label, y_label;
  std::vector<PlotSeries> series;       // six at most are told apart
  std::vector<std::string> categories;  // of x = 0, 1, ...: written below instead of numbers
};

// REQUIRES: at least one point. y begins at 0.
std::string to_svg(const Plot& plot);

// Where an axis from 0 to `most` or a little more has its marks: round numbers, 3 to 7 of them.
std::vector<double> axis_marks(double most);

}  // namespace stoker
