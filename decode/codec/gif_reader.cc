// The pixels of a GIF's first image: LZW codes (GIF89a specification, appendix F).
//
// A code stands for a string of pixels: that of the code before it and one more. So each string is
// in the pixels already, at the place where the code before it was decoded, and a code is a copy.
#include <algorithm>
#include <cstring>
#include <vector>

#include "decode/codec/file_headers.h"
#include "decode/codec/readers.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

constexpr int kMaxCodeBits = 12;
constexpr uint32_t kCodes = 1u << kMaxCodeBits;
constexpr size_t kGifCopy = 16;                  // bytes that are copied at once
constexpr size_t kGifSpare = kCodes + kGifCopy;  // what the last string may write behind the pixels

// The codes in the blocks of an image.
class GifCodes {
 public:
  GifCodes(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}

  // Returns false at the end of the blocks.
  bool next(int bits, uint32_t& code) {
    while (count_ < bits) {
      if (left_ == 0) {
        left_ = at_ < bytes_.size() ? bytes_[at_++] : 0u;
        if (left_ == 0) return false;
      }
      if (at_ == bytes_.size()) return false;
      buffer_ |= uint32_t{bytes_[at_++]} << count_;
      count_ += 8;
      --left_;
    }
    code = buffer_ & ((1u << bits) - 1);
    buffer_ >>= bits;
    count_ -= bits;
    return true;
  }

 private:
  const std::span<const uint8_t> bytes_;
  size_t at_;
  uint32_t left_ = 0;  // bytes of this block
  uint32_t buffer_ = 0;
  int count_ = 0;
};

// A string of pixels that were decoded: [at, at + length).
struct PixelString {
  uint32_t at = 0;
  uint32_t length = 0;
};

// Decodes `count` pixels. Returns nullptr, or what is wrong.
const char* decode_pixels(GifCodes codes, int code_bits, size_t count, uint8_t* pixels) {
  const uint32_t clear = 1u << code_bits, end = clear + 1;
  PixelString strings[kCodes];
  PixelString last;  // of no length after a clear code
  uint32_t next = end + 1;
  int bits = code_bits + 1;
  for (size_t out = 0; out < count;) {
    uint32_t code = 0;
    if (!codes.next(bits, code) || code == end) return "a GIF with too little data";
    if (code == clear) {
      next = end + 1;
      bits = code_bits + 1;
      last = {};
      continue;
    }
    if (code > next || (last.length == 0 && code > clear)) return "a bad code in a GIF";
    PixelString string{static_cast<uint32_t>(out), 1};
    if (code < clear) {
      pixels[out] = static_cast<uint8_t>(code);
    } else {
      // The code that is made by this one itself is the last string and its own first pixel.
      const PixelString from = code == next ? last : strings[code];
      for (uint32_t i = 0; i < from.length; i += kGifCopy) {
        uint8_t some[kGifCopy];  // the two places may overlap behind the string
        std::memcpy(some, pixels + from.at + i, kGifCopy);
        std::memcpy(pixels + out + i, some, kGifCopy);
      }
      string.length = from.length;
      if (code == next) pixels[out + string.length++] = pixels[out];
    }
    if (last.length != 0 && next < kCodes) {
      strings[next] = {last.at, last.length + 1};
      if (next == (1u << bits) - 1 && bits < kMaxCodeBits) ++bits;
      ++next;
    }
    last = string;
    out += string.length;
  }
  return nullptr;
}

// The image's row that comes as number `i`.
int row_of(int i, int height, bool is_interlaced) {
  if (!is_interlaced) return i;
  constexpr int kFirst[] = {0, 4, 2, 1}, kSteps[] = {8, 8, 4, 2};
  for (int pass = 0; pass < 4; ++pass) {
    const int rows = (height - kFirst[pass] + kSteps[pass] - 1) / kSteps[pass];
    if (i < rows) return kFirst[pass] + i * kSteps[pass];
    i -= std::max(rows, 0);
  }
  return height - 1;
}

void put_colour(const uint8_t* colour, uint8_t* to) { std::memcpy(to, colour, 3); }

}  // namespace

DecodeStatus read_gif_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame) {
  GifLayout layout;
  const DecodeStatus status = read_gif_layout(bytes, layout);
  if (!status.ok()) return status;
  const Box& box = layout.box;
  const int rows = layout.is_interlaced
                       ? box.height
                       : std::clamp(region.y + region.height - box.y, 0, box.height);
  const auto width = static_cast<size_t>(box.width);
  ScratchVector<uint8_t> pixels(width * static_cast<size_t>(rows) + kGifSpare);
  const char* problem = decode_pixels(GifCodes(bytes, layout.data_at), layout.code_bits,
                                      width * static_cast<size_t>(rows), pixels.data());
  if (problem != nullptr) return {DecodeCode::corrupt, -1, problem};

  frame.begin(region, FrameColours::rgb);
  for (int y = 0; y < region.height; ++y) {
    uint8_t* to = frame.row(y);
    for (int x = 0; x < region.width; ++x) {
      put_colour(layout.colours[layout.background], to + 3 * x);
    }
  }
  const int begin = std::max(region.x, box.x);
  const int end = std::min(region.x + region.width, box.x + box.width);
  for (int i = 0; i < rows; ++i) {
    const int y = box.y + row_of(i, box.height, layout.is_interlaced) - region.y;
    if (y < 0 || y >= region.height) continue;
    const uint8_t* from = pixels.data() + static_cast<size_t>(i) * width;
    for (int x = begin; x < end; ++x) {
      put_colour(layout.colours[from[x - box.x]],
                 frame.row(y) + 3 * static_cast<size_t>(x - region.x));
    }
  }
  return {};
}

}  // namespace stoker
