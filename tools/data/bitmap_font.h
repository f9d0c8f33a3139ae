// A tiny built-in font, so that captions need no font file: 5 x 8 pixels a character (row 7 is for
// descenders), printable ASCII.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 8;

// Returns the columns from left to right; bit 0 is the topmost row. All but printable ASCII gives
// '?'.
const std::array<uint8_t, kGlyphWidth>& glyph(char character);

}  // namespace stoker
