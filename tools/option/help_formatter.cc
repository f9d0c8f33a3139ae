#include "tools/option/help_formatter.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

namespace stoker {
namespace {

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

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  return std::make_shared<HelpFormatter>();
}

}  // namespace stoker
