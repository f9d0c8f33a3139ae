// The parser of a subcommand's options, and its errors in the words of who wrote them.
//
// A config file has the same options, by their long names. What is on the command line goes first.
// A process parses one command line, on one thread: the state is global. Errors:
// std::invalid_argument with the option, which the command line has as "--batch".
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace stoker {

// Makes a parser with what every subcommand has: --help with `examples` below it, and --config
// FILE.toml, whose keys are the long option names. The command line takes precedence, and anything
// unknown is refused. A name of two words is a subcommand's subcommand.
std::unique_ptr<CLI::App> make_parser(const std::string& name, const std::string& description,
                                      const std::string& examples);

// Parses the command line and the config file into the parser's variables. Numbers must be finite,
// whole for an integer option, and in range. Returns an exit code if nothing is left to do because
// help was printed. Throws std::invalid_argument with the option and the value.
std::optional<int> parse_options(CLI::App& app, int argc, char** argv);

// Returns whether the option ("--batch") is on the command line or in the config file.
bool is_given(const CLI::App& app, const std::string& option);
// Refuses options that would be ignored: throws std::invalid_argument "--batch: WHY" if one is
// given.
void refuse_if_given(const CLI::App& app, std::initializer_list<const char*> options,
                     const std::string& why);

// Returns the message with options as the user wrote them: "FILE:LINE: batch" for one from the
// config file, --batch for the library's field batch_size (InvalidField).
std::string in_options(const std::invalid_argument& error);
// The same for what failed on the way, without files and lines.
std::string in_options(const std::string& message);

// Whether there is such a subcommand: {"train"}, {"bench", "feed"}. tools/command has the list.
bool is_command(const std::vector<std::string>& words);

// An option that has been renamed, or has become a part of another. The old name is refused, on the
// command line and in a config file, and the message says what to write now.
struct RenamedOption {
  const char* old_name;
  const char* now;         // the present name
  const char* value = "";  // an example of what to write there, if the value is another one
};

// Returns what the option that was called `old_name` ("comm-dtype") is now; null for any other
// name.
const RenamedOption* find_renamed(std::string_view old_name);

}  // namespace stoker
