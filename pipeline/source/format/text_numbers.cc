#include "pipeline/source/format/text_numbers.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "pipeline/source/format/text_value.h"

namespace stoker {
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

}  // namespace stoker
