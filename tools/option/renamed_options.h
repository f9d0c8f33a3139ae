// Options that had another name once. The old name is refused, on the command line and in a config
// file, and the message says the new one. Pure.
#pragma once

#include <string>

namespace stoker {

// The present name of the option that was called `old_name` ("grad-wire"); "" for any other name.
std::string new_option_name(const std::string& old_name);

}  // namespace stoker
