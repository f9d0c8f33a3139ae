// The entropy decoder's inner loops: stuffing bytes out, then MCUs to coefficients, or past them.
//
// It is plain C++, but compiled once per instruction set (BMI2's shifts are worth 10 % here) and
// chosen at run time as the other kernels are.
//
// Coefficients of a row of blocks lie in groups of four blocks, row by row: coefficient (r, c) of
// block b is at (b / 4) * 256 + r * 32 + (b % 4) * 8 + c, as the inverse DCT wants to load them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {

inline constexpr int kBlockGroup = 4;  // blocks that lie together
inline constexpr int kMaxMcuBlocks = 10;

inline constexpr size_t coefficient_offset(size_t block) {
  return block / kBlockGroup * (kBlockGroup * kBlockSize) + block % kBlockGroup * 8;
}

// Where the decoder stands: between two MCUs.
struct EntropyState {
  const uint8_t* next = nullptr;  // the first byte that is not in `bits`
  uint64_t bits = 0;              // the next bits of the data, from the top
  int count = 0;                  // how many of them were taken from bytes in front of `next`
  int32_t dc[3] = {};             // the DC predictors
};

// One block of an MCU.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  int component = 0;
  uint32_t across = 1;              // the component's blocks across in an MCU
  uint32_t column = 0;              // which of them this is
  int16_t* coefficients = nullptr;  // the row of blocks that this one belongs to
};

struct McuLayout {
  int block_count = 0;
  McuBlock blocks[kMaxMcuBlocks];
};

// What a decoder may read behind `limit`: it looks at the place once per MCU.
inline constexpr size_t kEntropyPadding = 4096;

// Decodes `count` MCUs and keeps nothing but the DC predictors. False: the data are damaged or end
// too early. REQUIRES: kEntropyPadding readable bytes behind `limit`.
bool skip_mcus(const McuLayout& layout, int count, const uint8_t* limit, EntropyState& state);

// Decodes MCUs [first, first + count) of the layout's rows. REQUIRES: also that the coefficients
// there are zero.
bool store_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                EntropyState& state);

// Copies [from, end) to `to` without the zero bytes that follow FF, up to the first marker. Returns
// where the marker begins (or `end`) and moves `to` behind the last byte. May write up to
// kEntropyPadding bytes more. REQUIRES: room for end - from + kEntropyPadding bytes.
const uint8_t* copy_unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to);

}  // namespace stoker
