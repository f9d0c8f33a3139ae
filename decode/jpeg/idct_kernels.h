// The inverse DCT: libjpeg's accurate integer one ("islow"), bit for bit, on whole blocks.
//
// Every sum of products is exact in 32 bits, so the order of the additions does not matter and all
// instruction sets give the same bytes. Chosen at run time (Google Highway).
//
// libjpeg-turbo's vector code adds some inputs in 16 bits. Where no result of the first pass needs
// more than 15 bits, none of its sums can overflow: as the transform keeps energy, no input of that
// pass is above a quarter of the largest result. Coefficients of pictures stay below that; for
// others, libjpeg-turbo's own samples depend on the instruction set.
//
// Output goes to strips: kStripRows rows of a plane, column by column, so that the resize can work
// on a vector of rows. Sample (row, column) of a plane that is `columns` wide is at
// (row / kStripRows * columns + column) * kStripRows + row % kStripRows.
#pragma once

#include <cstdint>

#include "decode/jpeg/entropy_decoder.h"

namespace stoker {

inline constexpr int kStripRows = 32;

// A row of `groups` groups of four blocks (see coefficient_offset) -> samples. `out` is the sample
// of the first block's corner; columns follow each other kStripRows bytes apart. REQUIRES:
// coefficients aligned to 64 bytes, `quant` to 16. False: there are results of the first pass
// outside [-2^14, 2^14), and libjpeg-turbo's samples may be others.
bool inverse_dct(const int16_t* coefficients, int groups, const int16_t* quant, uint8_t* out);

// The plain twin: the same bytes, no SIMD.
bool inverse_dct_reference(const int16_t* coefficients, int groups, const int16_t* quant,
                           uint8_t* out);

}  // namespace stoker
