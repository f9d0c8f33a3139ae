// Options that have been renamed, or have become a part of another. An old name is refused, on the
// command line and in a config file, and the message says what to write now. Pure.
#pragma once

#include <string_view>

namespace stoker {

struct RenamedOption {
  const char* old_name;
  const char* now;         // the present name
  const char* value = "";  // an example of what to write there, if the value is another one
};

// Returns what the option that was called `old_name` ("comm-dtype") is now; null for any other
// name.
const RenamedOption* find_renamed(std::string_view old_name);

}  // namespace stoker
