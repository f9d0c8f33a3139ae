#include "tools/command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <limits>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tools/help_formatter.h"

namespace stoker {
namespace {

constexpr std::array kCommands = {
    Command{"train", "train a model on a folder of images or CIFAR's binary files", run_train},
    Command{"eval", "top-1 and top-5 of a checkpoint, every sample once", run_eval},
    Command{"peek", "draw a contact sheet of what the model sees", run_peek},
    Command{"dump", "write batches as .npy files, with where every row came from", run_dump},
    Command{"profile", "say which stage starves the device, and what would cure it", run_profile},
    Command{"top", "watch a training that runs in another terminal", run_top},
    Command{"check", "decode everything and list the bad files", run_check},
    Command{"index", "make seek indexes, with which JPEG files are decoded faster", run_index},
    Command{"bench", "measure the feed, emulated accelerators, scaling, links; compare two runs",
            run_bench},
    Command{"plan", "the cores, memory and bandwidth that feed so many GPUs", run_plan},
    Command{"info", "what this build and this machine have", run_info},
    Command{"make-shapes", "draw a data set of ten classes of shapes", run_make_shapes},
    Command{"receipt", "compare what two runs were fed", run_receipt},
};

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 found something (bad files, a difference); 2 wrong options or data "
    "path;\n"
    "3 failed on the way; 128 + signal when interrupted.";

bool is_command(const std::string& name) {
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [&](const Command& command) { return command.name == name; });
}

// "bench feed": bench, feed.
std::vector<std::string> words_of(const std::string& name) {
  std::istringstream stream(name);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Lets one file hold options of several subcommands, in sections: [train], [bench.feed].
class SectionedConfig final : public CLI::ConfigBase {
 public:
  explicit SectionedConfig(const std::string& command) : command_(words_of(command)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> kept;
    for (CLI::ConfigItem& item : CLI::ConfigBase::from_config(input)) {
      const std::string section = item.parents.empty() ? "" : item.parents.front();
      const bool edge = item.name == "++" || item.name == "--";  // of a section
      const bool ours = item.parents.size() >= command_.size() &&
                        std::equal(command_.begin(), command_.end(), item.parents.begin());
      if (is_command(section) && (edge || !ours)) continue;
      if (ours)
        item.parents.erase(item.parents.begin(), item.parents.begin() + std::ssize(command_));
      kept.push_back(std::move(item));
    }
    return kept;
  }

 private:
  const std::vector<std::string> command_;
};

// Ranges as a person writes them. CLI11 prints all bounds as std::to_string does, the largest
// double too: 309 digits.
std::string plain_range(std::string what) {
  if (what.find(" not in range ") == std::string::npos) return what;
  const std::string no_bound = " to " + std::to_string(std::numeric_limits<double>::max());
  if (const size_t at = what.find(no_bound); at != std::string::npos) {
    what.replace(at, no_bound.size(), " or more");
  }
  return std::regex_replace(what, std::regex("(\\.[0-9]*[1-9])0+\\b|\\.0+\\b"), "$1");
}

std::string section_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '.');
  return name;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::unique_ptr<CLI::App> make_parser(const std::string& name, const std::string& description,
                                      const std::string& examples) {
  auto app = std::make_unique<CLI::App>(description, "stoker " + name);
  app->formatter(std::make_shared<HelpFormatter>());
  app->footer("Examples:\n" + examples + "\n" + kFooter);
  app->set_config("--config", "",
                  "Read options from this TOML file: long option names as keys, at its top or in a "
                  "section [" +
                      section_name(name) + "]; the command line goes first");
  app->config_formatter(std::make_shared<SectionedConfig>(name));
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  return app;
}

std::optional<int> parse_options(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs((app.help() + "\n").c_str(), stdout);
    return kExitOk;
  } catch (const CLI::ConfigError& error) {
    std::string what = error.what();
    const std::string unknown = "INI was not able to parse ";  // what CLI11 says
    if (what.rfind(unknown, 0) == 0) what = "unknown key " + what.substr(unknown.size());
    throw std::invalid_argument("--config " + app.get_config_ptr()->as<std::string>() + ": " +
                                what);
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(plain_range(error.what()));
  }
}

int run_command(const Command& command, const std::string& name, int argc, char** argv) {
  try {
    return command.run(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "stoker %s: %s (see stoker %s --help)\n", name.c_str(), error.what(),
                 name.c_str());
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker %s: %s\n", name.c_str(), error.what());
    return kExitFailed;
  }
}

}  // namespace stoker
