#include "tools/option/config_file.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>

namespace stoker {
namespace {

constexpr const char* kOpenList = "the list does not end with ] on its line";

bool is_key_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// Reads one line from left to right.
class ConfigLines {
 public:
  ConfigLines(const std::string& line, const std::string& path, int number)
      : line_(line), path_(path), number_(number) {}

  bool at_end() {  // of what precedes a comment
    skip_spaces();
    return at_ == line_.size() || line_[at_] == '#';
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const std::string& why) {
    if (!take(c)) refuse(why);
  }
  void expect_end(const std::string& after) {
    if (!at_end()) refuse("'" + line_.substr(at_) + "' follows " + after);
  }

  // Reads a or a.b and returns its words.
  std::vector<std::string> dotted_name(const std::string& what) {
    std::vector<std::string> words;
    do {
      skip_spaces();
      if (at_ < line_.size() && (line_[at_] == '"' || line_[at_] == '\'')) {
        words.push_back(text());
        continue;
      }
      const size_t begin = at_;
      while (at_ < line_.size() && is_key_letter(line_[at_])) ++at_;
      if (at_ == begin) refuse(what + " is missing before '" + line_.substr(at_) + "'");
      words.push_back(line_.substr(begin, at_ - begin));
    } while (take('.'));
    return words;
  }

  void value_of(ConfigEntry& entry) {
    if (!take('[')) {
      entry.kind = one_value(entry.values);
      return;
    }
    entry.is_list = true;
    while (!take(']')) {
      if (at_end()) refuse(kOpenList);
      const ConfigEntry::Kind kind = one_value(entry.values);
      if (entry.values.size() > 1 && kind != entry.kind) refuse("a list of different kinds");
      entry.kind = kind;
      if (at_end()) refuse(kOpenList);
      if (!take(',')) {
        expect(']', "no comma separates the list's values");
        return;
      }
    }
  }

  [[noreturn]] void refuse(const std::string& why) const { refuse_config(path_, number_, why); }

 private:
  void skip_spaces() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }

  ConfigEntry::Kind one_value(std::vector<std::string>& values) {
    if (at_end()) refuse("a value is missing");
    if (line_[at_] == '"' || line_[at_] == '\'') {
      values.push_back(text());
      return ConfigEntry::Kind::text;
    }
    const size_t end = std::min(line_.find_first_of(" \t#,]", at_), line_.size());
    const std::string word = line_.substr(at_, end - at_);
    at_ = end;
    values.push_back(word);
    if (word == "true" || word == "false") return ConfigEntry::Kind::boolean;
    const bool number = !word.empty() && (std::isdigit(static_cast<unsigned char>(word[0])) != 0 ||
                                          word[0] == '-' || word[0] == '+');
    if (!number && word != "inf" && word != "nan") {
      refuse("'" + word + "' is no number and not true or false; text stands in quotes: \"" + word +
             "\"");
    }
    return ConfigEntry::Kind::number;
  }

  std::string text() {
    const char quote = line_[at_++];
    std::string value;
    for (; at_ < line_.size(); ++at_) {
      char c = line_[at_];
      if (c == quote) {
        ++at_;
        return value;
      }
      if (c == '\\' && quote == '"') c = escaped();
      value += c;
    }
    refuse(std::string("the text does not end with ") + quote + " on its line");
  }

  char escaped() {
    static const std::map<char, char> kEscapes = {
        {'"', '"'}, {'\\', '\\'}, {'t', '\t'}, {'n', '\n'}};
    const char c = ++at_ < line_.size() ? line_[at_] : ' ';
    const auto found = kEscapes.find(c);
    if (found == kEscapes.end()) {
      refuse(std::string("'\\") + c +
             "' is none of \\\" \\\\ \\t \\n; in 'single quotes' a \\ is one");
    }
    return found->second;
  }

  const std::string& line_;
  const std::string& path_;
  const int number_;
  size_t at_ = 0;
};

// Refuses a name that comes twice, with the line where it came first.
class Once {
 public:
  explicit Once(const std::string& path) : path_(path) {}
  void note(const std::vector<std::string>& words, int line, const std::string& name) {
    const auto [first, is_new] = lines_.emplace(words, line);
    if (!is_new) {
      refuse_config(path_, line,
                    name + " is there twice, first in line " + std::to_string(first->second));
    }
  }

 private:
  const std::string& path_;
  std::map<std::vector<std::string>, int> lines_;
};

}  // namespace

void refuse_config(const std::string& path, int line, const std::string& why) {
  throw std::invalid_argument(path + ":" + std::to_string(line) + ": " + why);
}

ConfigText read_config(std::istream& input, const std::string& path) {
  ConfigText config;
  Once keys(path), sections(path);
  std::vector<std::string> section;
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // UTF-8's mark
    if (!line.empty() && line.back() == '\r') line.pop_back();
    ConfigLines reader(line, path, number);
    if (reader.at_end()) continue;
    if (reader.take('[')) {
      if (reader.take('[')) reader.refuse("[[...]] begins a list of tables; options have none");
      section = reader.dotted_name("the section's name");
      reader.expect(']', "the section's name does not end with ]");
      reader.expect_end("the section's name");
      sections.note(section, number, "this section");
      config.sections.push_back({section, number});
      continue;
    }
    ConfigEntry entry;
    entry.line = number;
    std::vector<std::string> words = reader.dotted_name("the key");
    reader.expect('=', "no = follows " + words.back());
    reader.value_of(entry);
    reader.expect_end("the value of " + words.back());
    entry.section = section;
    entry.section.insert(entry.section.end(), words.begin(), words.end() - 1);
    entry.key = words.back();
    words.insert(words.begin(), section.begin(), section.end());
    keys.note(words, number, entry.key);
    config.entries.push_back(std::move(entry));
  }
  return config;
}

}  // namespace stoker
