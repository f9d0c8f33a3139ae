#include "pipeline/files/xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace stoker {
namespace {

// The answers of S3 are four deep, VOC's files five.
constexpr int kDeepestElement = 16;

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : text_(text) {}

  XmlElement document() {
    skip_literal("\xEF\xBB\xBF");  // a byte order mark
    skip_space();
    if (skip_literal("<?xml")) {
      at_ = find("?>") + 2;
      skip_space();
    }
    XmlElement root = element(1);
    skip_space();
    if (at_ < text_.size()) fail("there is more behind the end");
    return root;
  }

 private:
  XmlElement element(int depth) {
    if (depth > kDeepestElement) fail("elements are too deep");
    if (!skip_literal("<")) fail("'<' is missing");
    XmlElement made;
    const std::string_view name = read_name();
    made.name = name.substr(name.find(':') + 1);
    if (skip_attributes()) return made;  // <name/>
    std::string text;
    while (true) {
      append_text(text);
      if (skip_literal("</")) {
        if (read_name() != name) fail("an element is closed by another name");
        skip_space();
        if (!skip_literal(">")) fail("'>' is missing");
        if (made.children.empty()) made.text = std::move(text);
        return made;
      }
      made.children.push_back(element(depth + 1));
    }
  }

  // Returns true if the element ends here.
  bool skip_attributes() {
    while (true) {
      const bool apart = skip_space();
      if (skip_literal("/>")) return true;
      if (skip_literal(">")) return false;
      if (!apart) fail("a name has a wrong character");
      read_name();
      skip_space();
      if (!skip_literal("=")) fail("an attribute has no value");
      skip_space();
      const char quote = at_ < text_.size() ? text_[at_] : ' ';
      if (quote != '"' && quote != '\'') fail("an attribute has no quotes");
      ++at_;
      at_ = find({&quote, 1}) + 1;
    }
  }

  // Appends the text up to the next '<'.
  void append_text(std::string& text) {
    while (at_ < text_.size() && text_[at_] != '<') {
      if (text_[at_] == '&') {
        append_entity(text);
      } else {
        const size_t end = std::min(text_.find_first_of("<&", at_), text_.size());
        text.append(text_, at_, end - at_);
        at_ = end;
      }
    }
    if (at_ == text_.size()) fail("the text ends inside of an element");
  }

  void append_entity(std::string& text) {
    const size_t end = text_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > 12) fail("'&' without ';'");
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    constexpr std::array<std::pair<std::string_view, char>, 5> kNamed = {
        {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
    const auto* const named = std::find_if(
        kNamed.begin(), kNamed.end(), [&](const auto& entity) { return entity.first == name; });
    if (named != kNamed.end()) {
      text += named->second;
    } else {
      append_character(text, name);
    }
    at_ = end + 1;
  }

  // Appends a character in UTF-8 that is given as "#233" or "#xE9".
  void append_character(std::string& text, std::string_view name) {
    const bool hex = name.substr(0, 2) == "#x";
    const std::string_view digits = name.substr(std::min<size_t>(hex ? 2 : 1, name.size()));
    uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    if (name.substr(0, 1) != "#" || error != std::errc() || end != digits.data() + digits.size() ||
        code == 0 || code > 0x10FFFF) {
      fail("an unknown entity");
    }
    const auto append = [&](uint32_t byte) { text += static_cast<char>(byte); };
    const auto append_tail = [&](int shift) { append(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
      append(code);
    } else if (code < 0x800) {
      append(0xC0 | code >> 6);
    } else if (code < 0x10000) {
      append(0xE0 | code >> 12);
      append_tail(6);
    } else {
      append(0xF0 | code >> 18);
      append_tail(12);
      append_tail(6);
    }
    if (code >= 0x80) append_tail(0);
  }

  std::string_view read_name() {
    const size_t end = std::min(text_.find_first_of(" \t\r\n/>=<!?&\"'", at_), text_.size());
    if (end == at_) fail("a name is missing");
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end;
    return name;
  }

  bool skip_space() {
    const size_t from = at_;
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ > from;
  }

  bool skip_literal(std::string_view literal) {
    if (text_.substr(at_, literal.size()) != literal) return false;
    at_ += literal.size();
    return true;
  }

  size_t find(std::string_view what) const {
    const size_t found = text_.find(what, at_);
    if (found == std::string_view::npos) fail("it ends too early");
    return found;
  }

  [[noreturn]] void fail(const char* reason) const {
    throw std::runtime_error("no XML as it is read here: " + std::string(reason) + " (byte " +
                             std::to_string(at_) + " of " + std::to_string(text_.size()) + ")");
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const std::string& XmlElement::child_text(std::string_view child) const {
  static const std::string kNone;
  for (const XmlElement& element : children) {
    if (element.name == child) return element.text;
  }
  return kNone;
}

XmlElement parse_xml(std::string_view text) { return XmlParser(text).document(); }

}  // namespace stoker
