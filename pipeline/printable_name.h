// File names may hold any bytes; a name that goes into JSON, a log or a terminal may not.
#pragma once

#include <string>

namespace stoker {

// `name` with every backslash, control character and byte that is not part of valid UTF-8 written
// as \xNN: different names stay different, and ordinary ones stay as they are.
std::string printable_name(const std::string& name);

}  // namespace stoker
