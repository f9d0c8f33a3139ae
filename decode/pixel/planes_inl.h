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
using ByteVec = hwy::HWY_NAMESPACE::Vec<PixelTag>;

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL

// Lookups of AVX-512 VBMI in two vectors, and then in their result and a third one: those that take
// 64 pixels apart, for each channel, and those that join them, for each vector of pixels.
struct PixelOrders {
  constexpr PixelOrders() {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < 64; ++i) {
        const int byte = 3 * i + part;  // of channel `part` in the pixels
        split[part][0][i] = static_cast<uint8_t>(byte % 128);
        split[part][1][i] = static_cast<uint8_t>(byte < 128 ? i : byte - 64);
        const int channel = (64 * part + i) % 3, pixel = (64 * part + i) / 3;
        join[part][0][i] = static_cast<uint8_t>(channel == 1 ? 64 + pixel : pixel);
        join[part][1][i] = static_cast<uint8_t>(channel == 2 ? 64 + pixel : i);
      }
    }
  }
  alignas(64) uint8_t split[3][2][64] = {}, join[3][2][64] = {};
};
inline constexpr PixelOrders kPixelOrders;

HWY_INLINE __m512i in_order(const uint8_t (*order)[64], __m512i a, __m512i b, __m512i c) {
  const __m512i two = _mm512_permutex2var_epi8(a, _mm512_load_si512(order[0]), b);
  return _mm512_permutex2var_epi8(two, _mm512_load_si512(order[1]), c);
}

HWY_INLINE void load_pixels(const uint8_t* pixels, ByteVec& red, ByteVec& green, ByteVec& blue) {
  const __m512i a = _mm512_loadu_si512(pixels), b = _mm512_loadu_si512(pixels + 64);
  const __m512i c = _mm512_loadu_si512(pixels + 128);
  red = ByteVec{in_order(kPixelOrders.split[0], a, b, c)};
  green = ByteVec{in_order(kPixelOrders.split[1], a, b, c)};
  blue = ByteVec{in_order(kPixelOrders.split[2], a, b, c)};
}

HWY_INLINE void store_pixels(ByteVec red, ByteVec green, ByteVec blue, uint8_t* pixels) {
  for (int part = 0; part < 3; ++part) {
    _mm512_storeu_si512(pixels + 64 * part,
                        in_order(kPixelOrders.join[part], red.raw, green.raw, blue.raw));
  }
}

#else

HWY_INLINE void load_pixels(const uint8_t* pixels, ByteVec& red, ByteVec& green, ByteVec& blue) {
  hwy::HWY_NAMESPACE::LoadInterleaved3(PixelTag(), pixels, red, green, blue);
}

HWY_INLINE void store_pixels(ByteVec red, ByteVec green, ByteVec blue, uint8_t* pixels) {
  hwy::HWY_NAMESPACE::StoreInterleaved3(red, green, blue, PixelTag(), pixels);
}

#endif

HWY_INLINE void split_pixels(const uint8_t* pixels, size_t count, PixelPlanes& planes) {
  namespace hn = hwy::HWY_NAMESPACE;
  const PixelTag d8;
  const size_t lanes = hn::Lanes(d8);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    ByteVec red, green, blue;
    load_pixels(pixels + 3 * i, red, green, blue);
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
    store_pixels(hn::Load(d8, red + i), hn::Load(d8, green + i), hn::Load(d8, blue + i),
                 pixels + 3 * i);
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
