// AVX-512 VBMI2 drops bytes from a vector with one instruction; Highway calls the set of
// instructions that contains it AVX3_DL and leaves it out unless it is asked for.
#define HWY_WANT_AVX3_DL

#include "decode/jpeg/stuffing.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/stuffing.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Goes on byte by byte.
HWY_INLINE const uint8_t* unstuffed_rest(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  while (from < end) {
    if (*from == 0xFF) {
      if (end - from < 2 || from[1] != 0) return from;
      ++from;
      *to++ = 0xFF;
    } else {
      *to++ = *from;
    }
    ++from;
  }
  return end;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

// Stuffing comes every few hundred bytes, at places that no branch can predict, so every vector is
// handled as if it had some.
const uint8_t* unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  constexpr ptrdiff_t kLanes = 64;
  const __m512i ff = _mm512_set1_epi8(-1);
  uint64_t carried = 0;  // 1 if the byte before this vector is FF
  uint8_t* out = to;
  for (; end - from > kLanes; from += kLanes) {
    const __m512i bytes = _mm512_loadu_si512(from);
    const uint64_t is_ff = _mm512_cmpeq_epi8_mask(bytes, ff);
    const uint64_t before_nonzero = _mm512_test_epi8_mask(_mm512_loadu_si512(from + 1), ff);
    if (HWY_UNLIKELY((is_ff & before_nonzero) != 0)) break;
    const uint64_t kept = ~(is_ff << 1 | carried);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
    out += __builtin_popcountll(kept);
    carried = is_ff >> 63;
  }
  to = out;
  return unstuffed_rest(from + carried, end, to);
}

#else

const uint8_t* unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, 0xFF);
  // Handles a vector at a time, and looks at the byte after it, to see what follows an FF.
  while (static_cast<size_t>(end - from) > lanes) {
    const auto bytes = hn::LoadU(d, from);
    hn::StoreU(bytes, d, to);
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(bytes, ff));
    if (at < 0) {
      from += lanes;
      to += lanes;
      continue;
    }
    if (from[at + 1] != 0) {
      to += at;
      return from + at;
    }
    to += at + 1;
    from += at + 2;
  }
  return unstuffed_rest(from, end, to);
}

#endif

uint32_t count_of_ff(const uint8_t* bytes, size_t count) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, 0xFF);
  size_t found = 0, i = 0;
  for (; i + lanes <= count; i += lanes) {
    found += hn::CountTrue(d, hn::Eq(hn::LoadU(d, bytes + i), ff));
  }
  for (; i < count; ++i) found += bytes[i] == 0xFF;
  return static_cast<uint32_t>(found);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(unstuffed);
HWY_EXPORT(count_of_ff);

const uint8_t* copy_unstuffed(const uint8_t* from, const uint8_t* end, uint8_t*& to) {
  return HWY_DYNAMIC_DISPATCH(unstuffed)(from, end, to);
}

uint32_t count_ff(const uint8_t* bytes, size_t count) {
  return HWY_DYNAMIC_DISPATCH(count_of_ff)(bytes, count);
}

}  // namespace stoker
#endif
