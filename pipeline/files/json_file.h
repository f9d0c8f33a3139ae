// JSON, which may hold anything, from files. All reading of JSON files goes through this, so that a
// file that is damaged, or not what it should be, is named. Threads: any.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "pipeline/files/durable_file.h"
#include "staging/error_text.h"

namespace stoker {

// Returns the value that `text` is; `Json` is one of the library's types. Throws
// std::runtime_error with the byte where it is no JSON. What is nested deeper than any file of ours
// is refused, too: the library copies and prints values by recursion.
template <class Json>
Json parse_json(const std::string& text) {
  constexpr int kDeepest = 100;
  const auto check_depth = [](int depth, typename Json::parse_event_t, const Json&) {
    if (depth > kDeepest) throw std::runtime_error("it is nested too deep");
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const nlohmann::json::parse_error& error) {
    throw std::runtime_error("it is no JSON, at byte " + std::to_string(error.byte) + " of " +
                             std::to_string(text.size()) + ": it is damaged, cut short or not " +
                             "written by stoker");
  }
}

// Returns use(json) of the file. Throws std::runtime_error "PATH: ...", also for what use() throws:
// a field that is missing or of another type.
template <class Json, class Use>
auto read_json_file(const std::string& path, const Use& use) {
  const std::string text = read_whole_file(path);
  try {
    return use(parse_json<Json>(text));
  } catch (const std::exception& error) {
    throw std::runtime_error(path + ": " + error_text(error));
  }
}

// Throws std::runtime_error with the value and the limits if it is no whole number, or one that T
// cannot hold. (The library's own conversion cuts off what a type cannot hold, and for 1e38 as an
// int its behaviour is undefined.)
template <std::integral T, class Json>
T whole_number(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.template get<uint64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  } else if (json.is_number_integer()) {
    const auto value = json.template get<int64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  }
  throw std::runtime_error(json.dump() + " is no whole number from " +
                           std::to_string(std::numeric_limits<T>::min()) + " to " +
                           std::to_string(std::numeric_limits<T>::max()));
}

}  // namespace stoker
