// Maps bytes by a table of 256. Included once per instruction set, after highway.h, by kernels of
// decode/pixel that define HWY_WANT_AVX3_DL: AVX-512 VBMI looks a byte up in 128 others with one
// instruction, and Highway leaves the set that contains it out unless it is asked for.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_BYTE_TABLE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_BYTE_TABLE_INL_H
#undef STOKER_DECODE_BYTE_TABLE_INL_H
#else
#define STOKER_DECODE_BYTE_TABLE_INL_H
#endif

#include <cstddef>

#include "decode/pixel/byte_table.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void map_bytes_plainly(const ByteTable& table, uint8_t* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = table[bytes[i]];
}

#if HWY_TARGET == HWY_AVX3_DL

constexpr size_t kLanes = 64;

// A table in four registers.
struct VectorTable {
  explicit VectorTable(const ByteTable& table) {
    for (size_t i = 0; i < 4; ++i) part[i] = _mm512_loadu_si512(table.data() + kLanes * i);
  }
  __m512i operator()(__m512i v) const {
    // A lookup in two registers ignores the highest bit, which then chooses between two lookups.
    const __m512i lower = _mm512_permutex2var_epi8(part[0], v, part[1]);
    const __m512i upper = _mm512_permutex2var_epi8(part[2], v, part[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), lower, upper);
  }
  __m512i part[4];
};

HWY_INLINE void map_bytes(const ByteTable& given, uint8_t* bytes, size_t count) {
  const VectorTable table(given);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    _mm512_storeu_si512(bytes + i, table(_mm512_loadu_si512(bytes + i)));
  }
  const __mmask64 rest = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count - i));
  const __m512i tail = _mm512_maskz_loadu_epi8(rest, bytes + i);
  _mm512_mask_storeu_epi8(bytes + i, rest, table(tail));
}

#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// Sixteen lookups in 16 bytes each, of which all but one give 0. Shorter vectors would take longer
// than looking up byte by byte.
HWY_INLINE void map_bytes(const ByteTable& table, uint8_t* bytes, size_t count) {
  const hn::ScalableTag<uint8_t> d8;
  const size_t lanes = hn::Lanes(d8);
  const auto most = hn::Set(d8, 0x70);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d8, bytes + i);
    auto sum = hn::Zero(d8);
    for (size_t row = 0; row < 16; ++row) {
      // If the upper four bits are `row`, they become 7, which the shuffle of x86 ignores; else the
      // highest one is set, for which it gives 0.
      const auto index =
          hn::SaturatedAdd(hn::Xor(v, hn::Set(d8, static_cast<uint8_t>(row << 4))), most);
      sum =
          hn::Or(sum, hn::TableLookupBytesOr0(hn::LoadDup128(d8, table.data() + 16 * row), index));
    }
    hn::StoreU(sum, d8, bytes + i);
  }
  map_bytes_plainly(table, bytes + i, count - i);
}

#else

HWY_INLINE void map_bytes(const ByteTable& table, uint8_t* bytes, size_t count) {
  map_bytes_plainly(table, bytes, count);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
