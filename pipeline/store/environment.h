// Reads the environment. Threads: any, while nobody changes it.
#pragma once

#include <cstdlib>
#include <string>

namespace stoker {

// Returns the value of a variable, "" if it is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace stoker
