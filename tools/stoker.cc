// The program: `stoker SUBCOMMAND [options]`.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tools/command/command.h"
#include "tools/machine/build_info.h"

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

// Returns an error if standard output could not be written in full.
int finish(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "stoker: standard output cannot be written: %s\n", std::strerror(errno));
  return code == kExitOk ? kExitFailed : code;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using namespace stoker;
  // A file size limit (ulimit -f) is an error with the path, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const char* name = argc > 1 ? argv[1] : "--help";
  for (const Command& command : commands()) {
    if (std::strcmp(command.name, name) == 0) {
      return finish(run_command(command, name, argc - 1, argv + 1));
    }
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
  if (argc > 1) {
    std::fprintf(stderr, "stoker: there is no subcommand '%s'%s (see stoker --help)\n", name,
                 closest_names(name, commands()).c_str());
    return kExitUsage;
  }
  print_usage(stderr);
  return kExitUsage;
}
