// Vectors of fp32 from activations in fp32 or bf16, and back, for one instruction set; included
// once for each, after highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_TRAIN_ACTIVATION_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_TRAIN_ACTIVATION_VALUES_INL_H
#undef STOKER_TRAIN_ACTIVATION_VALUES_INL_H
#else
#define STOKER_TRAIN_ACTIVATION_VALUES_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Lanes of bf16 that become a vector of floats.
template <class D>
using HalvesOf = hn::Rebind<uint16_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> widened(D d, hn::Vec<HalvesOf<D>> v) {
  const hn::Rebind<uint32_t, D> words;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, v)));
}

// Rounds as to_bf16() does, but for a NaN whose last bits are set, which no operation makes.
template <class D>
HWY_INLINE hn::Vec<HalvesOf<D>> rounded(D /*d*/, hn::Vec<D> v) {
  const hn::Rebind<int32_t, D> signed_words;
  const hn::Rebind<uint32_t, D> words;
  const auto bits = hn::BitCast(words, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto up = hn::Add(bits, hn::Add(hn::Set(words, 0x7fff), odd));
  return hn::DemoteTo(HalvesOf<D>(), hn::BitCast(signed_words, hn::ShiftRight<16>(up)));
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const uint16_t* from) {
  return widened(d, hn::LoadU(HalvesOf<D>(), from));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* to) {
  hn::StoreU(v, d, to);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, uint16_t* to) {
  hn::StoreU(rounded(d, v), HalvesOf<D>(), to);
}

// The first `count` of a vector's values, of which there are more than none and fewer than all; the
// other lanes are zero, or stay as they are. Where masked operations touch all lanes, the others
// may lie outside of the tensor.
#if HWY_MEM_OPS_MIGHT_FAULT

template <class D, class Number>
HWY_INLINE hn::Vec<D> load_some(D d, int count, const Number* from) {
  HWY_ALIGN Number copy[hn::MaxLanes(D())] = {};
  for (int i = 0; i < count; ++i) copy[i] = from[i];
  return load(d, copy);
}
template <class D, class Number>
HWY_INLINE void store_some(D d, int count, hn::Vec<D> v, Number* to) {
  HWY_ALIGN Number copy[hn::MaxLanes(D())];
  store(d, v, copy);
  for (int i = 0; i < count; ++i) to[i] = copy[i];
}

#else

template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, int count, const float* from) {
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, int count, const uint16_t* from) {
  const HalvesOf<D> halves;
  return widened(d, hn::MaskedLoad(hn::FirstN(halves, count), halves, from));
}
template <class D>
HWY_INLINE void store_some(D d, int count, hn::Vec<D> v, float* to) {
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
}
template <class D>
HWY_INLINE void store_some(D d, int count, hn::Vec<D> v, uint16_t* to) {
  const HalvesOf<D> halves;
  hn::BlendedStore(rounded(d, v), hn::FirstN(halves, count), halves, to);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif
