// Makes colours of hues: a sixth of the colour circle, a sector, says which channel is the
// greatest, which is the least, and which is between. Included once per instruction set, after
// planes_inl.h, by kernels of decode/pixel.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_SHADES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_SHADES_INL_H
#undef STOKER_DECODE_SHADES_INL_H
#else
#define STOKER_DECODE_SHADES_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE ByteVec byte_value(int value) {
  return hn::Set(PixelTag(), static_cast<uint8_t>(value));
}

struct ShadePlanes {
  alignas(64) uint8_t most[PixelPlanes::kPixels];
  alignas(64) uint8_t sector[PixelPlanes::kPixels];  // 0..6; 6 is the same as 0
  alignas(64) uint8_t between[PixelPlanes::kPixels];
  alignas(64) uint8_t low[PixelPlanes::kPixels];
};

// Gives each sector's channels their shades.
HWY_INLINE void choose_shades(size_t count, const ShadePlanes& shades, PixelPlanes& planes) {
  const PixelTag d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto sector = hn::Load(d, shades.sector + i), v = hn::Load(d, shades.most + i);
    const auto between = hn::Load(d, shades.between + i), low = hn::Load(d, shades.low + i);
    const auto is = [&](int number) { return hn::Eq(sector, byte_value(number)); };
    const auto zero = hn::Or(is(0), is(6)), one = is(1), two = is(2);
    const auto three = is(3), four = is(4), five = is(5);
    const auto store = [&](auto full, auto partly, uint8_t* plane) {
      hn::Store(hn::IfThenElse(full, v, hn::IfThenElse(partly, between, low)), d, plane + i);
    };
    store(hn::Or(zero, five), hn::Or(one, four), planes.red);
    store(hn::Or(one, two), hn::Or(zero, three), planes.green);
    store(hn::Or(three, four), hn::Or(two, five), planes.blue);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
