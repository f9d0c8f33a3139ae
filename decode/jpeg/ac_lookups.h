// Makes the lookups of DcTable and AcTable from the definition of a Huffman code.
//
// Nearly all of ImageNet's files have tables of their own, so this runs twice per image and has to
// be fast.
#pragma once

#include <cstdint>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {

// Fills table.pair, by windows of table.pair_bits, and table.skip. REQUIRES: `spec` is a code that
// build_ac_table accepts.
void fill_ac_lookups(const HuffmanSpec& spec, AcTable& table);

// Fills table.lookup. REQUIRES: no value of more than 15 bits.
void fill_dc_lookup(const HuffmanSpec& spec, DcTable& table);

// Calls fill(first entry, count, bits of the code, symbol) for every code of at most `bits` bits:
// these entries of a table of 2^bits begin with the code.
template <class Fill>
void for_each_code(const HuffmanSpec& spec, int bits, const Fill& fill) {
  uint32_t at = 0;
  const uint8_t* value = spec.values;
  for (int n = 1; n <= bits; ++n) {
    const uint32_t span = 1u << (bits - n);
    for (int i = 0; i < spec.counts[n - 1]; ++i, at += span) fill(at, span, n, *value++);
  }
}

}  // namespace stoker
