#include "bench/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/report/report.h"

namespace stoker {
namespace {

constexpr double kWidth = 720, kHeight = 400;
// The height that each legend row after the first adds.
constexpr double kLegendRow = 20;
constexpr double kLeft = 64, kRight = 24, kTop = 72, kBottom = 52;
constexpr size_t kColours = 6;

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
      ".rule {{ stroke: {} }}\n",
      back, ink, faint, faint, rule);
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

// Maps the data's numbers to places on the picture.
class Frame {
 public:
  // `height` is that of the picture; the legend is above the frame.
  Frame(const Plot& plot, double height) : plot_(plot), height_(height) {
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
    const double room = xs_.size() > 1 ? 0.12 * (most_x_ - least_x_) : 0.5;
    least_x_ -= room;
    most_x_ += room;
  }
  double x(double value) const {
    return kLeft + (value - least_x_) / (most_x_ - least_x_) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    const double room = kHeight - kTop - kBottom;
    return height_ - kBottom - value / marks_.back() * room;
  }

  std::string draw() const {
    std::string out;
    const auto decimals = marks_[1] < 1 ? static_cast<int>(std::ceil(-std::log10(marks_[1]))) : 0;
    for (const double mark : marks_) {
      out += rule(kLeft, y(mark), kWidth - kRight, y(mark), "class=\"rule\"");
      out += label("end", kLeft - 8, y(mark) + 4, fmt::format("{:.{}f}", mark, decimals));
    }
    out += rule(kLeft, y(0), kWidth - kRight, y(0), "class=\"axis\"");
    for (const double value : xs_) {
      out += label("middle", x(value), height_ - kBottom + 20, name_of(value));
    }
    return out + label("middle", (kLeft + kWidth - kRight) / 2, height_ - 10, plot_.x_label);
  }

 private:
  std::string name_of(double value) const {
    const auto index = static_cast<size_t>(value);
    return index < plot_.categories.size() ? plot_.categories[index] : fmt::format("{:g}", value);
  }

  const Plot& plot_;
  const double height_;
  double least_x_ = 0, most_x_ = 1;
  std::vector<double> xs_, marks_;
};

std::string draw(const PlotSeries& series, size_t colour, const Frame& frame) {
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

struct Legend {
  std::string svg;
  double extra_height = 0;  // of the rows after the first
};

// Draws the names under the title, spaced by their lengths, in as many rows as they need.
Legend legend_of(const std::vector<PlotSeries>& all, const std::vector<size_t>& colours) {
  Legend legend;
  double x = kLeft;
  for (size_t i = 0; i < all.size(); ++i) {
    const double width = 48 + 7.2 * static_cast<double>(all[i].label.size());
    if (x > kLeft && x + width > kWidth) {
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

std::string to_svg(const Plot& plot) {
  std::vector<size_t> colours;
  size_t next = 0;
  for (const PlotSeries& series : plot.series) {
    colours.push_back(series.ideal ? 0 : next++ % kColours);
  }
  const Legend legend = legend_of(plot.series, colours);
  const double height = kHeight + legend.extra_height;
  const Frame frame(plot, height);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
      "<rect width=\"100%\" height=\"100%\" class=\"back\"/>\n",
      kWidth, height, escaped(plot.title), style());
  out += label("start", kLeft, 24, plot.title, "title");
  out += label("end", kWidth - kRight, 24, plot.y_label);
  out += legend.svg + frame.draw();
  for (size_t i = 0; i < plot.series.size(); ++i) out += draw(plot.series[i], colours[i], frame);
  return out + "</svg>\n";
}

}  // namespace stoker
