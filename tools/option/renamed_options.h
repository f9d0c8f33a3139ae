// Options that have been renamed. An old name is refused, on the command line and in a config file,
// and the message gives the new one. Pure.
#pragma once

#include <string>

namespace stoker {

// Returns the present name of the option that was called `old_name` ("grad-wire"), or "" for any
// other name.
std::string new_option_name(const std::string& old_name);

}  // namespace stoker
