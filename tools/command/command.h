// The subcommands of the `stoker` program. This is the main header of tools/.
//
// main() (stoker.cc) picks a subcommand by its name. Each subcommand is one file with one run_*
// function, which owns its options, prints its results to stdout and everything else to stderr, and
// returns an exit code for scripts. Errors: a run function throws, and run_command() prints one
// line. std::invalid_argument means that the request makes no sense (kExitUsage), any other
// exception that something failed on the way (kExitFailed). Messages name options as on the command
// line, --batch, or as the library does, batch_size: option/parser.h makes them those of the user.
#pragma once

#include <span>
#include <string>

#include "tools/option/parser.h"

namespace stoker {

enum ExitCode : int {
  kExitOk = 0,
  kExitFound = 1,    // it ran, and found what it looks for: bad files, a difference
  kExitUsage = 2,    // an unknown option, a value out of range, a path with no data
  kExitFailed = 3,   // it began, and failed: a full disk, too many bad samples, a loss of NaN
  kExitSignal = 128  // + the signal's number: interrupted, and what was done is saved
};

struct Command {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

std::span<const Command> commands();  // all of them, in the order of the help

// Runs the command and returns its exit code; prints one line if it throws. `name` is what the user
// called, such as "bench feed".
int run_command(const Command& command, const std::string& name, int argc, char** argv);

int run_augment(int argc, char** argv);
int run_train(int argc, char** argv);
int run_eval(int argc, char** argv);
int run_export(int argc, char** argv);
int run_peek(int argc, char** argv);
int run_dump(int argc, char** argv);
int run_check(int argc, char** argv);
int run_index(int argc, char** argv);
int run_pack(int argc, char** argv);
int run_profile(int argc, char** argv);
int run_top(int argc, char** argv);
int run_info(int argc, char** argv);
int run_make_shapes(int argc, char** argv);
int run_receipt(int argc, char** argv);
int run_rewind(int argc, char** argv);
int run_bench(int argc, char** argv);  // bench.h lists its subcommands
int run_plan(int argc, char** argv);

// Returns "; did you mean A or B?" with the names that are closest to a mistyped one, or "".
std::string closest_names(const std::string& wrong, std::span<const Command> commands);

}  // namespace stoker
