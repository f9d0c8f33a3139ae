// The inverse DCT: libjpeg's accurate integer one ("islow"), bit for bit, on whole blocks.
//
// Every sum of products is exact in 32 bits, so the order of the additions does not matter. The
// instruction set is chosen at run time (Google Highway); all of them give the same bytes.
//
// libjpeg-turbo's vector code adds some inputs in 16 bits. If no result of the first pass needs
// more than 15 bits, none of its sums can overflow: the transform preserves energy, so no input of
// that pass exceeds a quarter of the largest result. Coefficients of pictures stay below that; for
// others, libjpeg-turbo's own samples depend on the instruction set.
//
// The output goes to strips: kStripRows rows of a plane, column by column, so that the resize can
// work on a vector of rows. Sample (row, column) of a plane that is `columns` wide is at
// (row / kStripRows * columns + column) * kStripRows + row % kStripRows.
#pragma once

#include <cstdint>

#include "decode/jpeg/entropy_decoder.h"

namespace stoker {

inline constexpr int kStripRows = 32;
inline constexpr int kStripBlocks = kStripRows / 8;

// Turns a row of `groups` groups of four blocks (see coefficient_offset) into samples. `out` is the
// sample of the first block's corner; columns are kStripRows bytes apart. REQUIRES: coefficients
// aligned to 64 bytes, `quant` to 16. Returns false if results of the first pass are outside
// [-2^14, 2^14); libjpeg-turbo's samples may then differ.
bool inverse_dct(const int16_t* coefficients, int groups, const int16_t* quant, uint8_t* out);

// The plain twin: the same bytes, no SIMD.
bool inverse_dct_reference(const int16_t* coefficients, int groups, const int16_t* quant,
                           uint8_t* out);

}  // namespace stoker
