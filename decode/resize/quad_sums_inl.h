// Pillow's weighted sums on machines with AVX-512 VNNI, four taps of sixteen sums at a time.
// Included once per instruction set, after highway.h.
//
// A 32-bit lane has the samples of four neighbouring taps, a quad; one instruction multiplies them
// by four signed bytes and adds the products to the lane. A weight is three such bytes: a 2^16 + b
// 2^8 + c. As no weight of a normalised filter comes near 2, a fits.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_QUAD_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_QUAD_SUMS_INL_H
#undef STOKER_DECODE_QUAD_SUMS_INL_H
#else
#define STOKER_DECODE_QUAD_SUMS_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include "decode/resize/resample_table.h"
#include "decode/resize/transpose_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#undef STOKER_DECODE_HAS_QUADS
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL
#define STOKER_DECODE_HAS_QUADS 1

// A 16-byte group of quads is written at once.
inline constexpr int kQuadsAtOnce = 4;

// Returns the room for the quads of an output: its taps, and up to three before them.
HWY_INLINE int quads_per_output(const ResampleTable& table) {
  return (table.max_taps + 3 + 4 * kQuadsAtOnce - 1) / (4 * kQuadsAtOnce) * kQuadsAtOnce;
}

// The quad in which an output's first tap is, and the tap's place in it. `aligned`: quads begin at
// every fourth sample from table.source_begin; otherwise at an output's first.
HWY_INLINE int first_quad(const ResampleTable& table, int output) {
  return (table.first[output] - table.source_begin) / 4;
}
HWY_INLINE int place_in_quad(const ResampleTable& table, int output, bool aligned) {
  return aligned ? (table.first[output] - table.source_begin) % 4 : 0;
}

// Writes the weights of every output, 3 quads_per_output() values: those of its quads' a, then b,
// then c.
HWY_INLINE void split_weights(const ResampleTable& table, bool aligned, int32_t* quads) {
  const int room = quads_per_output(table);
  for (int i = 0; i < table.key.count; ++i, quads += 3 * room) {
    const int place = place_in_quad(table, i, aligned);
    const int32_t* weights = table.weights.data() + int64_t{i} * table.max_taps - place;
    for (int t = 0; t < 4 * room; t += 16) {
      const auto upto = [t](int end) {
        return static_cast<__mmask16>((1u << std::clamp(end - t, 0, 16)) - 1);
      };
      const __mmask16 used = upto(place + table.taps[i]) & ~upto(place);
      const __m512i w = _mm512_maskz_loadu_epi32(used, weights + t);
      const auto low_byte = [](__m512i v) {
        return _mm512_srai_epi32(_mm512_slli_epi32(v, 24), 24);
      };
      const __m512i upper = _mm512_srai_epi32(_mm512_sub_epi32(w, low_byte(w)), 8);
      const __m512i a = _mm512_srai_epi32(_mm512_sub_epi32(upper, low_byte(upper)), 8);
      const auto store = [&](int part, __m512i v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(quads + part * room + t / 4),
                         _mm512_cvtepi32_epi8(v));
      };
      store(0, a);
      store(1, upper);
      store(2, w);
    }
  }
}

// The weights of a quad in every lane.
struct QuadWeights {
  // `weights`: of a; `room` values further are those of b, then of c.
  HWY_INLINE QuadWeights(const int32_t* weights, int room)
      : a(_mm512_set1_epi32(weights[0])),
        b(_mm512_set1_epi32(weights[room])),
        c(_mm512_set1_epi32(weights[2 * room])) {}
  __m512i a, b, c;
};

// Running sums of quads.
class QuadSums {
 public:
  HWY_INLINE QuadSums()
      : a_(_mm512_setzero_si512()), b_(_mm512_setzero_si512()), c_(_mm512_setzero_si512()) {}

  HWY_INLINE void add(__m512i samples, const QuadWeights& weights) {
    add_products(samples, weights.a, a_);
    add_products(samples, weights.b, b_);
    add_products(samples, weights.c, c_);
  }

  // Returns the sums, rounded, without their fractions.
  HWY_INLINE __m512i value() const {
    const __m512i half = _mm512_set1_epi32(1 << (kWeightBits - 1));
    const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(a_, 8), b_);
    const __m512i lower = _mm512_add_epi32(c_, half);
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), lower), kWeightBits);
  }

 private:
  // Not every compiler knows that the set has this instruction.
  HWY_INLINE static void add_products(__m512i samples, __m512i weights, __m512i& sum) {
    asm("vpdpbusd %[weights], %[samples], %[sum]"
        : [sum] "+v"(sum)
        : [samples] "v"(samples), [weights] "v"(weights));
  }

  __m512i a_, b_, c_;
};

// Returns the bytes of four vectors of sums, clipped to 0..255: four lanes of each in every block
// of 128 bits.
HWY_INLINE __m512i clipped_bytes(__m512i a, __m512i b, __m512i c, __m512i d) {
  return _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
}

// Transposes 16 x 16 lanes of 32 bits.
HWY_INLINE void transpose_16x16(__m512i* v) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 4) transpose_4x4(v + i, w + i);
  // Now blocks are in place within their groups of four; transpose the 4 x 4 blocks.
  for (int i = 0; i < 4; ++i) {
    const __m512i a = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
    v[i] = _mm512_shuffle_i32x4(a, b, 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
}

#else
#define STOKER_DECODE_HAS_QUADS 0
#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
