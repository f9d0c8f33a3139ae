// One axis of Pillow's resampling: for every output pixel, which source pixels are summed and with
// which fixed-point weights. The fast resizer and its plain twin both use it.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/crop_spec.h"

namespace stoker {

// Determines a table; equal keys give equal tables.
struct ResampleKey {
  int source = 0;   // pixels of the crop along this axis
  int resized = 0;  // pixels that the crop is resized to
  int begin = 0;    // the window: output pixels [begin, begin + count) of `resized`
  int count = 0;
  bool mirrored = false;  // output pixel 0 is the window's last one
  Filter filter = Filter::bilinear;
  bool operator==(const ResampleKey&) const = default;
};

// Owner: a resizer; rebuilt in place, keeps its memory. Threads: const use from any. The vectors
// may be longer than their shapes: several pixels' weights are written at once.
struct ResampleTable {
  ResampleKey key;
  // source = resized: Pillow skips this pass and copies pixels. Then only `first` and `taps` are
  // filled.
  bool identity = false;
  int source_begin = 0;  // the first source pixel that any output pixel of the window needs
  int source_end = 0;    // one past the last
  int max_taps = 0;
  std::vector<int32_t> first;    // (count): first source pixel summed
  std::vector<int32_t> taps;     // (count): source pixels summed, >= 1
  std::vector<int32_t> weights;  // (count, max_taps): 22 fractional bits, 0 past `taps`

  // The same weights for 16-bit multipliers: weight = high * 2^11 + low, 0 <= low < 2^11. Two taps
  // share an int32 (even tap in the low half). (count, pair_count(), {high, low}).
  std::vector<int32_t> pairs;
  std::vector<int32_t> quads;  // the same for the rows' kernels (quad_sums_inl.h), which make them
  std::vector<double> exact;   // (max_taps): scratch of the plain twin, one pixel's weights

  int pair_count() const { return (max_taps + 1) / 2; }
  const int32_t* pairs_of(int i) const { return pairs.data() + int64_t{2} * i * pair_count(); }
  int64_t scratch_bytes() const;
};

inline constexpr int kWeightBits = 22;     // Pillow's PRECISION_BITS
inline constexpr int kLowWeightBits = 11;  // how many of them are in `low`

// Rebuilds `table` unless it is already the table of `key`.
void build_resample_table(const ResampleKey& key, ResampleTable& table);

// Builds both axes of a resize.
void build_resample_tables(const CropSpec& spec, ResampleTable& across, ResampleTable& down);

// The plain twin, which makes one output pixel after the other; it rebuilds the table on every
// call. It also makes the tables that the vector code refuses: those of very strong reductions, and
// of filters that need a sine per weight (hamming, lanczos) or no weights (nearest).
void build_resample_table_reference(const ResampleKey& key, ResampleTable& table);

}  // namespace stoker
