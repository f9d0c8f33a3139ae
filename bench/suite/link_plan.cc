#include "bench/suite/link_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bench/suite/scaling_table.h"
#include "train/device/buckets.h"
#include "train/device/memory.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPlannedSlots = 3;

void check_demand(const LinkMachine& machine, const LinkPlanDemand& demand) {
  const bool ascending = std::is_sorted(demand.counts.begin(), demand.counts.end());
  if (demand.counts.empty() || !ascending || demand.counts.front() < 1 ||
      demand.counts.back() > std::ssize(machine.gpus)) {
    throw std::invalid_argument(fmt::format(
        "{} has {} GPUs, and a plan is to be for {} to {} of them, ascending", machine.name,
        machine.gpus.size(), demand.counts.empty() ? 0 : demand.counts.front(),
        demand.counts.empty() ? 0 : demand.counts.back()));
  }
  if (!(demand.rate > 0) || demand.batch < demand.counts.back() || !(demand.row_bytes > 0) ||
      demand.reductions.empty() || demand.wires.empty()) {
    throw std::invalid_argument(
        fmt::format("{} images/s, a batch of {} for {} GPUs, {} bytes of a sample", demand.rate,
                    demand.batch, demand.counts.back(), demand.row_bytes));
  }
}

// Predicts with `rows` in each GPU's batch.
SchedulePrediction predict(const LinkMachine& machine, const LinkPlanDemand& demand, int rows,
                           const ScheduleOptions& options) {
  TrainingWork work;
  work.rows = rows;
  work.row_bytes = demand.row_bytes;
  work.step_seconds = rows / demand.rate;
  work.parts = demand.parts;
  return predict_schedule(machine, work, options);
}

const LinkLoad& busiest(const SchedulePrediction& prediction) {
  return *std::max_element(prediction.links.begin(), prediction.links.end(),
                           [](const LinkLoad& a, const LinkLoad& b) { return a.busy < b.busy; });
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string milliseconds(double seconds) { return significant(1e3 * seconds); }

struct Strategy {
  ReduceKind reduction;
  GradWire wire;
};

std::vector<Strategy> strategies_of(const LinkPlanDemand& demand) {
  std::vector<Strategy> all;
  for (const ReduceKind reduction : demand.reductions) {
    for (const GradWire wire : demand.wires) {
      if (!sends_gradients(reduction) && wire != demand.wires.front()) continue;
      all.push_back({reduction, sends_gradients(reduction) ? wire : GradWire::fp32});
    }
  }
  return all;
}

// Efficiency is over one GPU that waits for its links as the others do.
void add_scaling_plan(const LinkMachine& machine, const LinkPlanDemand& demand, bool weak,
                      Report& report) {
  const char* mode = weak ? "weak" : "strong";
  Table table{weak ? "Weak scaling: the batch of each GPU stays"
                   : "Strong scaling: the batch of all GPUs together stays",
              {"strategy", "GPUs", "batch of each", "images/s", "efficiency", "step ms", "gap ms",
               "sum after backward ms", "busiest link"},
              {}};
  Plot plot{fmt::format("plan_{}", mode),
            fmt::format("Predicted speed-up, {} scaling", mode),
            "GPUs",
            "speed-up",
            {},
            {}};
  for (const auto& [reduction, wire] : strategies_of(demand)) {
    ScheduleOptions options = demand.schedule;
    options.reduce = reduction;
    options.wire = wire;
    options.gpus = 1;
    const double alone = predict(machine, demand, demand.batch, options).images_per_second;
    PlotSeries& series = plot.series.emplace_back();
    series.label = strategy_name(reduction, wire);
    for (const int count : demand.counts) {
      options.gpus = count;
      const int rows = weak ? demand.batch : demand.batch / count;
      const SchedulePrediction predicted = predict(machine, demand, rows, options);
      const double speed_up = predicted.images_per_second / alone, efficiency = speed_up / count;
      const LinkLoad& link = busiest(predicted);
      table.rows.push_back({series.label, std::to_string(count), std::to_string(rows),
                            significant(predicted.images_per_second), percent(efficiency),
                            milliseconds(predicted.step_seconds),
                            milliseconds(predicted.gap_seconds),
                            milliseconds(predicted.exchange_seconds),
                            fmt::format("{}, {}", link.name, percent(link.busy))});
      report.results["scaling"].push_back({{"mode", mode},
                                           {"reduction", to_string(reduction)},
                                           {"grad_wire", to_string(wire)},
                                           {"devices", count},
                                           {"batch_each", rows},
                                           {"images_per_second", predicted.images_per_second},
                                           {"efficiency", efficiency},
                                           {"step_ms", 1e3 * predicted.step_seconds},
                                           {"gap_ms", 1e3 * predicted.gap_seconds},
                                           {"exchange_ms", 1e3 * predicted.exchange_seconds},
                                           {"busiest_link", link.name},
                                           {"busiest_share", link.busy}});
      series.points.push_back({static_cast<double>(count), speed_up, speed_up, speed_up});
    }
  }
  PlotSeries& ideal = plot.series.emplace_back();
  ideal.label = "ideal";
  ideal.ideal = true;
  for (const int count : demand.counts) {
    ideal.points.push_back({static_cast<double>(count), static_cast<double>(count), 0, 0});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

void add_input(const LinkMachine& machine, const LinkPlanDemand& demand, Report& report) {
  Table table{
      "Resident against fed", {"GPUs", "resident images/s", "fed images/s", "cost of input"}, {}};
  Plot plot{"plan_input", "Predicted images/s by input", "GPUs", "images/s", {}, {}};
  for (const int count : demand.counts) {
    ScheduleOptions options = demand.schedule;
    options.gpus = count;
    const double fed = predict(machine, demand, demand.batch, options).images_per_second;
    options.resident = true;
    const double resident = predict(machine, demand, demand.batch, options).images_per_second;
    table.rows.push_back({std::to_string(count), significant(resident), significant(fed),
                          percent(std::max(0.0, 1 - fed / resident))});
    report.results["input"].push_back({{"devices", count},
                                       {"resident_images_per_second", resident},
                                       {"fed_images_per_second", fed}});
    add_bar(plot, std::to_string(count), "resident", {0, resident, resident, resident});
    add_bar(plot, std::to_string(count), "fed", {0, fed, fed, fed});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

void add_slots(const LinkMachine& machine, const LinkPlanDemand& demand, Report& report) {
  Table table{fmt::format("Staging slots, {} GPUs", demand.counts.back()),
              {"slots", "images/s", "gap between steps ms"},
              {}};
  Plot plot{"plan_slots", "Predicted gap between steps", "staging slots", "ms", {}, {}};
  for (int slots = 0; slots <= kPlannedSlots; ++slots) {
    ScheduleOptions options = demand.schedule;
    options.slots = slots;
    const SchedulePrediction predicted = predict(machine, demand, demand.batch, options);
    const double gap_ms = 1e3 * predicted.gap_seconds;
    table.rows.push_back(
        {std::to_string(slots), significant(predicted.images_per_second), significant(gap_ms)});
    report.results["slots"].push_back(
        {{"slots", slots}, {"images_per_second", predicted.images_per_second}, {"gap_ms", gap_ms}});
    add_bar(plot, std::to_string(slots), "gap", {0, gap_ms, gap_ms, gap_ms});
  }
  report.tables.push_back(std::move(table));
  report.plots.push_back(std::move(plot));
}

// Returns the largest batch that every GPU has memory for; -1: not known.
int64_t largest_planned_batch(const LinkMachine& machine, const LinkPlanDemand& demand, CutOn cut) {
  int64_t memory = 0;
  for (int gpu = 0; gpu < demand.counts.back(); ++gpu) {
    const int64_t own = machine.gpus[gpu].memory_bytes;
    memory = gpu == 0 ? own : std::min(memory, own);
  }
  if (demand.net == nullptr || memory == 0) return -1;
  // Where the whole batch comes to a GPU, its slots hold all of it.
  const int parts = cut == CutOn::host ? 1 : demand.counts.back();
  return largest_gpu_batch(*demand.net, memory,
                           std::max(1, demand.schedule.slots) * parts * demand.row_bytes);
}

std::string both_ways(const LinkLoad& load) {
  return load.up_bytes > 0
             ? fmt::format("{} / {}", megabytes(load.down_bytes), megabytes(load.up_bytes))
             : megabytes(load.down_bytes);
}

void add_slices(const LinkMachine& machine, const LinkPlanDemand& demand, Report& report) {
  const int count = demand.counts.back();
  Table table{fmt::format("Where a batch is cut, {} GPUs", count),
              {"cut on", "images/s", "gap ms", "largest batch of each GPU"},
              {}};
  Table bytes{"Bytes over each link in a step, MB down / up", {"link"}, {}};
  Plot plot{
      "plan_slice", "Predicted images/s by where a batch is cut", "cut on", "images/s", {}, {}};
  for (const auto& [name, cut] : kCutOn) {
    ScheduleOptions options = demand.schedule;
    options.slice = cut;
    const SchedulePrediction predicted = predict(machine, demand, demand.batch, options);
    const int64_t largest = largest_planned_batch(machine, demand, cut);
    table.rows.push_back({name, significant(predicted.images_per_second),
                          milliseconds(predicted.gap_seconds),
                          largest < 0 ? "not known" : std::to_string(largest)});
    Json links = Json::array();
    bytes.columns.push_back(name);
    for (size_t i = 0; i < predicted.links.size(); ++i) {
      const LinkLoad& load = predicted.links[i];
      links.push_back({{"name", load.name},
                       {"down_bytes", load.down_bytes},
                       {"up_bytes", load.up_bytes},
                       {"busy", load.busy}});
      if (bytes.rows.size() == i) bytes.rows.push_back({load.name});
      bytes.rows[i].push_back(both_ways(load));
    }
    Json result = {{"place", name},
                   {"images_per_second", predicted.images_per_second},
                   {"gap_ms", 1e3 * predicted.gap_seconds}};
    if (largest >= 0) result["largest_batch"] = largest;
    result["links"] = std::move(links);
    report.results["slices"].push_back(std::move(result));
    add_bar(
        plot, name, "images/s",
        {0, predicted.images_per_second, predicted.images_per_second, predicted.images_per_second});
  }
  report.tables.push_back(std::move(table));
  report.tables.push_back(std::move(bytes));
  report.plots.push_back(std::move(plot));
}

// Multiply-adds of each node per image.
std::vector<double> costs_of(const NetSpec& net, const std::vector<TensorInfo>& tensors) {
  const std::vector<NodeShape> shapes = node_shapes(net);
  std::vector<double> costs(net.nodes.size(), 0);
  for (const TensorInfo& tensor : tensors) {
    if (tensor.kind != ParameterKind::conv_weight && tensor.kind != ParameterKind::linear_weight) {
      continue;
    }
    // Every weight takes part once in each pixel of the output.
    const NodeShape& shape = shapes[tensor.node];
    costs[tensor.node] += static_cast<double>(tensor.count) * shape.height * shape.width;
  }
  return costs;
}

}  // namespace

void add_link_plan(const LinkMachine& machine, const LinkPlanDemand& demand, Report& report) {
  check_demand(machine, demand);
  report.results["machine"] = to_json(machine);
  for (const bool weak : {true, false}) add_scaling_plan(machine, demand, weak, report);
  LinkPlanDemand most = demand;
  const auto [reduction, wire] = strategies_of(demand).front();
  most.schedule.gpus = demand.counts.back();
  most.schedule.reduce = reduction;
  most.schedule.wire = wire;
  add_input(machine, most, report);
  add_slots(machine, most, report);
  add_slices(machine, most, report);
  report.notes.push_back(fmt::format(
      "{}: {}.", machine.name, machine.source.empty() ? "figures of its file" : machine.source));
  report.notes.push_back(
      "The tables from weak scaling on are a simulation of the schedule on these links; nothing of "
      "them was measured. A step's time is taken to be in proportion to its batch.");
  report.notes.push_back(
      fmt::format("The tables of input, slots and the cut are of weak scaling with {}.",
                  strategy_name(reduction, wire)));
}

std::vector<BackwardPart> model_parts(const NetSpec& net, int64_t bucket_bytes) {
  if (bucket_bytes < 0) {
    throw std::invalid_argument(fmt::format("buckets of {} bytes", bucket_bytes));
  }
  const std::vector<TensorInfo> tensors = parameter_table(net);
  const std::vector<double> costs = costs_of(net, tensors);
  double all = 0;
  for (const double cost : costs) all += cost;
  std::vector<BackwardPart> parts;
  BackwardPart open{0, 0};
  int counted = static_cast<int>(net.nodes.size());  // the nodes from here on are in a part
  for (int t = static_cast<int>(tensors.size()) - 1; t >= 0; --t) {
    for (; counted > tensors[t].node; --counted) open.share += costs[counted - 1] / all;
    open.floats += tensors[t].count;
    const int64_t full = parts.empty() ? std::min(bucket_bytes, kFirstBucketBytes) : bucket_bytes;
    const bool is_full = bucket_bytes > 0 && open.floats * int64_t{sizeof(float)} >= full;
    if (t > 0 && !is_full) continue;
    parts.push_back(open);
    open = {0, 0};
  }
  return parts;
}

int64_t largest_gpu_batch(const NetSpec& net, int64_t memory_bytes, double slot_bytes_per_row) {
  EngineOptions options;
  options.precision = Precision::bf16;
  options.rows = options.micro_batch_size = 1;
  options.nominal_rows = 1;
  options.mean = options.stddev = {0.5f, 0.5f, 0.5f};
  return largest_device_batch(net, options, {}, memory_bytes,
                              static_cast<int64_t>(std::ceil(slot_bytes_per_row)), 1);
}

}  // namespace stoker
