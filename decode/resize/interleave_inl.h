// Interleaves planes of bytes into a row of RGB. Included once per instruction set, after
// highway.h.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_INTERLEAVE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_INTERLEAVE_INL_H
#undef STOKER_DECODE_INTERLEAVE_INL_H
#else
#define STOKER_DECODE_INTERLEAVE_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_RVV

namespace hn = hwy::HWY_NAMESPACE;

// Writes `width` pixels. `channel(c, x)` returns a vector of bytes of colour c from pixel x on; it
// may be called for pixels after the last. Grey has only channel 0.
template <bool kGrey, class D8, class Channel>
HWY_INLINE void interleave_row(D8 d, const Channel& channel, int width, uint8_t* out) {
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto store = [&](int x, uint8_t* to) HWY_ATTR {
    const auto red = channel(0, x);
    hn::StoreInterleaved3(red, kGrey ? red : channel(1, x), kGrey ? red : channel(2, x), d, to);
  };
  int x = 0;
  for (; x + lanes <= width; x += lanes) store(x, out + 3 * static_cast<size_t>(x));
  if (x == width) return;
  HWY_ALIGN uint8_t tail[3 * hn::MaxLanes(D8())];
  store(x, tail);
  std::memcpy(out + 3 * static_cast<size_t>(x), tail, 3 * static_cast<size_t>(width - x));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
