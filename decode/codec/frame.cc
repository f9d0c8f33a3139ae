#include "decode/codec/frame.h"

#include <algorithm>
#include <cstring>

#include "decode/pixel_ops.h"

namespace stoker {
namespace {

// Divides colours that were multiplied by alpha by it. As in Pillow, a fully transparent pixel is
// black.
void divide_by_alpha(const uint8_t* from, uint8_t* to) {
  const int alpha = from[3];
  for (int c = 0; c < 3; ++c) {
    to[c] = alpha == 0 ? uint8_t{0} : static_cast<uint8_t>(std::min(from[c] * 255 / alpha, 255));
  }
}

}  // namespace

void CodecFrame::begin(Box box, FrameColours colours) {
  box_ = box;
  colours_ = colours;
  bytes_.assign(stride() * static_cast<size_t>(box.height), 0);
}

void CodecFrame::end() {
  if (scratch_bytes() > kKeptCodecBytes) ScratchVector<uint8_t>().swap(bytes_);
}

int CodecFrame::channels() const {
  switch (colours_) {
    case FrameColours::gray:
      return 1;
    case FrameColours::rgb:
      return 3;
    case FrameColours::rgb_times_alpha:
    case FrameColours::cmyk:
      return 4;
  }
  return 3;
}

void CodecFrame::rgb(int y, int x, int width, uint8_t* to) const {
  const int begin = std::max(x, box_.x), end = std::min(x + width, box_.x + box_.width);
  const bool is_inside = y >= box_.y && y < box_.y + box_.height && begin < end;
  if (!is_inside || end - begin < width) std::memset(to, 0, size_t{3} * width);
  if (!is_inside) return;
  rgb_inside(row(y - box_.y) + static_cast<size_t>(begin - box_.x) * channels(), end - begin,
             to + 3 * static_cast<size_t>(begin - x));
}

void CodecFrame::rgb_inside(const uint8_t* from, int width, uint8_t* to) const {
  switch (colours_) {
    case FrameColours::gray:
      for (int i = 0; i < width; ++i) to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
      break;
    case FrameColours::rgb:
      std::memcpy(to, from, size_t{3} * width);
      break;
    case FrameColours::rgb_times_alpha:
      for (int i = 0; i < width; ++i) divide_by_alpha(from + 4 * i, to + 3 * i);
      break;
    case FrameColours::cmyk:
      for (int i = 0; i < width; ++i) {
        for (int c = 0; c < 3; ++c)
          to[3 * i + c] = ink_on_light(from[4 * i + c], 255 - from[4 * i + 3]);
      }
      break;
  }
}

}  // namespace stoker
