// Takes pixels apart into a plane per channel and puts them together again. Included once per
// instruction set, after highway.h, by kernels of decode/pixel.

// The guard is per target: Highway toggles HWY_TARGET_TOGGLE from one inclusion to the next.
#if defined(STOKER_DECODE_PLANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_DECODE_PLANES_INL_H
#undef STOKER_DECODE_PLANES_INL_H
#else
#define STOKER_DECODE_PLANES_INL_H
#endif

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// Some pixels, small enough for the first cache. The planes are zero behind the last pixel up to
// the end of the last vector of any instruction set, so loops over them need no ends.
struct PixelPlanes {
  static constexpr size_t kPixels = 1024;
  static constexpr size_t kLongest = 64;  // bytes of a vector
  alignas(64) uint8_t red[kPixels];
  alignas(64) uint8_t green[kPixels];
  alignas(64) uint8_t blue[kPixels];
};

using PixelTag = hwy::HWY_NAMESPACE::CappedTag<uint8_t, PixelPlanes::kLongest>;

HWY_INLINE void split_pixels(const uint8_t* pixels, size_t count, PixelPlanes& planes) {
  namespace hn = hwy::HWY_NAMESPACE;
  const PixelTag d8;
  const size_t lanes = hn::Lanes(d8);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<PixelTag> red, green, blue;
    hn::LoadInterleaved3(d8, pixels + 3 * i, red, green, blue);
    hn::Store(red, d8, planes.red + i);
    hn::Store(green, d8, planes.green + i);
    hn::Store(blue, d8, planes.blue + i);
  }
  const size_t end = (count + PixelPlanes::kLongest - 1) & ~(PixelPlanes::kLongest - 1);
  for (uint8_t* plane : {planes.red, planes.green, planes.blue}) {
    std::memset(plane + i, 0, end - i);
  }
  for (; i < count; ++i) {
    planes.red[i] = pixels[3 * i];
    planes.green[i] = pixels[3 * i + 1];
    planes.blue[i] = pixels[3 * i + 2];
  }
}

HWY_INLINE void join_pixels(const uint8_t* red, const uint8_t* green, const uint8_t* blue,
                            size_t count, uint8_t* pixels) {
  namespace hn = hwy::HWY_NAMESPACE;
  const PixelTag d8;
  const size_t lanes = hn::Lanes(d8);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreInterleaved3(hn::Load(d8, red + i), hn::Load(d8, green + i), hn::Load(d8, blue + i),
                          d8, pixels + 3 * i);
  }
  for (; i < count; ++i) {
    pixels[3 * i] = red[i];
    pixels[3 * i + 1] = green[i];
    pixels[3 * i + 2] = blue[i];
  }
}

// Calls op(pixels, count, planes) for a run of pixels, piece by piece.
template <class Byte, class Op>
HWY_INLINE void for_each_piece(Byte* bytes, size_t byte_count, const Op& op) {
  PixelPlanes planes;
  const size_t pixels = byte_count / 3;
  for (size_t i = 0; i < pixels; i += PixelPlanes::kPixels) {
    const size_t count = std::min(PixelPlanes::kPixels, pixels - i);
    split_pixels(bytes + 3 * i, count, planes);
    op(bytes + 3 * i, count, planes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
