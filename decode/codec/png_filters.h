// Undoes PNG's row filters (PNG specification, clause 9). Internal to the PNG reader.
//
// Each byte is the sum of a filtered one and a prediction from the bytes to its left, above it and
// above to the left. A row is a chain of such sums, each of which waits for the one before it. So
// up to eight rows are undone at once, each one pixel behind the row above it.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

inline constexpr int kPngRowsAtOnce = 8;
// The margins that may be read behind the rows, and written before and behind them.
inline constexpr size_t kPngRowMargin = 64;

struct PngRows {
  const uint8_t* filtered;  // rows of a byte that names the filter, 0..4, and the filtered bytes
  size_t filtered_stride;   // from row to row
  uint8_t* first;           // where the first of them goes; the row above lies before it
  size_t stride;            // from row to row: bytes + 2 * kPngRowMargin at least
  size_t bytes;             // whole pixels from the left that are undone
  size_t pixel_bytes;       // the distance to the left: 1, 2, 3, 4, 6 or 8
  int count;                // 1..kPngRowsAtOnce
};

// Returns false if a filter is unknown; the rows are undefined then.
bool undo_png_filters(const PngRows& rows);

}  // namespace stoker
