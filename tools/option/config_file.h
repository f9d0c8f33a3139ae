// A config file as text: the part of TOML that options need. It has lines of key = value, at the
// top or below a [section]; values are "text" or 'text', numbers, true and false, or a [list] of
// those on one line. Anything else, and any key or section that comes twice, is refused. Stateless.
// Throws std::invalid_argument that begins with "FILE:LINE: ".
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace stoker {

struct ConfigEntry {
  enum class Kind { text, number, boolean };
  std::vector<std::string> section;  // "bench", "feed"; empty: the top
  std::string key;
  std::vector<std::string> values;  // one; for a list, any number
  Kind kind = Kind::text;           // of all values
  bool is_list = false;
  int line = 0;  // from 1
};

struct ConfigSection {
  std::vector<std::string> name;
  int line = 0;
};

struct ConfigText {
  std::vector<ConfigEntry> entries;     // in the file's order
  std::vector<ConfigSection> sections;  // likewise
};

// `path` is for the errors.
ConfigText read_config(std::istream& input, const std::string& path);

[[noreturn]] void refuse_config(const std::string& path, int line, const std::string& why);

}  // namespace stoker
