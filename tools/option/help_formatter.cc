#include "tools/option/help_formatter.h"

#include <sstream>

namespace stoker {
namespace {

constexpr size_t kLineWidth = 100;

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

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return CLI::Formatter::make_description(app) + "\n";
}

// CLI11 says "INT:INT in [0 - 9]" or "TEXT:{a,b}": the type is enough, or the choices.
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
  const std::string value = option->get_default_str();
  if (option->get_type_size() != 0 && !value.empty()) text += " (default: " + value + ")";
  return wrapped(text, kLineWidth - kColumn);
}

}  // namespace stoker
