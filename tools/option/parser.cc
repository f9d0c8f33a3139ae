#include "tools/option/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "pipeline/files/invalid_field.h"
#include "pipeline/store/object_store.h"
#include "tools/option/config_file.h"

namespace stoker {
namespace {

constexpr RenamedOption kRenamed[] = {
    {"comm-dtype", "grad-wire"},
    {"rows", "batch"},
    {"build-seek-index", "seek-index", "auto"},
    {"rows-per-shard", "micro-batch"},
    {"crop", "augment", "random_resized_crop | flip"},
    {"flip", "augment", "random_resized_crop | flip(alternating=True)"},
    {"filter", "augment", "random_resized_crop(filter=bicubic)"},
    {"scale-min", "augment", "random_resized_crop(scale=(0.35, 1))"},
    {"scale-max", "augment", "random_resized_crop(scale=(0.08, 0.9))"},
    {"ratio-min", "augment", "random_resized_crop(ratio=(0.5, 1.5))"},
    {"ratio-max", "augment", "random_resized_crop(ratio=(0.5, 1.5))"},
    {"resize-short", "augment", "resize_center_crop(256)"},
    {"pad", "augment", "resize | random_crop(padding=4)"},
    {"pad-mode", "augment", "resize | random_crop(padding=4, mode=reflect)"},
    {"cutout", "augment", "random_resized_crop | flip | cutout(8)"},
    {"brightness", "augment", "random_resized_crop | flip | color_jitter(brightness=0.4)"},
    {"contrast", "augment", "random_resized_crop | flip | color_jitter(contrast=0.4)"},
    {"saturation", "augment", "random_resized_crop | flip | color_jitter(saturation=0.4)"},
    {"hue", "augment", "random_resized_crop | flip | color_jitter(hue=0.1)"},
    {"mixup", "augment", "random_resized_crop | flip | mix(mixup=0.2)"},
    {"cutmix", "augment", "random_resized_crop | flip | mix(cutmix=1)"},
};

constexpr size_t kHelpWidth = 100;
constexpr size_t kColumn = 34;  // where the right side begins

std::string wrapped(const std::string& text, size_t width) {
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

// Returns "1 to 1024" for "INT:INT in [1 - 1024]", and "" for a type without a range.
std::string range_of(const std::string& type) {
  if (type.find(":NONNEGATIVE") != std::string::npos) return "0 or more";
  const std::string begin = " in [";
  const size_t at = type.find(begin);
  if (at == std::string::npos) return "";
  const size_t first = at + begin.size(), minus = type.find(" - ", first);
  const size_t end = type.find(']', first);
  return type.substr(first, minus - first) + " to " + type.substr(minus + 3, end - minus - 3);
}

// Lays --help out: "--name VALUE" or "--name {choices}" on the left; the meaning, the default and
// the range on the right, broken into lines that fit 100 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kColumn); }
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return CLI::Formatter::make_description(app) + "\n";
}

// CLI11 prints "INT:INT in [0 - 9]" or "TEXT:{a,b}"; this prints only the type, or the choices.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  const std::string type = option->get_type_name();
  const size_t colon = type.find(':');
  if (colon != std::string::npos && type.compare(colon + 1, 1, "{") == 0) {
    return " " + type.substr(colon + 1);
  }
  const std::string base = type.substr(0, colon);
  return " " + (base == "UINT" ? "INT" : base);
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) text += " (required)";
  std::string facts = range_of(option->get_type_name());
  const std::string value = option->get_default_str();
  if (option->get_type_size() != 0 && !value.empty()) {
    facts = "default: " + value + (facts.empty() ? "" : "; " + facts);
  }
  if (!facts.empty()) text += " (" + facts + ")";
  return wrapped(text, kHelpWidth - kColumn);
}

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 found something (bad files, a difference); 2 wrong options or data "
    "path;\n"
    "3 failed on the way; 128 + signal when interrupted.";

// Splits "bench feed" into "bench" and "feed".
std::vector<std::string> words_of(const std::string& name) {
  std::istringstream stream(name);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Options that are known and options from the config file. Global, because a process parses only
// one command line.
struct Given {
  std::set<std::string> options;         // long names of the parser's options: "batch"
  std::set<std::string> given;           // those of them that are given
  std::string config;                    // the config file's path
  std::map<std::string, int> from_file;  // options from the config file, and their lines
};
Given g_given;

// Options whose library field has a different name, by field. Fields that differ only in their
// dashes are not listed.
const std::map<std::string, std::string> kOptionsOfFields = {
    {"average.decay", "ema"},
    {"batch_size", "batch"},
    {"beta1", "betas"},
    {"beta2", "betas"},
    {"bucket_bytes", "bucket-mib"},
    {"decode.max_pixels", "max-pixels"},
    {"eval_every_epochs", "eval-every"},
    {"eval_views", "views"},
    {"first_epoch_offset", "epoch"},
    {"keep_checkpoints", "keep"},
    {"learning_rate", "lr"},
    {"micro_batch_size", "micro-batch"},
    {"pictures_from", "picture-from"},
    {"rate_factors", "lr-factors"},
    {"resident_bytes", "resident-mib"},
    {"store.cache", "cache"},
    {"targets_from", "target-from"},
    {"varying.max_bytes", "max-target-bytes"},
};

// Returns "--batch" for batch_size, or the field itself if there is no such option.
std::string option_of(const std::string& field) {
  const auto known = kOptionsOfFields.find(field);
  std::string name = known != kOptionsOfFields.end() ? known->second : field;
  std::replace(name.begin(), name.end(), '_', '-');
  return g_given.options.count(name) > 0 ? "--" + name : field;
}

// Returns the error's message with option names instead of the field and of other fields that the
// message names in backquotes.
std::string of_field(const InvalidField& error) {
  const std::string name = option_of(error.field());
  if (name == error.field()) return error.what();
  std::string text = name + error.problem();
  for (size_t begin; (begin = text.find('`')) != std::string::npos;) {
    const size_t end = text.find('`', begin + 1);
    if (end == std::string::npos) break;
    const std::string other = option_of(text.substr(begin + 1, end - begin - 1));
    text.replace(begin, end - begin + 1, other);
  }
  return text;
}

// Returns the text with options in place of the fields that it names in backquotes. What else is in
// backquotes is a command, and stays.
std::string with_options(std::string text) {
  static const std::regex kField("`([a-z_.0-9]+)`");
  std::string written;
  std::smatch match;
  while (std::regex_search(text, match, kField)) {
    const std::string option = option_of(match[1]);
    const bool is_option = option != match[1].str();
    written += match.prefix().str() + (is_option ? option : match[0].str());
    text = match.suffix();
  }
  return written + text;
}

// Libraries begin their messages with what they were given: "devices: ...". Where that is an option
// which is given, this puts the dashes before it.
std::string with_dashes(const std::string& message) {
  const std::string name = message.substr(0, message.find(": "));
  return g_given.given.count(name) > 0 ? std::string("--").append(message) : message;
}

// Messages name options as on the command line. For an option from the config file, this removes
// the dashes and puts the file and the line before the message.
std::string as_given(std::string message) {
  message = with_options(std::move(message));
  static const std::regex kOption("--([A-Za-z][A-Za-z0-9-]*)");
  std::string written, where;
  std::smatch match;
  while (std::regex_search(message, match, kOption)) {
    const auto from_file = g_given.from_file.find(match[1]);
    const bool in_file = from_file != g_given.from_file.end();
    written += match.prefix().str() + (in_file ? match[1] : match[0]).str();
    if (in_file && where.empty()) {
      where = g_given.config + ":" + std::to_string(from_file->second) + ": ";
    }
    message = match.suffix();
  }
  return where + written + message;
}

// Reads --config with read_config(). One file may hold the options of several subcommands in
// sections: [train], [bench.feed]. A section takes precedence over the top of the file, and the
// command line over both.
class SectionedConfig final : public CLI::ConfigBase {
 public:
  SectionedConfig(const std::string& command, const CLI::App& app)
      : command_(words_of(command)), app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    g_given.config = app_.get_config_ptr()->as<std::string>();
    const ConfigText config = read_config(input, g_given.config);
    for (const ConfigSection& section : config.sections) check_section(section);
    for (const ConfigEntry& entry : config.entries) {  // train.seed = 1 needs no [train]
      if (!entry.section.empty()) check_section({entry.section, entry.line});
    }
    std::vector<CLI::ConfigItem> kept;
    for (const bool in_section : {true, false}) {
      for (const ConfigEntry& entry : config.entries) {
        if (in_section ? entry.section == command_ : entry.section.empty()) add(entry, kept);
      }
    }
    return kept;
  }

 private:
  void check_section(const ConfigSection& section) const {
    const std::vector<std::string>& name = section.name;
    if (is_command(name)) return;
    std::string words;
    for (const std::string& word : name) words += (words.empty() ? "" : " ") + word;
    refuse_config(g_given.config, section.line, "there is no subcommand '" + words + "'");
  }

  void add(const ConfigEntry& entry, std::vector<CLI::ConfigItem>& kept) const {
    const auto refuse = [&](const std::string& why) {
      refuse_config(g_given.config, entry.line, why);
    };
    const CLI::Option* option = app_.get_option_no_throw("--" + entry.key);
    // A positional argument, such as RUNDIR.
    if (option == nullptr) option = app_.get_option_no_throw(entry.key);
    const RenamedOption* const now = find_renamed(entry.key);
    if (option == nullptr && now && app_.get_option_no_throw(std::string("--") + now->now)) {
      const std::string value = *now->value ? std::string(" = '") + now->value + "'" : "";
      refuse(entry.key + " is now " + now->now + value);
    }
    if (option == nullptr || !option->get_configurable() || entry.key[0] == '-') {
      refuse("unknown key " + entry.key);
    }
    const bool flag = option->get_expected_min() == 0;
    const bool boolean = entry.kind == ConfigEntry::Kind::boolean;
    if (flag && (entry.is_list || !boolean)) refuse(entry.key + " is true or false");
    if (entry.is_list && option->get_items_expected_max() <= 1) {
      refuse(entry.key + " takes one value, not a list");
    }
    if (!flag && boolean) refuse(entry.key + " takes a value, not " + entry.values[0]);
    if (entry.values.empty()) refuse(entry.key + ": the list is empty");
    const bool given = option->count() > 0 || g_given.from_file.count(entry.key) > 0;
    if (given) return;
    g_given.from_file.emplace(entry.key, entry.line);
    CLI::ConfigItem item;
    item.name = entry.key;
    item.inputs = entry.values;
    kept.push_back(std::move(item));
  }

  const std::vector<std::string> command_;
  const CLI::App& app_;
};

// Returns why the text is not a valid number, or "". CLI11 alone reads numbers as strtoull() and
// strtod() do: -1 as 2^64 - 1, 010 as 8, a number that is too large as the largest one, and nan as
// inside every range.
std::string check_number(const std::string& type, const std::string& text) {
  errno = 0;
  char* end = nullptr;
  if (type == "FLOAT") {
    const double value = std::strtod(text.c_str(), &end);
    const bool good = !text.empty() && *end == '\0' && std::isfinite(value);
    return good ? "" : "'" + text + "' is not a finite number";
  }
  static const std::regex kWhole("[+-]?(0|[1-9][0-9]*)");
  if (!std::regex_match(text, kWhole))
    return "'" + text + "' is not a whole number, written 12 or -12";
  if (type == "UINT") {
    if (text[0] == '-') return text + " is negative";
    std::strtoull(text.c_str(), &end, 10);
  } else {
    std::strtoll(text.c_str(), &end, 10);
  }
  return errno == ERANGE ? text + " is out of range" : "";
}

// Adds check_number() to every option that takes numbers.
void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string name = option->get_type_name(), type = name.substr(0, name.find(':'));
    if (type != "FLOAT" && type != "INT" && type != "UINT") continue;
    option->check([type](const std::string& text) { return check_number(type, text); });
  }
}

// Makes a range error readable: CLI11 prints bounds with std::to_string(), the largest double with
// all of its 309 digits.
std::string plain_range(std::string what) {
  if (what.find(" not in range ") == std::string::npos) return what;
  const std::string no_bound = " to " + std::to_string(std::numeric_limits<double>::max());
  if (const size_t at = what.find(no_bound); at != std::string::npos) {
    what.replace(at, no_bound.size(), " or more");
  }
  return std::regex_replace(what, std::regex("(\\.[0-9]*[1-9])0+\\b|\\.0+\\b"), "$1");
}

// Throws if an option was renamed. What follows -- belongs to another command.
void refuse_old_names(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (word.rfind("--", 0) != 0) continue;
    const std::string old_name = word.substr(2, word.find('=') - 2);
    const RenamedOption* const now = find_renamed(old_name);
    if (!now || app.get_option_no_throw(std::string("--") + now->now) == nullptr) continue;
    const std::string value = *now->value ? std::string(" \"") + now->value + "\"" : "";
    throw std::invalid_argument("--" + old_name + " is now --" + now->now + value);
  }
}

// The parser's messages repeat words of the command line, and what stands behind their "=".
std::string without_secrets(std::string text, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    for (const std::string& part : {word, word.substr(word.find('=') + 1)}) {
      const std::string shown = shown_word(part);
      if (shown == part) continue;
      for (size_t at; (at = text.find(part)) != std::string::npos;) {
        text.replace(at, part.size(), shown);
      }
    }
  }
  return text;
}

std::string section_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '.');
  return name;
}

}  // namespace

const RenamedOption* find_renamed(std::string_view old_name) {
  for (const RenamedOption& option : kRenamed) {
    if (old_name == option.old_name) return &option;
  }
  return nullptr;
}

std::unique_ptr<CLI::App> make_parser(const std::string& name, const std::string& description,
                                      const std::string& examples) {
  auto app = std::make_unique<CLI::App>(description, "stoker " + name);
  app->formatter(std::make_shared<HelpFormatter>());
  app->footer("Examples:\n" + examples + "\n" + kFooter);
  app->set_config(
      "--config", "",
      "TOML file to read options from: long option names as keys, at its top or in a section [" +
          section_name(name) + "]; values on the command line go first");
  app->config_formatter(std::make_shared<SectionedConfig>(name, *app));
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->option_defaults()->always_capture_default()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
  return app;
}

std::optional<int> parse_options(CLI::App& app, int argc, char** argv) {
  g_given = {};
  for (const CLI::Option* option : app.get_options()) {
    g_given.options.insert(option->get_lnames().begin(), option->get_lnames().end());
  }
  refuse_old_names(app, argc, argv);
  check_numbers(app);
  try {
    app.parse(argc, argv);
    for (const std::string& option : g_given.options) {
      if (is_given(app, "--" + option)) g_given.given.insert(option);
    }
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs((app.help() + "\n").c_str(), stdout);
    return 0;
  } catch (const CLI::FileError& error) {
    throw std::invalid_argument(std::string("--config: ") + error.what());
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(plain_range(without_secrets(error.what(), argc, argv)));
  }
}

bool is_given(const CLI::App& app, const std::string& option) {
  return app.get_option(option)->count() > 0;
}

void refuse_if_given(const CLI::App& app, std::initializer_list<const char*> options,
                     const std::string& why) {
  for (const char* option : options) {
    if (is_given(app, option)) throw std::invalid_argument(option + (": " + why));
  }
}

std::string in_options(const std::invalid_argument& error) {
  const auto* const field = dynamic_cast<const InvalidField*>(&error);
  return as_given(field ? of_field(*field) : with_dashes(error.what()));
}

std::string in_options(const std::string& message) { return with_options(with_dashes(message)); }

}  // namespace stoker
