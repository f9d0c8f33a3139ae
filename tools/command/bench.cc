// stoker bench SUB: picks the bench.
#include "tools/command/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "tools/command/command.h"

namespace stoker {
namespace {

constexpr std::array kBenches = {
    Command{"feed", "measures the feeder alone: CPU per image by stage, scaling over workers",
            run_bench_feed},
    Command{"emulate", "says how many A100s, H100s, ... this machine feeds; needs no GPU",
            run_bench_emulate},
    Command{"scaling", "trains on 1 to N devices: speed-up and efficiency", run_bench_scaling},
    Command{"links", "measures bandwidth between memory and devices, and what a batch costs",
            run_bench_links},
    Command{"depth", "compares 0 to 3 staging slots: the idle gap between steps", run_bench_depth},
    Command{"layout", "compares orders of a net's input: NHWC and NCHW", run_bench_layout},
    Command{"slice", "compares slicing a batch on the host and on the device", run_bench_slice},
    Command{"predict", "checks what stoker plan predicts on host devices with throttled links",
            run_bench_predict},
    Command{"convergence", "compares serial and parallel training over several seeds",
            run_bench_convergence},
    Command{"guard", "finds what has become slower than a stored result of the same processor",
            run_bench_guard},
    Command{"compare", "says whether one result is better or worse than another, beyond noise",
            run_bench_compare},
};

std::string usage() {
  std::string text =
      "Measures, and names the machine and its load. Every figure has its repeats and an "
      "interval.\n"
      "It is printed as a table, and written with --out DIR as JSON, Markdown and SVG.\n\nUsage: "
      "stoker bench SUBCOMMAND [options]\n\n"
      "Subcommands:\n";
  for (const Command& bench : kBenches)
    text += fmt::format("  {:<11} {}\n", bench.name, bench.summary);
  return text +
         "\nExamples:\n"
         "  stoker bench feed --data data/imagenette --out before\n"
         "  stoker bench emulate --accel h100 --n 1..8 --data data/imagenette\n"
         "  stoker bench compare before/feed.json after/feed.json\n"
         "\nstoker bench SUBCOMMAND --help says everything about one of them.\n";
}

}  // namespace

bool is_bench(const std::string& name) {
  return std::any_of(kBenches.begin(), kBenches.end(),
                     [&](const Command& bench) { return bench.name == name; });
}

int run_bench(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  for (const Command& bench : kBenches) {
    if (name == bench.name) return run_command(bench, "bench " + name, argc - 1, argv + 1);
  }
  if (name == "--help" || name == "-h") {
    fmt::print("{}", usage());
    return kExitOk;
  }
  if (!name.empty())
    throw std::invalid_argument("there is no bench '" + name + "'" + closest_names(name, kBenches));
  fmt::print(stderr, "{}", usage());
  return kExitUsage;
}

}  // namespace stoker
