// quad_sums_inl.h has instructions of the set that Highway calls AVX3_DL and leaves out unless it
// is asked for.
#define HWY_WANT_AVX3_DL

#include "decode/resize/resize_kernels.h"

#include <algorithm>
#include <cstring>

// The kernels rely on 128-bit blocks and on the lane order of packing, which scalable vectors
// handle differently: Arm machines with SVE have NEON too, RISC-V takes the scalar kernels.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/resize_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/resize/quad_sums_inl.h"
#include "decode/resize/weighted_sum_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

int row_group() { return 1; }

void split(bool, ResampleTable&) {}

template <class Load>
uint8_t weighted_sum(const Load& load, const ResampleTable& table, int index) {
  const int32_t* weights = table.weights.data() + static_cast<size_t>(index) * table.max_taps;
  int32_t sum = 1 << (kWeightBits - 1);
  for (int t = 0; t < table.taps[index]; ++t) sum += load(t) * weights[t];
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void rows_horizontal(const uint8_t* const* rows, int row_count, const ResampleTable& table,
                     uint8_t*, uint8_t* const* out_rows) {
  for (int r = 0; r < row_count; ++r) {
    for (int i = 0; i < table.key.count; ++i) {
      const uint8_t* first = rows[r] + 3 * static_cast<size_t>(table.first[i] - table.source_begin);
      for (size_t c = 0; c < 3; ++c) {
        const auto load = [&](int t) { return first[3 * static_cast<size_t>(t) + c]; };
        out_rows[r][3 * static_cast<size_t>(i) + c] = weighted_sum(load, table, i);
      }
    }
  }
}

void row_vertical(const uint8_t* const* rows, const ResampleTable& table, int index, size_t bytes,
                  uint8_t* out) {
  for (size_t b = 0; b < bytes; ++b) {
    out[b] = weighted_sum([&](int t) { return rows[t][b]; }, table, index);
  }
}

void add_rows(const uint8_t* const* rows, const int32_t* weights, int row_count, size_t bytes,
              int32_t* sums) {
  resize_add_rows_reference(rows, weights, row_count, bytes, sums);
}

void finish_sums(const int32_t* sums, size_t bytes, uint8_t* out) {
  resize_finish_sums_reference(sums, bytes, out);
}

#else

// The remaining targets have no vectors wider than 64 bytes.
using D8 = hn::ScalableTag<uint8_t>;
using Block8 = hn::Full128<uint8_t>;
using Block32 = hn::Full128<uint32_t>;
using Block64 = hn::Full128<uint64_t>;

int row_group() { return static_cast<int>(hn::Lanes(D8()) / 4); }

#if STOKER_DECODE_HAS_QUADS

void split(bool aligned, ResampleTable& table) {
  table.quads.resize(size_t{3} * static_cast<size_t>(table.key.count) *
                     static_cast<size_t>(quads_per_output(table)));
  split_weights(table, aligned, table.quads.data());
}

constexpr int kBlockQuads = 5;  // of each channel: as many as a vector has room for
constexpr int kBlockPixels = 4 * kBlockQuads;

// The bytes of twenty RGB pixels, as quads of red, green and blue in turn.
struct QuadOrder {
  constexpr QuadOrder() {
    for (int i = 0; i < 64; ++i) {
      const int quad = i / 12, channel = i / 4 % 3, pixel = i % 4;
      bytes[i] = static_cast<uint8_t>(i < 60 ? 12 * quad + 3 * pixel + channel : 63);
    }
  }
  alignas(64) uint8_t bytes[64] = {};
};
constexpr QuadOrder kQuadOrder;

// Packs sixteen rows of RGB pixels: a vector has one quad of a channel from each row. Those of the
// channels take turns.
HWY_INLINE void pack_quads(const uint8_t* const* rows, int width, __m512i* quads) {
  const __m512i order = _mm512_load_si512(kQuadOrder.bytes);
  for (int x = 0; x < width; x += kBlockPixels, quads += 3 * kBlockQuads) {
    const int count = std::min(kBlockPixels, width - x);
    const __mmask64 used = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(3 * count));
    __m512i v[16];
    for (int r = 0; r < 16; ++r) {
      const __m512i pixels = _mm512_maskz_loadu_epi8(used, rows[r] + 3 * ptrdiff_t{x});
      v[r] = _mm512_permutexvar_epi8(order, pixels);
    }
    transpose_16x16(v);
    for (int i = 0; i < 3 * kBlockQuads; ++i) _mm512_store_si512(quads + i, v[i]);
  }
}

// Makes pixels of the channels' bytes: {block: four rows} x {red, green, blue, -} x {row} becomes
// {row} x {red, green, blue, -}.
struct RowOrder {
  constexpr RowOrder() {
    for (int i = 0; i < 64; ++i) {
      const int row = i / 4, channel = i % 4;
      bytes[i] = static_cast<uint8_t>(row / 4 * 16 + channel * 4 + row % 4);
    }
  }
  alignas(64) uint8_t bytes[64] = {};
};
constexpr RowOrder kRowOrder;

// Leaves out every fourth byte.
struct SqueezeOrder {
  constexpr SqueezeOrder() {
    for (int i = 0; i < 48; ++i) bytes[i] = static_cast<uint8_t>(i / 3 * 4 + i % 3);
  }
  alignas(64) uint8_t bytes[64] = {};
};
constexpr SqueezeOrder kSqueezeOrder;

// Makes rows of sixteen rows' pixels, a vector for each column.
HWY_INLINE void unpack_quads(const __m512i* columns, int width, uint8_t* const* rows,
                             int row_count) {
  const __m512i by_row = _mm512_load_si512(kRowOrder.bytes);
  const __m512i squeeze = _mm512_load_si512(kSqueezeOrder.bytes);
  for (int x = 0; x < width; x += 16) {
    const int count = std::min(16, width - x);
    const __mmask64 used = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(3 * count));
    __m512i v[16];
    for (int i = 0; i < 16; ++i) v[i] = _mm512_permutexvar_epi8(by_row, columns[x + i]);
    transpose_16x16(v);
    for (int r = 0; r < row_count; ++r) {
      _mm512_mask_storeu_epi8(rows[r] + 3 * ptrdiff_t{x}, used,
                              _mm512_permutexvar_epi8(squeeze, v[r]));
    }
  }
}

void rows_horizontal(const uint8_t* const* rows, int row_count, const ResampleTable& table,
                     uint8_t* scratch, uint8_t* const* out_rows) {
  const int source_width = table.source_end - table.source_begin;
  const int blocks = (source_width + kBlockPixels - 1) / kBlockPixels;
  auto* const source = reinterpret_cast<__m512i*>(scratch);  // (quad, channel, row) of quads
  __m512i* const result = source + ptrdiff_t{3} * kBlockQuads * blocks;  // of each column
  const uint8_t* sixteen[16];
  for (int r = 0; r < 16; ++r) sixteen[r] = rows[std::min(r, row_count - 1)];
  pack_quads(sixteen, source_width, source);
  const int room = quads_per_output(table);
  const int32_t* weights = table.quads.data();
  for (int i = 0; i < table.key.count; ++i, weights += 3 * room) {
    const __m512i* samples = source + ptrdiff_t{3} * first_quad(table, i);
    const int quads = (place_in_quad(table, i, true) + table.taps[i] + 3) / 4;
    QuadSums red, green, blue;
    for (int q = 0; q < quads; ++q, samples += 3) {
      const QuadWeights w(weights + q, room);
      red.add(samples[0], w);
      green.add(samples[1], w);
      blue.add(samples[2], w);
    }
    _mm512_store_si512(result + i, clipped_bytes(red.value(), green.value(), blue.value(),
                                                 _mm512_setzero_si512()));
  }
  unpack_quads(result, table.key.count, out_rows, row_count);
}

void row_vertical(const uint8_t* const* rows, const ResampleTable& table, int index, size_t bytes,
                  uint8_t* out) {
  const int room = quads_per_output(table), taps = table.taps[index];
  const int32_t* const weights = table.quads.data() + int64_t{3} * room * index;
  for (size_t b = 0; b < bytes; b += 64) {
    QuadSums s0, s1, s2, s3;
    for (int t = 0; t < taps; t += 4) {
      // The weights of rows after the last one are zero.
      const auto row = [&](int k) {
        return _mm512_loadu_si512(rows[std::min(t + k, taps - 1)] + b);
      };
      const __m512i r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const __m512i lower01 = _mm512_unpacklo_epi8(r0, r1), upper01 = _mm512_unpackhi_epi8(r0, r1);
      const __m512i lower23 = _mm512_unpacklo_epi8(r2, r3), upper23 = _mm512_unpackhi_epi8(r2, r3);
      const QuadWeights w(weights + t / 4, room);
      s0.add(_mm512_unpacklo_epi16(lower01, lower23), w);
      s1.add(_mm512_unpackhi_epi16(lower01, lower23), w);
      s2.add(_mm512_unpacklo_epi16(upper01, upper23), w);
      s3.add(_mm512_unpackhi_epi16(upper01, upper23), w);
    }
    const auto left = static_cast<unsigned>(std::min<size_t>(bytes - b, 64));
    _mm512_mask_storeu_epi8(out + b, _bzhi_u64(~uint64_t{0}, left),
                            clipped_bytes(s0.value(), s1.value(), s2.value(), s3.value()));
  }
}

#else

void split(bool, ResampleTable&) {}

// Transposes 4 x 4 lanes of 32 bits: from four pixels of four rows to four rows of four pixels, and
// back.
HWY_INLINE void transpose(hn::Vec<Block8>* b) {
  const Block32 d32;
  const Block64 d64;
  const auto r0 = hn::BitCast(d32, b[0]), r1 = hn::BitCast(d32, b[1]);
  const auto r2 = hn::BitCast(d32, b[2]), r3 = hn::BitCast(d32, b[3]);
  const auto a = hn::BitCast(d64, hn::InterleaveLower(d32, r0, r1));
  const auto c = hn::BitCast(d64, hn::InterleaveLower(d32, r2, r3));
  const auto e = hn::BitCast(d64, hn::InterleaveUpper(d32, r0, r1));
  const auto g = hn::BitCast(d64, hn::InterleaveUpper(d32, r2, r3));
  const Block8 d8;
  b[0] = hn::BitCast(d8, hn::InterleaveLower(d64, a, c));
  b[1] = hn::BitCast(d8, hn::InterleaveUpper(d64, a, c));
  b[2] = hn::BitCast(d8, hn::InterleaveLower(d64, e, g));
  b[3] = hn::BitCast(d8, hn::InterleaveUpper(d64, e, g));
}

alignas(16) constexpr uint8_t kSpread[16] = {0, 1, 2, 0x80, 3, 4,  5,  0x80,
                                             6, 7, 8, 0x80, 9, 10, 11, 0x80};
alignas(16) constexpr uint8_t kSqueeze[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                              10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};

HWY_INLINE hn::Vec<Block8> shuffle(hn::Vec<Block8> v, const uint8_t* order) {
  return hn::TableLookupBytesOr0(v, hn::Load(Block8(), order));
}

// Packs four rows of RGB pixels into one 16-byte block per column, {row 0..3} x {R, G, B, 0}; the
// blocks of neighbouring columns are `vector_bytes` apart.
HWY_INLINE void pack_columns(const uint8_t* const* rows, int width, size_t vector_bytes,
                             uint8_t* columns) {
  const Block8 d8;
  for (int x = 0; x < width; x += 4) {
    const size_t left = 3 * static_cast<size_t>(width - x);
    hn::Vec<Block8> b[4];
    for (int r = 0; r < 4; ++r) {
      const uint8_t* from = rows[r] + 3 * static_cast<size_t>(x);
      alignas(16) uint8_t tail[16];
      if (left < 16) {  // a full load would read past the row
        std::memcpy(tail, from, std::min<size_t>(left, 12));
        from = tail;
      }
      b[r] = shuffle(hn::LoadU(d8, from), kSpread);
    }
    transpose(b);
    const int count = std::min(4, width - x);
    for (int i = 0; i < count; ++i) hn::Store(b[i], d8, columns + (x + i) * vector_bytes);
  }
}

// Reverses pack_columns for `rows_left` of the four rows.
HWY_INLINE void unpack_columns(const uint8_t* columns, int width, size_t vector_bytes,
                               uint8_t* const* rows, int rows_left) {
  const Block8 d8;
  for (int x = 0; x < width; x += 4) {
    const size_t left = 3 * static_cast<size_t>(width - x);
    hn::Vec<Block8> b[4];
    for (int i = 0; i < 4; ++i) {
      b[i] = hn::Load(d8, columns + std::min(x + i, width - 1) * vector_bytes);
    }
    transpose(b);
    for (int r = 0; r < rows_left; ++r) {
      const auto pixels = shuffle(b[r], kSqueeze);
      uint8_t* to = rows[r] + 3 * static_cast<size_t>(x);
      if (left >= 16) {
        hn::StoreU(pixels, d8, to);  // the next step overwrites the four extra bytes
      } else {
        alignas(16) uint8_t tail[16];
        hn::Store(pixels, d8, tail);
        std::memcpy(to, tail, std::min<size_t>(left, 12));
      }
    }
  }
}

void rows_horizontal(const uint8_t* const* rows, int row_count, const ResampleTable& table,
                     uint8_t* scratch, uint8_t* const* out_rows) {
  const D8 d8;
  const size_t vector_bytes = hn::Lanes(d8);
  const int source_width = table.source_end - table.source_begin;
  uint8_t* const source = scratch;                                // (source_width, rows, 4) u8
  uint8_t* const result = scratch + source_width * vector_bytes;  // (count, rows, 4) u8
  for (int r = 0; r < row_count; r += 4) {
    const uint8_t* four[4];
    for (int i = 0; i < 4; ++i) four[i] = rows[std::min(r + i, row_count - 1)];
    pack_columns(four, source_width, vector_bytes, source + 4 * static_cast<size_t>(r));
  }
  const int32_t* pairs = table.pairs.data();
  for (int i = 0; i < table.key.count; ++i, pairs += 2 * table.pair_count()) {
    const uint8_t* first = source + (table.first[i] - table.source_begin) * vector_bytes;
    const auto load = [&](int t) HWY_ATTR { return hn::Load(d8, first + t * vector_bytes); };
    hn::Store(weighted_sum<true>(d8, load, table.taps[i], pairs), d8, result + i * vector_bytes);
  }
  for (int r = 0; r < row_count; r += 4) {
    unpack_columns(result + 4 * static_cast<size_t>(r), table.key.count, vector_bytes, out_rows + r,
                   std::min(4, row_count - r));
  }
}

void row_vertical(const uint8_t* const* rows, const ResampleTable& table, int index, size_t bytes,
                  uint8_t* out) {
  const D8 d8;
  const size_t vector_bytes = hn::Lanes(d8);
  const int taps = table.taps[index];
  const int32_t* pairs = table.pairs.data() + static_cast<size_t>(index) * table.pair_count() * 2;
  for (size_t b = 0; b < bytes; b += vector_bytes) {
    const auto load = [&](int t) HWY_ATTR { return hn::LoadU(d8, rows[t] + b); };
    const auto sum = weighted_sum<true>(d8, load, taps, pairs);
    if (bytes - b >= vector_bytes) {
      hn::StoreU(sum, d8, out + b);
    } else {
      HWY_ALIGN uint8_t tail[kMaxVectorBytes];
      hn::Store(sum, d8, tail);
      std::memcpy(out + b, tail, bytes - b);
    }
  }
}

#endif

using Sums = hn::ScalableTag<int32_t>;
using SumBytes = hn::Rebind<uint8_t, Sums>;

void add_rows(const uint8_t* const* rows, const int32_t* weights, int row_count, size_t bytes,
              int32_t* sums) {
  const Sums d32;
  const size_t lanes = hn::Lanes(d32);
  const size_t vectors_end = bytes / (2 * lanes) * (2 * lanes);
  for (size_t b = 0; b < vectors_end; b += 2 * lanes) {
    auto first = hn::LoadU(d32, sums + b);
    auto second = hn::LoadU(d32, sums + b + lanes);
    for (int r = 0; r < row_count; ++r) {
      const auto weight = hn::Set(d32, weights[r]);
      const auto bytes_of = [&](size_t at) HWY_ATTR {
        return hn::PromoteTo(d32, hn::LoadU(SumBytes(), rows[r] + at));
      };
      first = hn::Add(first, hn::Mul(bytes_of(b), weight));
      second = hn::Add(second, hn::Mul(bytes_of(b + lanes), weight));
    }
    hn::StoreU(first, d32, sums + b);
    hn::StoreU(second, d32, sums + b + lanes);
  }
  const uint8_t* tails[kMaxRowGroup];
  for (int r = 0; r < row_count; ++r) tails[r] = rows[r] + vectors_end;
  resize_add_rows_reference(tails, weights, row_count, bytes - vectors_end, sums + vectors_end);
}

void finish_sums(const int32_t* sums, size_t bytes, uint8_t* out) {
  const Sums d32;
  const size_t lanes = hn::Lanes(d32);
  const size_t vectors_end = bytes / lanes * lanes;
  for (size_t b = 0; b < vectors_end; b += lanes) {
    const auto whole = hn::ShiftRight<kWeightBits>(hn::LoadU(d32, sums + b));
    hn::StoreU(hn::DemoteTo(SumBytes(), whole), SumBytes(), out + b);
  }
  resize_finish_sums_reference(sums + vectors_end, bytes - vectors_end, out + vectors_end);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

void resize_add_rows_reference(const uint8_t* const* rows, const int32_t* weights, int row_count,
                               size_t bytes, int32_t* sums) {
  for (size_t b = 0; b < bytes; ++b) {
    for (int r = 0; r < row_count; ++r) sums[b] += rows[r][b] * weights[r];
  }
}

void resize_finish_sums_reference(const int32_t* sums, size_t bytes, uint8_t* out) {
  for (size_t b = 0; b < bytes; ++b) {
    out[b] = static_cast<uint8_t>(std::clamp(sums[b] >> kWeightBits, 0, 255));
  }
}

HWY_EXPORT(row_group);
HWY_EXPORT(split);
HWY_EXPORT(add_rows);
HWY_EXPORT(finish_sums);
HWY_EXPORT(rows_horizontal);
HWY_EXPORT(row_vertical);

int resize_row_group() { return HWY_DYNAMIC_DISPATCH(row_group)(); }

size_t resize_scratch_bytes(int source_width, int out_width) {
  // Kernels work on whole groups of columns.
  return (static_cast<size_t>(source_width) + out_width + 2 * kMaxRowGroup) * kMaxVectorBytes;
}

void resize_split_weights(bool aligned, ResampleTable& table) {
  if (!table.identity) HWY_DYNAMIC_DISPATCH(split)(aligned, table);
}

void resize_rows_horizontal(const uint8_t* const* rows, int row_count, const ResampleTable& table,
                            uint8_t* scratch, uint8_t* const* out_rows) {
  HWY_DYNAMIC_DISPATCH(rows_horizontal)(rows, row_count, table, scratch, out_rows);
}

void resize_row_vertical(const uint8_t* const* rows, const ResampleTable& table, int index,
                         size_t bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(row_vertical)(rows, table, index, bytes, out);
}

void resize_add_rows(const uint8_t* const* rows, const int32_t* weights, int row_count,
                     size_t bytes, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(add_rows)(rows, weights, row_count, bytes, sums);
}

void resize_finish_sums(const int32_t* sums, size_t bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(finish_sums)(sums, bytes, out);
}

}  // namespace stoker
#endif
