// tools: the `stoker` program. This is the folder's door.
//
// main() (stoker.cc) picks a subcommand by its name; each subcommand is one file with one run_*
// function that owns its options, prints to stdout what was asked for and to stderr everything
// else, and returns an exit code that scripts can use. Errors: a run function throws; run_command()
// prints one line. std::invalid_argument means that what was asked for makes no sense (kExitUsage),
// any other exception that something failed on the way (kExitFailed). Messages name an option as
// the command line has it, --batch; run_command() says "FILE:LINE: batch" of one that came from the
// config file, and --batch for a field batch_size of the library (InvalidField).
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

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

// Runs it, prints the one line where it throws, and gives the exit code. `name` is as it is called,
// "bench feed".
int run_command(const Command& command, const std::string& name, int argc, char** argv);

int run_train(int argc, char** argv);
int run_eval(int argc, char** argv);
int run_peek(int argc, char** argv);
int run_dump(int argc, char** argv);
int run_check(int argc, char** argv);
int run_index(int argc, char** argv);
int run_profile(int argc, char** argv);
int run_top(int argc, char** argv);
int run_info(int argc, char** argv);
int run_make_shapes(int argc, char** argv);
int run_receipt(int argc, char** argv);
int run_bench(int argc, char** argv);  // bench.h has its own subcommands
int run_plan(int argc, char** argv);

// A parser with what every subcommand has: --help with `examples` below it, --config FILE.toml
// whose keys are the long option names, the command line's values going first, nothing unknown
// accepted. A name of two words is a subcommand's subcommand.
std::unique_ptr<CLI::App> make_parser(const std::string& name, const std::string& description,
                                      const std::string& examples);

// Fills the parser's variables. Numbers are finite and whole where they must be, and not out of
// range. An exit code if that is all there is to do: help was printed.
// Throws std::invalid_argument with the option and the value.
std::optional<int> parse_options(CLI::App& app, int argc, char** argv);

// Was this option ("--batch") on the command line or in the config file?
bool is_given(const CLI::App& app, const std::string& option);
// For options that would be ignored. Throws std::invalid_argument: "--batch: WHY".
void refuse_if_given(const CLI::App& app, std::initializer_list<const char*> options,
                     const std::string& why);

}  // namespace stoker
