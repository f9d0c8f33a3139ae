// The work of one thread of the normalise kernel, for both compilers: nvcc makes the kernel from
// it, the host's twin calls it in a loop. Internal. `Bits` is uint16_t or uint32_t; `Table` returns
// table(channel, pixel) as Bits.
#pragma once

#include <cstdint>

#include "staging/normalise.h"

namespace stoker {

// `kCount` neighbouring numbers, written at once if the machine can.
template <typename Bits, int kCount>
struct alignas(sizeof(Bits) * kCount <= 16 ? sizeof(Bits) * kCount : 16) BitsVector {
  Bits value[kCount];
};

// Returns how many quads of pixels can be processed as such; the rest goes pixel by pixel.
inline int64_t normalise_quads(const NormaliseArgs& args) {
  const bool aligned = reinterpret_cast<uintptr_t>(args.images) % 4 == 0 &&
                       reinterpret_cast<uintptr_t>(args.out) % 16 == 0;
  const bool whole_rows = args.order == PixelOrder::nhwc || args.plane % 4 == 0;
  return aligned && whole_rows ? args.rows * args.plane / 4 : 0;
}

struct alignas(4) PixelQuad {
  uint8_t bytes[12];  // 4 pixels, RGB
};

// Expands pixel 4 * quad and the three after it, counted over all rows: (rows, height, width,
// kChannels).
template <typename Bits, int kChannels, typename Table>
constexpr void expand_quad_nhwc(const uint8_t* images, Bits* out, int64_t quad,
                                const Table& table) {
  const PixelQuad in = reinterpret_cast<const PixelQuad*>(images)[quad];
  BitsVector<Bits, 4> vectors[kChannels] = {};
  for (int i = 0; i < 4; ++i) {
    for (int channel = 0; channel < 3; ++channel) {
      const int at = i * kChannels + channel;
      vectors[at / 4].value[at % 4] = table(channel, in.bytes[i * 3 + channel]);
    }
  }
  auto* to = reinterpret_cast<BitsVector<Bits, 4>*>(out) + quad * kChannels;
  for (int i = 0; i < kChannels; ++i) to[i] = vectors[i];
}

// The same for (rows, channels, plane). REQUIRES: plane % 4 == 0, so a quad is in one row.
template <typename Bits, typename Table>
constexpr void expand_quad_nchw(const uint8_t* images, Bits* out, int64_t quad, int64_t plane,
                                int channels, const Table& table) {
  const PixelQuad in = reinterpret_cast<const PixelQuad*>(images)[quad];
  const int64_t row = quad * 4 / plane;
  Bits* to = out + row * channels * plane + (quad * 4 - row * plane);
  for (int channel = 0; channel < channels; ++channel) {
    BitsVector<Bits, 4> vector = {};
    for (int i = 0; i < 4 && channel < 3; ++i) {
      vector.value[i] = table(channel, in.bytes[i * 3 + channel]);
    }
    *reinterpret_cast<BitsVector<Bits, 4>*>(to + channel * plane) = vector;
  }
}

// Expands one pixel, for the rest after the quads and for memory that is not aligned.
template <typename Bits, typename Table>
constexpr void expand_pixel(const uint8_t* images, Bits* out, int64_t pixel, int64_t plane,
                            int channels, bool nchw, const Table& table) {
  const int64_t row = pixel / plane;
  Bits* to = nchw ? out + row * channels * plane + (pixel - row * plane) : out + pixel * channels;
  const int64_t step = nchw ? plane : 1;
  for (int channel = 0; channel < channels; ++channel) {
    to[channel * step] = channel < 3 ? table(channel, images[pixel * 3 + channel]) : Bits{0};
  }
}

}  // namespace stoker
