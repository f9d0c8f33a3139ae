// The inner loops of the progressive decoder: the blocks of a scan, in file order, to coefficients,
// or only past their bits.
//
// For each block a mask tells which coefficients are not zero: bit 63 - k for the k-th of a file. A
// scan that refines coefficients needs it to find its way, also through blocks that nobody sees;
// their coefficients are not kept. Which zero a symbol means, and how many bits of correction come
// before it, are then a few operations on masks (with BMI2's deposit where a CPU has it), instead
// of a loop over coefficients.
//
// Coefficients are stored as entropy_decoder.h describes. The code is compiled once per instruction
// set and chosen at run time. Errors: false if the data are damaged, end too early, or have what
// libjpeg may read in another way. REQUIRES everywhere: kEntropyPadding readable bytes after
// `limit`.
#pragma once

#include <cstdint>

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/scan_table.h"

namespace stoker {

// The state of the decoder between two blocks.
struct ProgressiveState {
  const uint8_t* next = nullptr;  // the first byte that is not in `bits`
  uint64_t bits = 0;              // the next bits of the data, from the top
  int count = 0;                  // bits of the bytes in front of `next` that are left
  int dc[3] = {};                 // the DC predictors of the scan's components
  uint32_t ended = 0;             // blocks that the last end-of-blocks code still covers
};

struct AcScan {
  const ScanTable* table = nullptr;
  int first = 1;  // coefficients [first, last], in the order of the file
  int last = 63;
  int low = 0;  // the lowest bit that the scan has
};

// Blocks that follow each other in a scan of AC coefficients.
struct AcBlocks {
  int count = 0;
  uint64_t* nonzero = nullptr;      // (count)
  int16_t* coefficients = nullptr;  // a row of blocks; nullptr: only the masks are kept
  int first = 0;                    // the index in that row of the first block
};

// Reads the first bits of coefficients, which are zero before.
bool first_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
              ProgressiveState& state);
// Reads one more bit of each coefficient.
bool refine_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
               ProgressiveState& state);

// One block of an MCU, or the only one in a scan of one component.
struct DcBlock {
  const ScanTable* table = nullptr;
  int component = 0;                // of the scan
  uint32_t across = 1;              // the component's blocks across in an MCU
  uint32_t column = 0;              // the index of this block among them
  int16_t* coefficients = nullptr;  // the row of blocks that this block belongs to
};

struct DcScan {
  int low = 0;
  int block_count = 0;
  DcBlock blocks[kMaxMcuBlocks];
};

// Reads the first bits of the DC coefficients of MCUs [first, first + count) of the scan's rows.
bool first_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
              ProgressiveState& state);
// Reads past them, and keeps the predictors.
bool skip_first_dc(const DcScan& scan, int count, const uint8_t* limit, ProgressiveState& state);
// Reads one more bit of each.
bool refine_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
               ProgressiveState& state);
bool skip_bits(uint64_t bits, const uint8_t* limit, ProgressiveState& state);

}  // namespace stoker
