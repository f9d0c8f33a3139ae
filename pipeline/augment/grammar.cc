#include "pipeline/augment/grammar.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// Lists in lists deeper than this are refused, so that no text can exhaust the stack.
constexpr int kMaxDepth = 16;
constexpr size_t kMaxText = size_t{1} << 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kMaxText) {
      throw std::invalid_argument("augment: a text of " + std::to_string(text.size()) +
                                  " characters; at most " + std::to_string(kMaxText) + " are read");
    }
  }

  std::vector<StageText> all() {
    std::vector<StageText> stages = list(0);
    if (next() != '\0') fail("'|' or the end");
    return stages;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::invalid_argument("augment: column " + std::to_string(at_ + 1) + " of '" +
                                printable_name(std::string(text_)) + "': expected " + expected);
  }

  // Returns the next character that is no space; '\0' at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(std::string("'") + c + "'");
  }

  std::string identifier() {
    if (!is_letter(next())) fail("a name");
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  double number() {
    next();
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || !std::isfinite(value)) fail("a number");
    at_ += static_cast<size_t>(stop - begin);
    return value;
  }

  std::vector<StageText> list(int depth) {
    if (depth > kMaxDepth) fail("no more than " + std::to_string(kMaxDepth) + " lists in lists");
    std::vector<StageText> stages;
    do {
      stages.push_back(stage(identifier(), depth));
    } while (take('|'));
    return stages;
  }

  StageText stage(std::string name, int depth) {
    StageText stage;
    stage.name = std::move(name);
    if (!take('(') || take(')')) return stage;
    do {
      stage.arguments.push_back(argument(depth));
    } while (take(','));
    expect(')');
    return stage;
  }

  ArgumentText argument(int depth) {
    ArgumentText argument;
    if (is_letter(next())) {
      std::string name = identifier();
      if (!take('=')) {
        word_or_list(std::move(name), depth, argument);
        return argument;
      }
      argument.name = std::move(name);
    }
    value(depth, argument);
    return argument;
  }

  void value(int depth, ArgumentText& argument) {
    const char c = next();
    if (is_letter(c)) {
      word_or_list(identifier(), depth, argument);
    } else if (c == '\'' || c == '"') {
      quoted(c, argument);
    } else if (take('(')) {
      argument.kind = ArgumentText::Kind::tuple;
      // Python ends a tuple of one number with a comma.
      do {
        if (next() == ')') break;
        argument.numbers.push_back(number());
      } while (take(','));
      expect(')');
    } else {
      argument.number = number();
    }
  }

  void quoted(char quote, ArgumentText& argument) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(std::string("a closing ") + quote);
    argument.kind = ArgumentText::Kind::word;
    argument.word = std::string(text_.substr(at_ + 1, end - at_ - 1));
    argument.quoted = true;
    at_ = end + 1;
  }

  // A name alone may be a word ("bicubic") or a stage without arguments ("flip"): the parameter
  // decides.
  void word_or_list(std::string name, int depth, ArgumentText& argument) {
    if (next() != '(' && next() != '|') {
      argument.kind = ArgumentText::Kind::word;
      argument.word = std::move(name);
      return;
    }
    if (depth >= kMaxDepth) fail("no more than " + std::to_string(kMaxDepth) + " lists in lists");
    argument.kind = ArgumentText::Kind::list;
    argument.stages.push_back(stage(std::move(name), depth + 1));
    if (!take('|')) return;
    for (StageText& more : list(depth + 1)) argument.stages.push_back(std::move(more));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<StageText> parse_stages(std::string_view text) { return Parser(text).all(); }

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

std::string numbers_text(const std::vector<double>& values) {
  if (values.size() == 1) return number_text(values[0]);
  std::string text = "(";
  for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + number_text(values[i]);
  return text + ")";
}

}  // namespace stoker
