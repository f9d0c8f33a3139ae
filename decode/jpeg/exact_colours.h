// Turns strips of samples into strips of red, green and blue: libjpeg's upsampling ("fancy",
// jdsample.c) and its colour conversion (jdcolor.c), bit for bit. Strips are column by column, as
// in idct_kernels.h. The instruction set is chosen at run time (Google Highway); all of them give
// the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/jpeg/idct_kernels.h"

namespace stoker {

// A strip's part of a chroma plane; columns are kStripRows bytes apart.
struct ChromaStrip {
  const uint8_t* near = nullptr;  // the first column's samples of the strip's rows of pixels
  // If chroma has half the rows: the 16 rows before and after those 16. Only the last and the first
  // of them are used.
  const uint8_t* above = nullptr;
  const uint8_t* below = nullptr;
};

struct ColourStrip {
  const uint8_t* luma = nullptr;  // the first column of pixels
  ChromaStrip chroma[2];          // Cb, Cr: the sample of that column
  int samples = 0;                // columns of chroma to convert
  bool halves_across = false;     // chroma has half of the columns
  bool halves_down = false;       // chroma has half of the rows
  bool has_left = false;          // there is a column of chroma before the first
  bool has_right = false;         // and one after the last; else the outermost is repeated

  int pixels() const { return halves_across ? 2 * samples : samples; }
};

// Returns how many values of `scratch` exact_colours needs.
inline constexpr size_t colour_scratch(int samples) {
  return 2 * (static_cast<size_t>(samples) + 2) * kStripRows;
}

// Converts a strip. out: (strip.pixels(), 3, kStripRows). `scratch` and `out` are aligned to 64
// bytes.
void exact_colours(const ColourStrip& strip, int16_t* scratch, uint8_t* out);

// The plain twin: the same bytes, no SIMD.
void exact_colours_reference(const ColourStrip& strip, uint8_t* out);

}  // namespace stoker
