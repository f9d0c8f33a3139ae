// The program: `stoker SUBCOMMAND [options]`.

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "tools/build_info.h"
#include "tools/command.h"

namespace stoker {
namespace {

void print_usage(FILE* out) {
  std::fprintf(out,
               "stoker %s: keeps the devices that train convolutional networks fed\n\n"
               "Usage: stoker SUBCOMMAND [options]\n\nSubcommands:\n",
               kBuildVersion);
  for (const Command& command : commands()) {
    std::fprintf(out, "  %-12s %s\n", command.name, command.summary);
  }
  std::fputs(
      "\nExamples:\n"
      "  stoker make-shapes --out data/shapes --count 10000\n"
      "  stoker train --data data/shapes --model airnet --out runs/first\n"
      "  stoker eval --checkpoint runs/first --data data/shapes\n"
      "  stoker train --help\n"
      "\nstoker SUBCOMMAND --help says everything about one of them.\n",
      out);
}

int run_command(const Command& command, int argc, char** argv) {
  try {
    return command.run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "stoker %s: %s (see stoker %s --help)\n", command.name, error.what(),
                 command.name);
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker %s: %s\n", command.name, error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using namespace stoker;
  const char* name = argc > 1 ? argv[1] : "--help";
  for (const Command& command : commands()) {
    if (std::strcmp(command.name, name) == 0) return run_command(command, argc - 1, argv + 1);
  }
  if (std::strcmp(name, "--version") == 0) {
    std::printf("stoker %s\n", kBuildVersion);
    return kExitOk;
  }
  const bool asked = argc > 1 && (std::strcmp(name, "--help") == 0 || std::strcmp(name, "-h") == 0);
  if (asked) {
    print_usage(stdout);
    return kExitOk;
  }
  if (argc > 1) std::fprintf(stderr, "stoker: there is no subcommand '%s'\n\n", name);
  print_usage(stderr);
  return kExitUsage;
}
