#include "pipeline/store/s3/aws_settings.h"

#include <filesystem>
#include <sstream>
#include <string_view>

#include "pipeline/files/durable_file.h"
#include "pipeline/store/environment.h"
#include "pipeline/store/object_store.h"

namespace stoker {
namespace {

using Section = std::map<std::string, std::string>;
using Sections = std::map<std::string, Section>;

std::string trimmed_text(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

// "profile  name", also with the name in quotes, becomes "profile name".
std::string section_name(const std::string& text) {
  const size_t space = text.find_first_of(" \t");
  if (space == std::string::npos) return text;
  std::string name = trimmed_text(std::string_view(text).substr(space));
  if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') &&
      name.back() == name.front()) {
    name = name.substr(1, name.size() - 2);
  }
  return text.substr(0, space) + " " + name;
}

Sections read_sections(const std::string& path) {
  Sections sections;
  if (path.empty() || !std::filesystem::exists(path)) return sections;
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const std::runtime_error& error) {
    throw StoreError(std::string(error.what()) + " (it has the settings of AWS's tools)");
  }
  std::istringstream lines(text);
  Section* section = nullptr;
  std::string parent;
  int number = 0;
  // The line is not shown: it may have a secret.
  const auto fail = [&](const char* why) {
    throw StoreError(path + ": line " + std::to_string(number) + " " + why);
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string content = trimmed_text(line);
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (line[0] == '[') {
      const size_t end = line.find(']');
      if (end == std::string::npos) fail("has no ']'");
      section = &sections[section_name(trimmed_text(line.substr(1, end - 1)))];
      parent.clear();
      continue;
    }
    const size_t equals = content.find('=');
    if (equals == std::string::npos) fail("has no '='");
    if (section == nullptr) fail("is in no section like [default]");
    const std::string name = trimmed_text(content.substr(0, equals));
    const std::string value = trimmed_text(content.substr(equals + 1));
    const bool is_inside = line[0] == ' ' || line[0] == '\t';
    if (is_inside && parent.empty()) fail("is indented, but stands in no other setting");
    if (!is_inside) parent = name;
    (*section)[is_inside ? parent + "." + name : name] = value;
  }
  return sections;
}

std::string file_of(const char* variable, const char* name) {
  std::string path = environment(variable);
  const std::string home = environment("HOME");
  if (path.empty()) return home.empty() ? "" : home + "/.aws/" + name;
  if (path.compare(0, 2, "~/") == 0) path = home + path.substr(1);
  return path;
}

const std::string& setting(const Section& section, const std::string& name) {
  static const std::string kNone;
  const auto found = section.find(name);
  return found == section.end() ? kNone : found->second;
}

}  // namespace

const std::string& AwsSettings::of_credentials(const std::string& name) const {
  return setting(credentials, name);
}
const std::string& AwsSettings::of_config(const std::string& name) const {
  return setting(config, name);
}

AwsSettings read_aws_settings(const std::string& profile_option) {
  AwsSettings settings;
  settings.profile = profile_option;
  settings.profile_is_chosen = !profile_option.empty();
  if (settings.profile.empty()) settings.profile = environment("AWS_PROFILE");
  if (settings.profile.empty()) settings.profile = environment("AWS_DEFAULT_PROFILE");
  const bool named = !settings.profile.empty();
  if (!named) settings.profile = "default";

  const std::string credentials_file = file_of("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string config_file = file_of("AWS_CONFIG_FILE", "config");
  Sections credentials = read_sections(credentials_file);
  Sections config = read_sections(config_file);
  const bool in_config = config.count("profile " + settings.profile) > 0;
  const bool is_default = settings.profile == "default" && config.count("default") > 0;
  if (named && !in_config && !is_default && credentials.count(settings.profile) == 0) {
    throw StoreError("the profile '" + settings.profile + "' is in neither " + credentials_file +
                     " nor " + config_file);
  }
  settings.credentials = credentials[settings.profile];
  settings.config = config[in_config ? "profile " + settings.profile : settings.profile];
  const std::string& services = settings.of_config("services");
  if (!services.empty()) {
    settings.endpoint_of_services = setting(config["services " + services], "s3.endpoint_url");
  }
  return settings;
}

}  // namespace stoker
