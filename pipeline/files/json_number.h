// Reads whole numbers from JSON that may hold anything. The library's own conversion cuts off what
// a type cannot hold, and for 1e38 as an int its behaviour is undefined. Threads: any.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace stoker {

// `Json` is one of the library's types. Throws std::runtime_error with the value and the limits if
// it is no whole number, or one that T cannot hold.
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
