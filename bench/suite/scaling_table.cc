#include "bench/suite/scaling_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/suite/strategy_name.h"

namespace stoker {
namespace {

bool same_line(const ScalingRow& a, const ScalingRow& b) {
  return a.weak == b.weak && a.model == b.model && a.reduction == b.reduction && a.wire == b.wire;
}

std::string strategy_of(const ScalingRow& row) { return strategy_name(row.reduction, row.wire); }

std::string kib(int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1024); }

const char* mode_of(const ScalingRow& row) { return row.weak ? "weak" : "strong"; }

// A row, compared with the first row of its line.
struct Scaled {
  const ScalingRow& row;
  double speed_up, efficiency;
};

std::vector<Scaled> scale(const std::vector<ScalingRow>& rows) {
  std::vector<Scaled> scaled;
  const ScalingRow* base = nullptr;
  for (const ScalingRow& row : rows) {
    if (base == nullptr || !same_line(*base, row)) base = &row;
    const double speed_up = base->devices * median(row.rate) / median(base->rate);
    scaled.push_back({row, speed_up, speed_up / row.devices});
  }
  return scaled;
}

Table table_of(const std::vector<Scaled>& all, bool weak) {
  Table table{weak ? "Weak scaling: the batch of each device stays"
                   : "Strong scaling: the batch of all devices together stays",
              {"model", "parameters", "strategy", "devices", "batch of each", "images/s",
               "speed-up", "efficiency", "CPU ms per image", "KiB sent", "KiB received"},
              {}};
  for (const Scaled& scaled : all) {
    const ScalingRow& row = scaled.row;
    if (row.weak != weak) continue;
    table.rows.push_back(
        {row.model, std::to_string(row.parameters), strategy_of(row), std::to_string(row.devices),
         std::to_string(row.global_batch / row.devices), with_interval(summarise(row.rate)),
         fmt::format("{:.2f}x", scaled.speed_up), fmt::format("{:.1f} %", 100 * scaled.efficiency),
         with_interval(summarise(row.cpu_ms)),
         kib(row.traffic.gradients_sent + row.traffic.weights_sent),
         kib(row.traffic.gradients_received + row.traffic.weights_received)});
  }
  return table;
}

// Draws a line per model and reduction.
Plot speed_up_plot(const std::vector<Scaled>& all, bool weak) {
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
    const ScalingRow& row = scaled.row;
    if (row.weak != weak) continue;
    if (base == nullptr || !same_line(*base, row)) {
      base = &row;
      plot.series.push_back({fmt::format("{}, {}", row.model, strategy_of(row)), {}});
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

std::string category_of(const std::string& model, int64_t parameters) {
  return fmt::format("{} ({:.2f} M)", model, 1e-6 * static_cast<double>(parameters));
}

// Draws the efficiency with the most devices, for models from small to large.
Plot size_plot(const std::vector<Scaled>& all) {
  int most = 1;
  std::vector<std::pair<int64_t, std::string>> models;
  for (const Scaled& scaled : all) {
    most = std::max(most, scaled.row.devices);
    models.emplace_back(scaled.row.parameters, scaled.row.model);
  }
  std::sort(models.begin(), models.end());
  models.erase(std::unique(models.begin(), models.end()), models.end());
  Plot plot{"scaling_model_size",
            fmt::format("Model size against efficiency, {} devices", most),
            "model, from few parameters to many",
            "efficiency %",
            {},
            {}};
  for (const auto& [parameters, model] : models) {
    plot.categories.push_back(category_of(model, parameters));
  }
  for (const Scaled& scaled : all) {
    const ScalingRow& row = scaled.row;
    if (row.devices != most) continue;
    const double percent = 100 * scaled.efficiency;
    add_bar(plot, category_of(row.model, row.parameters),
            fmt::format("{} {}", mode_of(row), strategy_of(row)), {0, percent, percent, percent});
  }
  return plot;
}

}  // namespace

void fill_scaling_report(const std::vector<ScalingRow>& rows, Report& report) {
  const std::vector<Scaled> all = scale(rows);
  for (const Scaled& scaled : all) {
    const ScalingRow& row = scaled.row;
    const std::string name = fmt::format("{}, {}, {}, {} devices", mode_of(row), row.model,
                                         strategy_of(row), row.devices);
    report.add({"rate, " + name, "images/s", Better::higher, row.rate});
    report.add({"CPU per image, " + name, "ms", Better::lower, row.cpu_ms});
    report.results[mode_of(row)].push_back(
        {{"model", row.model},
         {"parameters", row.parameters},
         {"reduction", to_string(row.reduction)},
         {"grad_wire", to_string(row.wire)},
         {"devices", row.devices},
         {"images_per_second", median(row.rate)},
         {"speed_up", scaled.speed_up},
         {"efficiency", scaled.efficiency},
         {"gradient_bytes_sent", row.traffic.gradients_sent},
         {"gradient_bytes_received", row.traffic.gradients_received},
         {"weight_bytes_sent", row.traffic.weights_sent},
         {"weight_bytes_received", row.traffic.weights_received}});
  }
  for (const bool weak : {true, false}) {
    Table table = table_of(all, weak);
    if (table.rows.empty()) continue;
    report.tables.push_back(std::move(table));
    report.plots.push_back(speed_up_plot(all, weak));
  }
  report.plots.push_back(size_plot(all));
}

}  // namespace stoker
