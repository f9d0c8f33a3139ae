#include "tools/command.h"

#include <cstdio>
#include <stdexcept>

namespace stoker {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 found something (bad files, a difference); 2 wrong options or data "
    "path;\n"
    "3 failed on the way; 128 + signal when interrupted.";

}  // namespace

std::unique_ptr<CLI::App> make_parser(const std::string& name, const std::string& description,
                                      const std::string& examples) {
  auto app = std::make_unique<CLI::App>(description, "stoker " + name);
  app->footer("Examples:\n" + examples + "\n" + kFooter);
  app->set_config("--config", "", "Read options from a TOML file: long option names as keys");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  app->get_formatter()->column_width(34);
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
    throw std::invalid_argument("--config " + app.get_config_ptr()->as<std::string>() + ": " +
                                error.what());
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(error.what());
  }
}

}  // namespace stoker
