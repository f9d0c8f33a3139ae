// File names may have any bytes; names in JSON, a log or a terminal may not.
#pragma once

#include <string>

namespace stoker {

// Returns `name` with every backslash, control character and byte that is not part of valid UTF-8
// written as \xNN: different names stay different, and ordinary names do not change.
std::string printable_name(const std::string& name);

// Returns `text` where it is valid UTF-8, and else printable_name(text). For names that may hold
// backslashes, and that users write themselves: classes, columns.
std::string valid_text(const std::string& text);

}  // namespace stoker
