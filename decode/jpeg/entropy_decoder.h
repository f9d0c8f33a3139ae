// The inner loops of the entropy decoder: decode MCUs to coefficients, or skip them.
//
// It is plain C++, but compiled once per instruction set (BMI2's shifts are worth 10 % here) and
// chosen at run time like the other kernels.
//
// The coefficients of a row of blocks are stored in groups of four blocks, row by row: coefficient
// (r, c) of block b is at (b / 4) * 256 + r * 32 + (b % 4) * 8 + c, which suits the loads of the
// inverse DCT.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {

inline constexpr int kBlockGroup = 4;  // blocks that are stored together
inline constexpr int kMaxMcuBlocks = 10;

inline constexpr size_t coefficient_offset(size_t block) {
  return block / kBlockGroup * (kBlockGroup * kBlockSize) + block % kBlockGroup * 8;
}

// The state of the decoder between two MCUs.
struct EntropyState {
  const uint8_t* next = nullptr;  // the first byte that is not in `bits`
  uint64_t bits = 0;              // the next bits of the data, from the top
  int count = 0;                  // bits of the bytes in front of `next` that are left
  int32_t dc[3] = {};             // the DC predictors
};

// One block of an MCU.
struct McuBlock {
  const DcTable* dc = nullptr;
  const AcTable* ac = nullptr;
  int component = 0;
  uint32_t across = 1;              // the component's blocks across in an MCU
  uint32_t column = 0;              // the index of this block among them
  int16_t* coefficients = nullptr;  // the row of blocks that this block belongs to
};

// The blocks that are skipped between two checks of the position.
inline constexpr int kSkipChunk = 64;
static_assert(kSkipChunk >= kMaxMcuBlocks);

// A step of skip_mcus: the DC coefficient or the AC coefficients of a block.
struct SkipStep {
  const uint16_t* table = nullptr;
  uint64_t bits = 0;  // from the last lookup of this step on
};

struct McuLayout {
  int block_count = 0;
  McuBlock blocks[kMaxMcuBlocks];
  SkipStep steps[2 * kSkipChunk + 1];  // of plan_skips
};

// The most bytes of a block: 64 codes of 16 bits with values of 15.
inline constexpr size_t kMaxBlockBytes = 64 * (16 + 15) / 8;
// The bytes that a decoder may read after `limit`: it checks its position once per MCU, or once per
// kSkipChunk blocks.
inline constexpr size_t kEntropyPadding = kSkipChunk * kMaxBlockBytes + 64;

// Returns the window of the layout's tables of pairs, which is the same for all of one cache.
inline int pair_bits(const McuLayout& layout) { return layout.blocks[0].ac->pair_bits; }

// Prepares the layout for skip_mcus. REQUIRES: its blocks are complete.
void plan_skips(McuLayout& layout);

// Decodes `count` MCUs and keeps only the DC predictors. Returns false if the data are damaged or
// end too early. REQUIRES: plan_skips(); kEntropyPadding readable bytes after `limit`.
bool skip_mcus(McuLayout& layout, int count, const uint8_t* limit, EntropyState& state);

// The same, in less time for many MCUs: it reads them in two places at once. Adds to `met` how
// often that succeeded.
bool skip_far(McuLayout& layout, int count, const uint8_t* limit, EntropyState& state, int& met);

// Decodes MCUs [first, first + count) of the layout's rows. REQUIRES, in addition: the coefficients
// there are zero.
bool store_mcus(const McuLayout& layout, int first, int count, const uint8_t* limit,
                EntropyState& state);

// MCUs in a row, of which store_two_runs reads two at once.
struct McuRun {
  const McuLayout* layout = nullptr;
  const uint8_t* limit = nullptr;
  EntropyState* state = nullptr;
};

// The same as store_mcus for `a` and for `b`, in less time than both after each other take.
bool store_two_runs(const McuRun& a, const McuRun& b, int first, int count);

}  // namespace stoker
