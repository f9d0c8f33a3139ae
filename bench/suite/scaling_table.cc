#include "bench/suite/scaling_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace stoker {
namespace {

const char* name_of(FeedKind feed) {
  for (const auto& [name, kind] : kFeedKinds) {
    if (kind == feed) return name;
  }
  return "?";
}

// The settings in which rows may differ, besides devices and mode.
enum class Dimension : uint8_t { model, size, samples, feed, strategy, count };

constexpr int kDimensions = static_cast<int>(Dimension::count);
constexpr const char* kDimensionNames[kDimensions] = {"model", "px", "data set", "feed",
                                                      "strategy"};

std::string dimension_text(const ScalingRow& row, Dimension dimension) {
  switch (dimension) {
    case Dimension::model:
      return row.model;
    case Dimension::size:
      return row.size.width == row.size.height
                 ? std::to_string(row.size.width)
                 : fmt::format("{}x{}", row.size.width, row.size.height);
    case Dimension::samples:
      return row.samples > 0 ? std::to_string(row.samples) : "-";
    case Dimension::feed:
      return name_of(row.feed);
    case Dimension::strategy:
    case Dimension::count:
      break;
  }
  return strategy_name(row.reduction, row.wire);
}

bool same_line(const ScalingRow& a, const ScalingRow& b) {
  if (a.weak != b.weak) return false;
  for (int i = 0; i < kDimensions; ++i) {
    const auto dimension = static_cast<Dimension>(i);
    if (dimension_text(a, dimension) != dimension_text(b, dimension)) return false;
  }
  return true;
}

std::string kib(int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1024); }

const char* mode_of(const ScalingRow& row) { return row.weak ? "weak" : "strong"; }

// A row, compared with the first row of its line.
struct Scaled {
  const ScalingRow* row;
  double speed_up, efficiency;
};

std::vector<Scaled> scale(const std::vector<ScalingRow>& rows) {
  std::vector<Scaled> scaled;
  const ScalingRow* base = nullptr;
  for (const ScalingRow& row : rows) {
    if (base == nullptr || !same_line(*base, row)) base = &row;
    const double speed_up = base->devices * median(row.rate) / median(base->rate);
    scaled.push_back({&row, speed_up, speed_up / row.devices});
  }
  return scaled;
}

// Names rows by what they differ in.
class RowNames {
 public:
  explicit RowNames(const std::vector<ScalingRow>& rows) {
    for (int i = 0; i < kDimensions; ++i) {
      std::set<std::string> texts;
      for (const ScalingRow& row : rows)
        texts.insert(dimension_text(row, static_cast<Dimension>(i)));
      varies_[i] = texts.size() > 1;
    }
  }
  bool varies(Dimension dimension) const { return varies_[static_cast<int>(dimension)]; }
  // The settings that vary, without `except`, which the reader sees elsewhere; the strategy if
  // nothing does.
  std::string name(const ScalingRow& row, Dimension except = Dimension::count) const {
    std::string text;
    for (int i = 0; i < kDimensions; ++i) {
      const auto dimension = static_cast<Dimension>(i);
      if (dimension == except || !varies(dimension)) continue;
      if (!text.empty()) text += ", ";
      if (dimension == Dimension::samples) text += "of ";
      text += dimension_text(row, dimension);
      if (dimension == Dimension::size) text += " px";
    }
    return text.empty() ? dimension_text(row, Dimension::strategy) : text;
  }

 private:
  bool varies_[kDimensions] = {};
};

// The columns that say which row it is.
std::vector<std::string> heads() {
  return {std::begin(kDimensionNames), std::end(kDimensionNames)};
}

std::vector<std::string> cells_of(const ScalingRow& row) {
  std::vector<std::string> cells;
  for (int i = 0; i < kDimensions; ++i)
    cells.push_back(dimension_text(row, static_cast<Dimension>(i)));
  return cells;
}

void add_columns(std::vector<std::string>& row, std::initializer_list<std::string> more) {
  row.insert(row.end(), more);
}

Table scaled_table(const std::vector<Scaled>& all, bool weak) {
  Table table{weak ? "Weak scaling: the batch of each device stays"
                   : "Strong scaling: the batch of all devices together stays",
              heads(),
              {}};
  add_columns(table.columns, {"parameters", "devices", "batch of each", "images/s", "speed-up",
                              "efficiency", "CPU ms per image", "KiB sent", "KiB received"});
  for (const Scaled& scaled : all) {
    const ScalingRow& row = *scaled.row;
    if (row.weak != weak) continue;
    table.rows.push_back(cells_of(row));
    add_columns(
        table.rows.back(),
        {std::to_string(row.parameters), std::to_string(row.devices),
         std::to_string(row.global_batch / row.devices), with_interval(summarise(row.rate)),
         fmt::format("{:.2f}x", scaled.speed_up), fmt::format("{:.1f} %", 100 * scaled.efficiency),
         with_interval(summarise(row.cpu_ms)),
         kib(row.traffic.gradients_sent + row.traffic.weights_sent),
         kib(row.traffic.gradients_received + row.traffic.weights_received)});
  }
  return table;
}

Table warm_up_table(const std::vector<ScalingRow>& rows) {
  Table table{"Warm-up of a run", heads(), {}};
  add_columns(table.columns, {"mode", "devices", "steps", "seconds"});
  for (const ScalingRow& row : rows) {
    table.rows.push_back(cells_of(row));
    add_columns(table.rows.back(), {mode_of(row), std::to_string(row.devices),
                                    with_interval(summarise(row.warmup_steps), 2),
                                    with_interval(summarise(row.warmup_seconds))});
  }
  return table;
}

// Draws a line for each of what varies besides devices.
Plot speed_up_plot(const std::vector<Scaled>& all, const RowNames& names, bool weak) {
  const std::string mode = weak ? "weak" : "strong";
  Plot plot{"scaling_" + mode,
            "Speed-up over one device, " + mode + " scaling",
            "devices",
            "speed-up",
            {},
            {}};
  PlotSeries ideal{"ideal", {}, true};
  const ScalingRow* base = nullptr;
  for (const Scaled& scaled : all) {
    const ScalingRow& row = *scaled.row;
    if (row.weak != weak) continue;
    if (base == nullptr || !same_line(*base, row)) {
      base = &row;
      plot.series.push_back({names.name(row), {}});
    }
    const Interval interval = summarise(row.rate).interval;
    const double per_rate = scaled.speed_up / median(row.rate);
    const auto x = static_cast<double>(row.devices);
    plot.series.back().points.push_back(
        {x, scaled.speed_up, per_rate * interval.low, per_rate * interval.high});
    ideal.points.push_back({x, x, 0, 0});
  }
  std::sort(ideal.points.begin(), ideal.points.end(),
            [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  plot.series.push_back(std::move(ideal));
  return plot;
}

// A plot against one dimension, with the most devices.
struct Against {
  Dimension dimension;
  const char *name, *title, *x_label;
  bool rates;  // images/s instead of the efficiency
};

constexpr Against kAgainst[] = {
    {Dimension::model, "scaling_model_size", "Model size against efficiency",
     "model, from few parameters to many", false},
    {Dimension::size, "scaling_image_size", "Image size against efficiency", "px", false},
    {Dimension::samples, "scaling_data_set", "Size of the data set against efficiency", "samples",
     false},
    {Dimension::feed, "scaling_feed", "Input against images/s", "feed", true},
};

Plot plot_against(const Against& against, std::vector<Scaled> all, const RowNames& names) {
  int most = 1;
  for (const Scaled& scaled : all) most = std::max(most, scaled.row->devices);
  if (against.dimension == Dimension::model) {
    std::stable_sort(all.begin(), all.end(), [](const Scaled& a, const Scaled& b) {
      return a.row->parameters < b.row->parameters;
    });
  }
  Plot plot{against.name,
            fmt::format("{}, {} devices", against.title, most),
            against.x_label,
            against.rates ? "images/s" : "efficiency %",
            {},
            {}};
  for (const Scaled& scaled : all) {
    const ScalingRow& row = *scaled.row;
    if (row.devices != most) continue;
    std::string category = dimension_text(row, against.dimension);
    if (against.dimension == Dimension::model) {
      category += fmt::format(" ({:.2f} M)", 1e-6 * static_cast<double>(row.parameters));
    }
    const double percent = 100 * scaled.efficiency;
    add_bar(
        plot, category, fmt::format("{}, {}", mode_of(row), names.name(row, against.dimension)),
        against.rates ? plot_point(summarise(row.rate)) : PlotPoint{0, percent, percent, percent});
  }
  return plot;
}

void add_results(const std::vector<Scaled>& all, Report& report) {
  for (const Scaled& scaled : all) {
    const ScalingRow& row = *scaled.row;
    std::string name = mode_of(row);
    for (const std::string& cell : cells_of(row)) name += ", " + cell;
    name += fmt::format(", {} devices", row.devices);
    report.add({"rate, " + name, "images/s", Better::higher, row.rate});
    report.add({"CPU per image, " + name, "ms", Better::lower, row.cpu_ms});
    report.results[mode_of(row)].push_back(
        {{"model", row.model},
         {"parameters", row.parameters},
         {"size", {row.size.width, row.size.height}},
         {"samples", row.samples},
         {"feed", name_of(row.feed)},
         {"reduction", to_string(row.reduction)},
         {"grad_wire", to_string(row.wire)},
         {"devices", row.devices},
         {"images_per_second", median(row.rate)},
         {"speed_up", scaled.speed_up},
         {"efficiency", scaled.efficiency},
         {"warmup_steps", median(row.warmup_steps)},
         {"warmup_seconds", median(row.warmup_seconds)},
         {"gradient_bytes_sent", row.traffic.gradients_sent},
         {"gradient_bytes_received", row.traffic.gradients_received},
         {"weight_bytes_sent", row.traffic.weights_sent},
         {"weight_bytes_received", row.traffic.weights_received}});
  }
}

}  // namespace

void fill_scaling_report(const std::vector<ScalingRow>& rows, Report& report) {
  const std::vector<Scaled> all = scale(rows);
  const RowNames names(rows);
  add_results(all, report);
  for (const bool weak : {true, false}) {
    Table table = scaled_table(all, weak);
    if (table.rows.empty()) continue;
    report.tables.push_back(std::move(table));
    report.plots.push_back(speed_up_plot(all, names, weak));
  }
  report.tables.push_back(warm_up_table(rows));
  for (const Against& against : kAgainst) {
    if (names.varies(against.dimension)) report.plots.push_back(plot_against(against, all, names));
  }
}

StepWarmUp warm_up_of(std::span<const double> ends) {
  std::vector<double> lengths;
  for (size_t i = 0; i < ends.size(); ++i) lengths.push_back(ends[i] - (i > 0 ? ends[i - 1] : 0));
  const auto half = static_cast<ptrdiff_t>(lengths.size() / 2);
  const double most = kWarmFactor * median({lengths.begin() + half, lengths.end()});
  for (size_t first = 0; first < lengths.size(); ++first) {
    const auto begin = lengths.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + std::min<ptrdiff_t>(kWarmSteps, lengths.end() - begin);
    if (std::all_of(begin, end, [&](double length) { return length <= most; })) {
      return {static_cast<int64_t>(first), first > 0 ? ends[first - 1] : 0};
    }
  }
  return {static_cast<int64_t>(ends.size()), ends.back()};
}

}  // namespace stoker
