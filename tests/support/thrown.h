// The exception of a call, for tests to compare.
#pragma once

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace stoker {

// Other exceptions than an Error go on.
template <typename Error>
std::string thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// For options and arguments that are refused.
inline std::string problem_of(const std::function<void()>& make) {
  return thrown_by<std::invalid_argument>(make);
}

inline std::string message_of(const std::function<void()>& call) {
  return thrown_by<std::exception>(call);
}

}  // namespace stoker
