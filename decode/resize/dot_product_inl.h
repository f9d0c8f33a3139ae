// Sums of products of pairs of 16-bit numbers. Included once per instruction set, after highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_DOT_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_DOT_PRODUCT_INL_H
#undef STOKER_DECODE_DOT_PRODUCT_INL_H
#else
#define STOKER_DECODE_DOT_PRODUCT_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The same as ReorderWidenMulAccumulate. Machines with AVX-512 VNNI do it with one instruction
// instead of two; not every version of Highway and of the compilers knows that the instructions of
// AVX3_DL include it.
template <class D32, class V16, class V32>
HWY_INLINE V32 add_products(D32 d32, V16 a, V16 b, V32 sum, V32& odd) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL
  (void)d32;
  (void)odd;
  asm("vpdpwssd %[b], %[a], %[sum]" : [sum] "+v"(sum.raw) : [a] "v"(a.raw), [b] "v"(b.raw));
  return sum;
#else
  return hn::ReorderWidenMulAccumulate(d32, a, b, sum, odd);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
