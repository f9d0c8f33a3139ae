#include "bench/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "bench/report/report.h"

namespace stoker {
namespace {

constexpr double kWidth = 720, kHeight = 400;
// The height that each legend row after the first adds.
constexpr double kLegendRow = 20;
constexpr double kLeft = 64, kRight = 24, kTop = 72, kBottom = 52;
constexpr size_t kColours = 6;
// Approximate width of a character of the text.
constexpr double kCharacter = 7.2;
// Share of a category's place that its bars fill, and the least widths of a bar and of a place,
// which a slanted name needs too.
constexpr double kFilled = 0.8, kMinBar = 8, kMinPlace = 20;
constexpr double kSlant = 40;  // degrees

// Okabe and Ito's colours, which colour-blind people can distinguish: darker ones for a light
// background, lighter ones for a dark one.
constexpr std::array<const char*, kColours> kOnLight = {"#0072b2", "#c24e00", "#007a5a",
                                                        "#a8487f", "#8a6d00", "#3a7ca5"};
constexpr std::array<const char*, kColours> kOnDark = {"#56b4e9", "#f0883e", "#35c799",
                                                       "#e08fbf", "#f0e442", "#9ecbe8"};

// Plain classes instead of variables, because only browsers know variables in SVG.
std::string palette(const char* back, const char* ink, const char* faint, const char* rule,
                    const std::array<const char*, kColours>& colours) {
  std::string css = fmt::format(
      ".back {{ fill: {} }} .title {{ fill: {} }} .text {{ fill: {} }} .ideal, .axis {{ stroke: {} "
      "}} "
      ".rule {{ stroke: {} }} .halo {{ stroke: {} }} .whisker {{ stroke: {} }}\n",
      back, ink, faint, faint, rule, back, ink);
  for (size_t i = 0; i < kColours; ++i) {
    css += fmt::format(".s{0} {{ stroke: {1} }} .f{0} {{ fill: {1} }}\n", i, colours[i]);
  }
  return css;
}

std::string style() {
  return "text { font: 13px system-ui, sans-serif }\ntext.title { font-size: 16px; font-weight: "
         "600 }\n"
         ".line { fill: none; stroke-width: 2.5; stroke-linejoin: round } .bar { stroke-width: 1.5 "
         "}\n"
         ".halo { stroke-width: 4 } .whisker { stroke-width: 1.5 }\n"
         ".ideal { fill: none; stroke-width: 1.5; stroke-dasharray: 5 5 }\n" +
         palette("#ffffff", "#1f2328", "#57606a", "#d8dee4", kOnLight) +
         "@media (prefers-color-scheme: dark) {\n" +
         palette("#0d1117", "#e6edf3", "#9aa4ae", "#30363d", kOnDark) + "}";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string label(const char* place, double x, double y, const std::string& text,
                  const char* kind = "text") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     x, y, place, kind, escaped(text));
}

std::string rule(double x1, double y1, double x2, double y2, const std::string& kind) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, kind);
}

// The picture's measures that follow from the plot's categories.
struct Measures {
  double width = kWidth, height = kHeight;
  double left = kLeft, bottom = kBottom;
  bool slanted = false;  // the names of the categories
};

Measures measures_of(const Plot& plot) {
  Measures of;
  if (plot.categories.empty()) return of;
  const auto count = static_cast<double>(plot.categories.size());
  const double least =
      std::max(kMinPlace, kMinBar * static_cast<double>(plot.series.size()) / kFilled);
  of.width = std::max(kWidth, kLeft + kRight + count * least);
  const double place = (of.width - kLeft - kRight) / count;
  double longest = 0;
  for (const std::string& name : plot.categories) {
    longest = std::max(longest, kCharacter * static_cast<double>(name.size()));
  }
  of.slanted = longest > place - 4;
  if (!of.slanted) return of;
  const double angle = kSlant * std::numbers::pi / 180;
  of.left = std::max(kLeft, longest * std::cos(angle) - place / 2);
  const double more = longest * std::sin(angle);
  of.bottom += more;
  of.height += more;
  of.width += of.left - kLeft;
  return of;
}

// Maps the data's numbers to places on the picture.
class Frame {
 public:
  // `height` is that of the picture; the legend is above the frame.
  Frame(const Plot& plot, const Measures& measures, double height)
      : plot_(plot), measures_(measures), height_(height) {
    bool first = true;
    double most = 0;
    for (const PlotSeries& series : plot.series) {
      for (const PlotPoint& point : series.points) {
        least_x_ = first ? point.x : std::min(least_x_, point.x);
        most_x_ = first ? point.x : std::max(most_x_, point.x);
        first = false;
        xs_.push_back(point.x);
        most = std::max({most, point.y, point.high});
      }
    }
    std::sort(xs_.begin(), xs_.end());
    xs_.erase(std::unique(xs_.begin(), xs_.end()), xs_.end());
    marks_ = axis_marks(most);
    // There is room on both sides, so that points do not sit on the axis.
    double room = xs_.size() > 1 ? 0.12 * (most_x_ - least_x_) : 0.5;
    if (!plot.categories.empty()) {  // each has a place of its own, with a bar or without
      least_x_ = 0;
      most_x_ = static_cast<double>(plot.categories.size() - 1);
      room = 0.5;
    }
    least_x_ -= room;
    most_x_ += room;
  }
  double x(double value) const {
    return measures_.left + (value - least_x_) / (most_x_ - least_x_) * (right() - measures_.left);
  }
  double y(double value) const {
    const double room = kHeight - kTop - kBottom;
    return height_ - measures_.bottom - value / marks_.back() * room;
  }

  std::string draw() const {
    std::string out;
    const auto decimals = marks_[1] < 1 ? static_cast<int>(std::ceil(-std::log10(marks_[1]))) : 0;
    for (const double mark : marks_) {
      out += rule(measures_.left, y(mark), right(), y(mark), "class=\"rule\"");
      out += label("end", measures_.left - 8, y(mark) + 4, fmt::format("{:.{}f}", mark, decimals));
    }
    out += rule(measures_.left, y(0), right(), y(0), "class=\"axis\"");
    out += plot_.categories.empty() ? numbers() : names();
    return out + label("middle", (measures_.left + right()) / 2, height_ - 10, plot_.x_label);
  }

 private:
  double right() const { return measures_.width - kRight; }

  std::string numbers() const {
    std::string out;
    for (const double value : xs_) {
      out += label("middle", x(value), y(0) + 20, fmt::format("{:g}", value));
    }
    return out;
  }
  std::string names() const {
    std::string out;
    for (size_t i = 0; i < plot_.categories.size(); ++i) {
      const double at = x(static_cast<double>(i));
      if (measures_.slanted) {
        out += fmt::format("<g transform=\"translate({:.1f} {:.1f}) rotate(-{:g})\">{}</g>\n",
                           at + 4, y(0) + 16, kSlant, label("end", 0, 0, plot_.categories[i]));
      } else {
        out += label("middle", at, y(0) + 20, plot_.categories[i]);
      }
    }
    return out;
  }

  const Plot& plot_;
  const Measures measures_;
  const double height_;
  double least_x_ = 0, most_x_ = 1;
  std::vector<double> xs_, marks_;
};

std::string draw_line(const PlotSeries& series, size_t colour, const Frame& frame) {
  std::string path, dots;
  for (const PlotPoint& point : series.points) {
    const double x = frame.x(point.x), y = frame.y(point.y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x, y);
    if (series.ideal) continue;
    if (point.high > point.low) {
      dots += rule(x, frame.y(point.low), x, frame.y(point.high),
                   fmt::format("class=\"bar s{}\"", colour));
    }
    dots +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" class=\"f{}\"/>\n", x, y, colour);
  }
  const std::string kind = series.ideal ? "ideal" : fmt::format("line s{}", colour);
  return fmt::format("<path d=\"{}\" class=\"{}\"/>\n", path, kind) + dots;
}

// Draws an interval with a line at each end. A wider line in the background's colour lies below it,
// so that it can be seen on a bar of any colour.
std::string draw_whisker(double x, double low, double high, double bar_width) {
  const double end = std::min(5.0, bar_width / 3);
  std::string out;
  for (const char* kind : {"class=\"halo\"", "class=\"whisker\""}) {
    out += rule(x, low, x, high, kind);
    for (const double y : {low, high}) out += rule(x - end, y, x + end, y, kind);
  }
  return out;
}

// Draws the bars of a series, which is the `turn`-th of `bars` in each category.
std::string draw_bars(const PlotSeries& series, size_t colour, size_t turn, size_t bars,
                      const Frame& frame) {
  const double place = frame.x(1) - frame.x(0);
  const double width = kFilled * place / static_cast<double>(bars);
  std::string out, whiskers;
  for (const PlotPoint& point : series.points) {
    const double left = frame.x(point.x) - kFilled * place / 2 + width * static_cast<double>(turn);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"f{}\"/>\n",
        left, frame.y(point.y), width - 1, frame.y(0) - frame.y(point.y), colour);
    if (point.high > point.low) {
      whiskers +=
          draw_whisker(left + (width - 1) / 2, frame.y(point.low), frame.y(point.high), width);
    }
  }
  return out + whiskers;
}

std::string draw_series(const Plot& plot, const std::vector<size_t>& colours, const Frame& frame) {
  std::string out;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    out += plot.categories.empty()
               ? draw_line(plot.series[i], colours[i], frame)
               : draw_bars(plot.series[i], colours[i], i, plot.series.size(), frame);
  }
  return out;
}

struct Legend {
  std::string svg;
  double extra_height = 0;  // of the rows after the first
};

// Draws the names under the title, spaced by their lengths, in as many rows as they need.
Legend legend_of(const std::vector<PlotSeries>& all, const std::vector<size_t>& colours,
                 double picture_width) {
  Legend legend;
  double x = kLeft;
  for (size_t i = 0; i < all.size(); ++i) {
    const double width = 48 + kCharacter * static_cast<double>(all[i].label.size());
    if (x > kLeft && x + width > picture_width) {
      x = kLeft;
      legend.extra_height += kLegendRow;
    }
    const double y = 46 + legend.extra_height;
    const std::string kind =
        all[i].ideal ? "class=\"ideal\"" : fmt::format("class=\"line s{}\"", colours[i]);
    legend.svg += rule(x, y, x + 18, y, kind) + label("start", x + 24, y + 4, all[i].label);
    x += width;
  }
  return legend;
}

}  // namespace

std::vector<double> axis_marks(double most) {
  if (!(most > 0)) return {0, 1};
  const double power = std::pow(10, std::floor(std::log10(most)));
  double step = 2 * power;  // for most in (5, 10] * power
  for (const double candidate : {0.2, 0.25, 0.5, 1.0}) {
    if (most <= 5 * candidate * power) {
      step = candidate * power;
      break;
    }
  }
  std::vector<double> marks;
  const auto count = static_cast<int>(std::ceil(most / step - 1e-9));
  for (int i = 0; i <= count; ++i) marks.push_back(i * step);
  return marks;
}

void add_bar(Plot& plot, const std::string& category, const std::string& series,
             const PlotPoint& bar) {
  auto place = std::find(plot.categories.begin(), plot.categories.end(), category);
  if (place == plot.categories.end()) place = plot.categories.insert(place, category);
  auto of = std::find_if(plot.series.begin(), plot.series.end(),
                         [&](const PlotSeries& each) { return each.label == series; });
  if (of == plot.series.end()) of = plot.series.insert(of, {series, {}});
  PlotPoint& point = of->points.emplace_back(bar);
  point.x = static_cast<double>(place - plot.categories.begin());
}

std::string to_svg(const Plot& plot) {
  std::vector<size_t> colours;
  size_t next = 0;
  for (const PlotSeries& series : plot.series) {
    colours.push_back(series.ideal ? 0 : next++ % kColours);
  }
  const Measures measures = measures_of(plot);
  const Legend legend = legend_of(plot.series, colours, measures.width);
  const double height = measures.height + legend.extra_height;
  const Frame frame(plot, measures, height);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
      "<rect width=\"100%\" height=\"100%\" class=\"back\"/>\n",
      measures.width, height, escaped(plot.title), style());
  out += label("start", kLeft, 24, plot.title, "title");
  out += label("end", measures.width - kRight, 24, plot.y_label);
  return out + legend.svg + frame.draw() + draw_series(plot, colours, frame) + "</svg>\n";
}

}  // namespace stoker
