// stoker top: watches a training in another process, by the run's folder.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/command/command.h"
#include "tools/console/interrupt.h"
#include "tools/live/view.h"
#include "tools/machine/load.h"

namespace stoker {
namespace {

constexpr double kStaleSeconds = 10;  // without news; then the run counts as gone
constexpr auto kTopLook = std::chrono::milliseconds(200);

// Shows the run until it ends, has not been heard of for kStaleSeconds, or `stop` is set.
int follow(const std::string& folder, const std::atomic<bool>& stop) {
  LiveView view(stdout);
  double shown = 0;
  for (;;) {
    const LiveStatus status = read_live_status(folder);
    if (status.unix_seconds != shown) view.show(status);
    shown = status.unix_seconds;
    if (status.ended || stop.load()) return kExitOk;
    const double silent = clock_seconds(CLOCK_REALTIME) - status.unix_seconds;
    if (silent > kStaleSeconds) {
      fmt::print(stderr, "stoker: no news from process {} for {:.0f} s\n", status.process, silent);
      return kExitFound;
    }
    std::this_thread::sleep_for(kTopLook);
  }
}

}  // namespace

int run_top(int argc, char** argv) {
  std::string folder;
  bool once = false;
  auto app =
      make_parser("top",
                  "Shows a `stoker train` that runs in another terminal: progress, speed, who "
                  "is busy, the ring, GPUs.\nIt reads live.json in the run's folder, and "
                  "ends with the run. The exit code is 1 if the file\nwas not renewed for "
                  "10 s.",
                  "  stoker top runs/first\n"
                  "  stoker top runs/first --once\n");
  app->add_option("RUNDIR", folder, "The folder that the training has as --out")->required();
  app->add_flag("--once", once, "Show the figures once and end");
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  if (once) {
    for (const std::string& line : live_lines(read_live_status(folder))) fmt::print("{}\n", line);
    return kExitOk;
  }
  std::atomic<bool> stop{false};
  const Interrupt interrupt([](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); },
                            &stop, "\n");
  return follow(folder, stop);
}

}  // namespace stoker
