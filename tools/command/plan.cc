// stoker plan: calculates the machine that a number of GPUs needs.
#include "bench/suite/plan.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <stdexcept>

#include "bench/suite/feed_bench.h"
#include "staging/allowed_cores.h"
#include "tools/command/bench_data.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"
#include "tools/machine/machine.h"

namespace stoker {
namespace {

nlohmann::ordered_json read_feed(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("--feed: " + path + " cannot be read");
  try {
    return nlohmann::ordered_json::parse(file);
  } catch (const nlohmann::json::parse_error& error) {
    throw std::invalid_argument(fmt::format("--feed: {}: {}", path, error.what()));
  }
}

// Measures the cost of an image here and now, with all cores.
nlohmann::ordered_json measure_feed(const BenchDataOptions& data, int batch, int repeats,
                                    const nlohmann::ordered_json& machine) {
  const BenchData feed(data);
  FeedBenchOptions options;
  options.augment = data.augment.spec(feed.source());
  options.decode = data.data.decode();
  options.io_threads = data.data.io_threads;
  options.workers = {usable_cores()};
  options.batches = {std::min(batch, 64)};  // a row costs the same in any batch
  options.repeats = repeats;
  Report report = bench_feed(feed.source(), options);
  report.machine = machine;
  report.settings["data"] = feed.describe();
  return to_json(report);
}

nlohmann::ordered_json results_of(const MachinePlan& plan, const FeedCost& cost) {
  return {{"cpu_ms_per_image", cost.cpu_ms},
          {"busy_cores", plan.busy_cores},
          {"cores", plan.cores},
          {"workers", plan.workers},
          {"ring_bytes", plan.ring_bytes},
          {"worker_bytes", plan.worker_bytes},
          {"slot_bytes_per_gpu", plan.slot_bytes},
          {"bus_bytes_per_second_per_gpu", plan.bus_bytes_per_second},
          {"storage_bytes_per_second", plan.storage_bytes_per_second},
          {"memory_bytes_per_second", plan.memory_bytes_per_second}};
}

// Refuses the options of the measurement, because with --feed nothing is measured.
void refuse_measuring(const CLI::App& app) {
  const std::set<std::string> plans = {"--help",  "--config",     "--gpus",  "--rate",
                                       "--batch", "--ring-depth", "--slots", "--headroom",
                                       "--feed",  "--out",        "--json"};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = "--" + option->get_lnames().front();
    if (plans.count(name) > 0) continue;
    refuse_if_given(app, {name.c_str()}, "with --feed nothing is measured here");
  }
}

}  // namespace

int run_plan(int argc, char** argv) {
  BenchDataOptions data;
  PlanDemand demand;
  std::string feed_file;
  int repeats = 7;
  auto app = make_parser(
      "plan",
      "Calculates the machine that a number of GPUs needs: cores, memory, bus, storage and memory\n"
      "bandwidth. It starts from what an image costs, which is measured here, with the cores and\n"
      "the data that there are, or read from the result of an earlier `stoker bench feed --out`.\n"
      "Other CPUs have other costs.",
      "  stoker plan --gpus 8 --rate 3000 --size 224 --data data/imagenette\n"
      "  stoker plan --gpus 8 --rate 3000 --feed results/feed.json\n");
  app->add_option("--gpus", demand.gpus, "Number of GPUs to feed")
      ->required()
      ->check(CLI::Range(1, 1 << 16));
  app->add_option("--rate", demand.rate, "Images/s that each GPU trains")
      ->required()
      ->check(CLI::PositiveNumber);
  app->add_option("--batch", demand.batch, "Samples of each GPU's batch")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--ring-depth", demand.ring_depth, "Batches that are decoded ahead, per GPU")
      ->check(CLI::Range(1, 1024));
  app->add_option("--slots", demand.slots, "Batches that are staged on a GPU")
      ->check(CLI::Range(0, 3));
  app->add_option("--headroom", demand.headroom,
                  "Share of the cores that is left to everything else")
      ->check(CLI::Range(0.0, 0.99));
  app->add_option("--feed", feed_file,
                  "feed.json to take the costs from (default: they are measured)");
  add_repeats_option(*app, repeats, "the measurement");
  add_bench_data_options(*app, data);
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (!feed_file.empty()) refuse_measuring(*app);

  output.begin("stoker plan", argc, argv);
  const nlohmann::ordered_json feed =
      feed_file.empty() ? measure_feed(data, demand.batch, repeats, output.machine())
                        : read_feed(feed_file);
  const FeedCost cost = feed_cost(feed);
  const MachinePlan plan = plan_machine(cost, demand);
  const int cores = feed.at("machine").value("cores_usable", 0);
  const double gpus_fed =
      demand.gpus * cores * (1 - demand.headroom) / plan.busy_cores;  // of the measured machine
  Report report;
  report.bench = "plan";
  report.settings = {{"gpus", demand.gpus},         {"rate", demand.rate},
                     {"batch", demand.batch},       {"ring_depth", demand.ring_depth},
                     {"slots", demand.slots},       {"headroom", demand.headroom},
                     {"feed", feed.at("settings")}, {"feed_machine", feed.at("machine")}};
  report.results = results_of(plan, cost);
  report.results["measured_machine_feeds_gpus"] = gpus_fed;
  report.tables.push_back(plan_table(plan, demand));
  report.notes = {
      fmt::format("From {} ms of one core per image of {} x {} px ({}–{}), measured on: {}.",
                  significant(cost.cpu_ms), cost.size.width, cost.size.height,
                  significant(cost.cpu_ms_low), significant(cost.cpu_ms_high),
                  machine_line(feed.at("machine"))),
      fmt::format("That machine's {} cores would feed {} such GPUs.", cores,
                  significant(gpus_fed, 2)),
      "Many cores cost more per image than few: memory bandwidth and clocks are shared. `stoker "
      "bench "
      "feed` shows the efficiency on this machine."};
  output.finish(std::move(report));
  return kExitOk;
}

}  // namespace stoker
