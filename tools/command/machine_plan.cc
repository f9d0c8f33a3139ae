#include "tools/command/machine_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "staging/batch_layout.h"
#include "staging/error_text.h"

namespace stoker {
namespace {

// A machine is modelled up to so many devices, and rows in a batch of each.
constexpr int kMostDevices = 16;
constexpr int kMostRows = 1024;

// A feed that delivers this share of the demand delivers it.
constexpr double kDelivered = 0.99;

std::string gigabytes(double bytes_per_second) {
  return significant(1e-9 * bytes_per_second) + " GB/s";
}

std::string memory_text(int64_t bytes) {
  return significant(static_cast<double>(bytes) / (1 << 30)) + " GiB";
}

void check_feed_demand(const FeedCost& cost, const PlanDemand& demand) {
  if (demand.gpus < 1 || !(demand.rate > 0) || demand.batch < 1 || demand.ring_depth < 1 ||
      demand.slots < 0 || !(demand.headroom >= 0 && demand.headroom < 1)) {
    throw std::invalid_argument(fmt::format(
        "a plan for {} GPUs at {} images/s, batch {}, ring depth {}, {} slots, headroom {}: GPUs, "
        "rate, batch and ring depth are to be positive, headroom below 1",
        demand.gpus, demand.rate, demand.batch, demand.ring_depth, demand.slots, demand.headroom));
  }
  if (!(cost.cpu_ms > 0) || cost.size.width < 1 || cost.size.height < 1) {
    throw std::invalid_argument(fmt::format("a plan from {} ms per image of {} x {} pixels",
                                            cost.cpu_ms, cost.size.width, cost.size.height));
  }
}

BatchLayout layout_of(const FeedCost& cost, const PlanDemand& demand) {
  return BatchLayout({.rows = demand.batch, .height = cost.size.height, .width = cost.size.width});
}

}  // namespace

FeedCost feed_cost(const nlohmann::ordered_json& feed_report) {
  try {
    const auto& results = feed_report.at("results");
    FeedCost cost;
    cost.cpu_ms = results.at("cpu_ms_per_image");
    cost.cpu_ms_low = results.at("cpu_ms_per_image_low");
    cost.cpu_ms_high = results.at("cpu_ms_per_image_high");
    cost.sample_bytes = results.at("mean_sample_bytes");
    cost.worker_bytes = results.at("scratch_bytes_per_worker");
    cost.size = {results.at("image_size").at(0), results.at("image_size").at(1)};
    return cost;
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument("this is not what bench feed writes: " + error_text(error));
  }
}

FeedCost feed_cost(const MeasuredFeed& feed, double sample_bytes, Size size) {
  return {.cpu_ms = feed.cpu_ms,
          .cpu_ms_low = feed.cpu_ms_low,
          .cpu_ms_high = feed.cpu_ms_high,
          .sample_bytes = sample_bytes,
          .worker_bytes = feed.worker_bytes,
          .size = size};
}

FeedWhatIf even_feed(const FeedCost& cost, const PlanDemand& demand) {
  constexpr double kNothing = 1e-9;
  FeedShape shape;
  shape.rows = std::min(demand.batch, kMostRows);
  shape.ring_depth = demand.ring_depth;
  shape.slots = std::min(demand.slots, 3);
  RunMeasurements measured;
  measured.fill_cpu_s = {1e-3 * cost.cpu_ms};
  measured.copy_s = measured.hold_s = measured.rest_s = {kNothing};
  measured.samples_per_second = 1e3 / cost.cpu_ms;
  measured.busy_workers = measured.own_cores = 1;
  return FeedWhatIf(shape, measured, -1);
}

FeedChange demanded_devices(const PlanDemand& demand) {
  const int rows = std::min(demand.batch, kMostRows);
  return {
      .rows = rows, .devices = std::min(demand.gpus, kMostDevices), .step_s = rows / demand.rate};
}

namespace {

// With so many workers, each on a core of its own.
FeedWhatIf::Prediction with_workers(const FeedWhatIf& feed, const PlanDemand& demand, int workers) {
  FeedChange change = demanded_devices(demand);
  change.workers = workers - feed.shape().workers;
  change.cores = 2 * workers + 1;  // the feed's other threads have theirs
  change.undisturbed = true;
  return feed.predict(change);
}

// More workers than this many times the busy cores bring nothing.
constexpr int kMostTimes = 4;

// Returns the fewest workers, from `least` on, with which the demanded devices are fed, or as well
// as they can be.
int enough_workers(const FeedWhatIf& feed, const PlanDemand& demand, int least) {
  const auto rate = [&](int workers) {
    return with_workers(feed, demand, workers).samples_per_second;
  };
  const double demanded = demand.rate * std::min(demand.gpus, kMostDevices);
  const double wanted = kDelivered * std::min(demanded, rate(kMostTimes * least));
  int enough = least, too_few = least - 1;
  while (enough < kMostTimes * least && rate(enough) < wanted) {
    too_few = enough;
    enough += std::max(1, enough / 16);
  }
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (rate(middle) < wanted ? too_few : enough) = middle;
  }
  return enough;
}

}  // namespace

bool MachinePlan::feeds(const PlanDemand& demand) const {
  // Enough is kDelivered of what any number of workers delivers, which may be as little itself.
  return images_per_second >= kDelivered * kDelivered * demand.gpus * demand.rate;
}

MachinePlan plan_machine(const FeedCost& cost, const FeedWhatIf& feed, const PlanDemand& demand) {
  check_feed_demand(cost, demand);
  MachinePlan plan;
  const double images = demand.gpus * demand.rate;  // per second
  plan.busy_cores = 1e-3 * images * cost.cpu_ms;
  plan.busy_cores_low = 1e-3 * images * cost.cpu_ms_low;
  plan.busy_cores_high = 1e-3 * images * cost.cpu_ms_high;
  const double parts = std::max(1.0, static_cast<double>(demand.gpus) / kMostDevices);
  const int part = enough_workers(
      feed, demand, std::max(1, static_cast<int>(std::ceil(plan.busy_cores / parts))));
  const FeedWhatIf::Prediction fed = with_workers(feed, demand, part);
  plan.workers = static_cast<int>(std::ceil(part * parts));
  plan.images_per_second = fed.samples_per_second * parts;
  plan.waiting_share = fed.waiting_share;
  // All but one of the workers are busy; the last one may be a part.
  const double busy = std::max(plan.busy_cores, plan.workers - parts);
  plan.wanted_cores = busy / (1 - demand.headroom);
  plan.cores = static_cast<int>(std::ceil(plan.wanted_cores));

  const BatchLayout layout = layout_of(cost, demand);
  const auto slab = static_cast<int64_t>(layout.slab_bytes());
  plan.ring_bytes = demand.gpus * demand.ring_depth * slab;
  plan.worker_bytes = plan.workers * cost.worker_bytes;
  plan.slot_bytes = demand.slots * static_cast<int64_t>(layout.device_bytes());

  const double row_bytes = static_cast<double>(layout.device_bytes()) / demand.batch;
  plan.bus_bytes_per_second = demand.rate * row_bytes;
  plan.storage_bytes_per_second = images * cost.sample_bytes;
  plan.memory_bytes_per_second = 2 * images * (cost.sample_bytes + row_bytes);
  return plan;
}

Table plan_table(const MachinePlan& plan, const PlanDemand& demand) {
  Table table{fmt::format("{} GPUs at {:g} images/s each", demand.gpus, demand.rate),
              {"what", "needed", "from"},
              {}};
  const auto add = [&](const char* what, const std::string& needed, const std::string& from) {
    table.rows.push_back({what, needed, from});
  };
  add("cores like the measured ones", std::to_string(plan.cores),
      fmt::format("{} busy ({}–{}), {:.0f} % headroom", significant(plan.busy_cores),
                  significant(plan.busy_cores_low), significant(plan.busy_cores_high),
                  100 * demand.headroom));
  add("workers", std::to_string(plan.workers),
      fmt::format("the fewest that feed {}: modelled {} images/s, waiting {:.1f} %",
                  plan.feeds(demand) ? "them" : "as well as such a ring can",
                  significant(plan.images_per_second), 100 * plan.waiting_share));
  add("host memory, pinned", memory_text(plan.ring_bytes),
      fmt::format("{} x {} slabs of {} samples", demand.gpus, demand.ring_depth, demand.batch));
  add("host memory, workers", memory_text(plan.worker_bytes), "an upper bound of their scratch");
  add("memory of each GPU", memory_text(plan.slot_bytes), fmt::format("{} slots", demand.slots));
  add("bus to each GPU", gigabytes(plan.bus_bytes_per_second), "uint8 samples, labels, weights");
  add("bus, all GPUs", gigabytes(demand.gpus * plan.bus_bytes_per_second), "");
  add("storage", gigabytes(plan.storage_bytes_per_second), "if nothing is in the page cache");
  add("host memory bandwidth", gigabytes(plan.memory_bytes_per_second),
      "at least: files and samples, each written and read once");
  return table;
}

NodePlan plan_nodes(const FeedCost& cost, const PlanDemand& demand, const NodeDemand& nodes) {
  check_feed_demand(cost, demand);
  if (!(nodes.local_cores >= 0) || nodes.node_cores < 1 || !(nodes.link_gbit > 0)) {
    throw std::invalid_argument(
        fmt::format("a plan for {} cores, machines of {} cores more and links of {} Gbit/s: the "
                    "machines' cores and the links are to be positive",
                    nodes.local_cores, nodes.node_cores, nodes.link_gbit));
  }
  const double core_rate = 1e3 * (1 - demand.headroom) / cost.cpu_ms;
  const BatchLayout layout = layout_of(cost, demand);
  const double row_bytes = static_cast<double>(layout.slab_bytes()) / demand.batch;
  NodePlan plan;
  plan.local_rate = core_rate * nodes.local_cores;
  plan.remote_rate = std::max(0.0, demand.gpus * demand.rate - plan.local_rate);
  plan.link_rate = 1e9 / 8 * nodes.link_gbit / row_bytes;
  plan.node_rate = std::min(core_rate * nodes.node_cores, plan.link_rate);
  plan.link_limits_node = plan.node_rate < core_rate * nodes.node_cores;
  plan.nodes = static_cast<int>(std::ceil(plan.remote_rate / plan.node_rate));
  plan.bytes_per_second = plan.remote_rate * row_bytes;
  return plan;
}

Table node_table(const NodePlan& plan, const NodeDemand& nodes) {
  Table table{"With CPU nodes (stoker.ray)", {"what", "needed", "from"}, {}};
  table.rows.push_back({"images/s of the machine's own cores", significant(plan.local_rate),
                        fmt::format("{:g} cores, less headroom", nodes.local_cores)});
  table.rows.push_back({"images/s of CPU nodes", significant(plan.remote_rate), "the rest"});
  table.rows.push_back(
      {"CPU nodes", std::to_string(plan.nodes),
       fmt::format("{} cores each: {} images/s{}", nodes.node_cores, significant(plan.node_rate),
                   plan.link_limits_node ? ", which is what the link carries" : "")});
  table.rows.push_back(
      {"network into the machine", gigabytes(plan.bytes_per_second),
       fmt::format("a link of {:g} Gbit/s carries {} images/s{}", nodes.link_gbit,
                   significant(plan.link_rate), plan.link_suffices() ? "" : ": too few")});
  return table;
}

}  // namespace stoker
