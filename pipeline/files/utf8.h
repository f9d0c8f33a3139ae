// UTF-8: overlong forms, surrogates and values above U+10FFFF are not valid (Unicode, table 3-7).
// Functions of their arguments alone. Threads: any.
#pragma once

#include <cstddef>
#include <string_view>

namespace stoker {

// Returns the length of the valid sequence at `text[at]`, or 0.
size_t utf8_length(std::string_view text, size_t at);

// Returns where the first byte is that is not part of a valid sequence; text.size() if there is
// none. Text of ASCII is read by words.
size_t find_invalid_utf8(std::string_view text);

// Returns the first characters of a valid text that have at most `bytes` bytes together.
std::string_view utf8_prefix(std::string_view text, size_t bytes);

}  // namespace stoker
