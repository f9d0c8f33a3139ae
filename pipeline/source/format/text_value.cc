#include "pipeline/source/format/text_value.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

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

}  // namespace stoker
