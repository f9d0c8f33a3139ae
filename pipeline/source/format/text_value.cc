#include "pipeline/source/format/text_value.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipeline/files/printable_name.h"

namespace stoker {

std::string quoted_name(std::string_view name) {
  // An end of the name stays, because that is where names in one folder differ.
  constexpr size_t kMax = 400, kEnd = 100;
  std::string text = "'";
  if (name.size() <= kMax) {
    text += printable_name(std::string(name));
  } else {
    text += printable_name(std::string(name.substr(0, kMax - kEnd))) + "..." +
            printable_name(std::string(name.substr(name.size() - kEnd)));
  }
  return text + "'";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string set_text_label(std::string_view text, BlobLabel& label) {
  if (text.empty()) return "is empty";
  if (text.find('\0') != std::string_view::npos) return "has a NUL byte";
  label = text;
  return "";
}

std::string set_json_label(const nlohmann::json& value, BlobLabel& label) {
  if (value.is_string()) return set_text_label(value.get_ref<const std::string&>(), label);
  if (!value.is_number_integer()) {
    const std::string kind = value.is_number() ? "a number with a fraction" : value.type_name();
    return "is " + kind + ", and no integer or text";
  }
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return "has more than 63 bits";
  }
  label = value.get<int64_t>();
  return "";
}

const nlohmann::json* find_json_field(const nlohmann::json& object, const std::string& field) {
  const nlohmann::json* value = &object;
  for (size_t at = 0; at <= field.size();) {
    const size_t end = std::min(field.find('.', at), field.size());
    const auto next = value->find(field.substr(at, end - at));
    if (next == value->end()) return nullptr;
    value = &*next;
    at = end + 1;
  }
  return value;
}

namespace {

void set_type(FoundTarget& out) {
  out.type = out.reals.empty() ? TargetType::int64 : TargetType::float32;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Numbers of arrays inside each other, which must be equally long where they are equally deep.
class JsonNumbers {
 public:
  explicit JsonNumbers(FoundTarget& out) : out_(out) {}

  std::string add(const nlohmann::json& value, size_t depth) {
    constexpr size_t kDeepest = 32;
    if (value.is_array()) {
      if (depth == kDeepest) return "has arrays inside arrays, more than 32 levels";
      return add_array(value, depth);
    }
    if (leaf_depth_ && *leaf_depth_ != depth) return "has numbers beside arrays";
    leaf_depth_ = depth;
    return add_number(value);
  }

 private:
  std::string add_array(const nlohmann::json& array, size_t depth) {
    const auto size = static_cast<int64_t>(array.size());
    if (size == 0) return "is or has an empty array";
    if (depth == out_.shape.size()) out_.shape.push_back(size);
    if (out_.shape[depth] != size) {
      return "has arrays of " + std::to_string(out_.shape[depth]) + " and of " +
             std::to_string(size) + " values beside each other";
    }
    for (const nlohmann::json& value : array) {
      std::string problem = add(value, depth + 1);
      if (!problem.empty()) return problem;
    }
    return "";
  }

  std::string add_number(const nlohmann::json& value) {
    if (value.is_boolean()) {
      out_.add(int64_t{value.get<bool>()});
    } else if (value.is_number_unsigned() &&
               value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return "has the value " + std::to_string(value.get<uint64_t>()) +
             ", which has more than 63 bits";
    } else if (value.is_number_integer()) {
      out_.add(value.get<int64_t>());
    } else if (value.is_number()) {
      out_.add(value.get<double>());
    } else {
      return std::string("is or has ") + value.type_name() + ", and no number";
    }
    return "";
  }

  FoundTarget& out_;
  std::optional<size_t> leaf_depth_;
};

}  // namespace

std::string read_text_numbers(std::string_view text, FoundTarget& out) {
  constexpr std::string_view kBetween = " \t\r\n\v\f;";
  out.clear();
  for (size_t at = text.find_first_not_of(kBetween); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (const auto integer = parse_integer(word)) {
      out.add(*integer);
    } else if (const auto real = parse_real(word)) {
      out.add(*real);
    } else {
      return "has " + quoted_name(word) + ", which is no number";
    }
    at = text.find_first_not_of(kBetween, end);
  }
  if (out.size() == 0) return "is empty";
  out.make_list();
  set_type(out);
  return "";
}

std::string read_json_numbers(const nlohmann::json& value, FoundTarget& out) {
  out.clear();
  std::string problem = JsonNumbers(out).add(value, 0);
  set_type(out);
  return problem;
}

std::string read_field_text(const TargetField& field, std::string_view text, FoundTarget& out) {
  out.clear();
  if (field.is_text()) {
    out.add_text(text);
    return out.problem;
  }
  if (field.varies && trimmed(text).empty()) return "";
  return read_text_numbers(text, out);
}

std::string read_field_json(const TargetField& field, const nlohmann::json& value,
                            FoundTarget& out) {
  out.clear();
  const bool is_list = value.is_array();
  if (!field.is_text()) {
    return field.varies && is_list && value.empty() ? "" : read_json_numbers(value, out);
  }
  if (!is_list && !value.is_string())
    return std::string("is ") + value.type_name() + ", and no text";
  if (!is_list) out.add_text(value.get_ref<const std::string&>());
  for (size_t i = 0; is_list && i < value.size(); ++i) {
    if (!value[i].is_string()) return std::string("has ") + value[i].type_name() + ", and no text";
    out.add_text(value[i].get_ref<const std::string&>());
  }
  return out.problem;
}

}  // namespace stoker
