// stoker bench links: bandwidth between memory and devices, and the machine's topology.
#include <CLI/CLI.hpp>

#include "bench/suite/links_bench.h"
#include "tools/command/bench.h"
#include "tools/command/bench_output.h"
#include "tools/command/command.h"
#include "tools/machine/numa_nodes.h"
#include "train/run/replica.h"

namespace stoker {
namespace {

// Lists NUMA nodes and GPUs with their links, as reported by the system and NVML.
Table topology(const nlohmann::ordered_json& machine) {
  Table table{"Topology", {"what", "NUMA node", "is"}, {}};
  for (const NumaNode& node : numa_nodes()) {
    table.rows.push_back(
        {"memory", std::to_string(node.id), std::to_string(node.cpus.size()) + " CPUs beside it"});
  }
  for (const auto& gpu : machine["gpus"]) {
    const int node = gpu["numa_node"];
    table.rows.push_back(
        {gpu["name"], node < 0 ? "unknown" : std::to_string(node),
         gpu["model"].get<std::string>() + ", " + gpu["links"].get<std::string>()});
  }
  return table;
}

}  // namespace

int run_bench_links(int argc, char** argv) {
  LinksOptions options;
  std::string devices = "cpu:1";
  int mib = 64;
  auto app = make_parser(
      "bench links",
      "Measures bandwidth: of the host's memory by NUMA node, from and to each device with pinned\n"
      "and pageable memory, inside each device, and between devices. Calculates from it what a\n"
      "batch and a model's gradient cost.",
      "  stoker bench links\n"
      "  stoker bench links --devices cuda:all --models resnet50,resnet18 --batch 256 --size "
      "224\n");
  app->add_option("--devices", devices, "The devices to measure: cpu:1, cuda:all or cuda:0,1");
  app->add_option("--mib", mib, "Size of one copy, MiB")->check(CLI::Range(1, 1 << 20));
  app->add_option("--batch", options.batch, "Samples of the batch whose cost is calculated")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--size", options.size, "Width and height of its samples, pixels")
      ->check(CLI::Range(1, 1 << 14));
  app->add_option("--models", options.models, "Models whose gradients' cost is calculated, a list")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_repeats_option(*app, options.repeats, "every copy");
  BenchOutput output(*app);
  if (const auto code = parse_options(*app, argc, argv)) return *code;

  options.devices = parse_devices(devices);
  options.bytes = int64_t{mib} << 20;
  output.begin("stoker bench links", argc, argv);
  Report report = bench_links(options);
  report.tables.insert(report.tables.begin(), topology(output.machine()));
  output.finish(std::move(report));
  return kExitOk;
}

}  // namespace stoker
