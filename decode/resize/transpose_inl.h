// Transposes 8 x 8 lanes of 16 bits in every 128-bit block of eight vectors, and stores such
// blocks; and 4 x 4 lanes of 32 bits. Included once per instruction set, after highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_TRANSPOSE_INL_H
#undef STOKER_DECODE_TRANSPOSE_INL_H
#else
#define STOKER_DECODE_TRANSPOSE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_RVV

template <class D>
HWY_INLINE void transpose_8x8(D d16, hwy::HWY_NAMESPACE::Vec<D>* x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RepartitionToWide<D> d32;
  const hn::RepartitionToWide<decltype(d32)> d64;
  hn::Vec<decltype(d32)> a[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = hn::BitCast(d32, hn::InterleaveLower(d16, x[2 * i], x[2 * i + 1]));
    a[2 * i + 1] = hn::BitCast(d32, hn::InterleaveUpper(d16, x[2 * i], x[2 * i + 1]));
  }
  hn::Vec<decltype(d64)> b[8];
  for (int i = 0; i < 8; i += 4) {
    b[i] = hn::BitCast(d64, hn::InterleaveLower(d32, a[i], a[i + 2]));
    b[i + 1] = hn::BitCast(d64, hn::InterleaveUpper(d32, a[i], a[i + 2]));
    b[i + 2] = hn::BitCast(d64, hn::InterleaveLower(d32, a[i + 1], a[i + 3]));
    b[i + 3] = hn::BitCast(d64, hn::InterleaveUpper(d32, a[i + 1], a[i + 3]));
  }
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = hn::BitCast(d16, hn::InterleaveLower(d64, b[i], b[i + 4]));
    x[2 * i + 1] = hn::BitCast(d16, hn::InterleaveUpper(d64, b[i], b[i + 4]));
  }
}

// Stores the 128-bit blocks of `v` to places `stride` values apart.
template <class D, class V, class T>
HWY_INLINE void store_blocks(D d, V v, T* out, ptrdiff_t stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr size_t kBlocks = hn::MaxLanes(D()) * sizeof(T) / 16;
  if constexpr (kBlocks <= 1) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), out, stride);
    store_blocks(half, hn::UpperHalf(half, v), out + ptrdiff_t{kBlocks / 2} * stride, stride);
  }
}

#endif

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3

// Transposes 4 x 4 lanes of 32 bits in every 128-bit block of four vectors.
HWY_INLINE void transpose_4x4(const __m512i* from, __m512i* to) {
  const __m512i a = _mm512_unpacklo_epi32(from[0], from[1]);
  const __m512i b = _mm512_unpackhi_epi32(from[0], from[1]);
  const __m512i c = _mm512_unpacklo_epi32(from[2], from[3]);
  const __m512i d = _mm512_unpackhi_epi32(from[2], from[3]);
  to[0] = _mm512_unpacklo_epi64(a, c);
  to[1] = _mm512_unpackhi_epi64(a, c);
  to[2] = _mm512_unpacklo_epi64(b, d);
  to[3] = _mm512_unpackhi_epi64(b, d);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
