// A part of a picture, or all of it, as its reader leaves it: 8 bits per channel, in the colours of
// the file. What lies outside is black. Internal to CodecDecoder.
//
// Owner: CodecDecoder. Only the allocation is kept for the next image: begin() clears it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/image.h"
#include "decode/scratch_vector.h"

namespace stoker {

// The scratch that each part of CodecDecoder keeps for the next file, at most.
inline constexpr int64_t kKeptCodecBytes = int64_t{1} << 20;

// The channels of a pixel. Alpha is kept only where colours were multiplied by it.
enum class FrameColours : uint8_t { gray, rgb, rgb_times_alpha, cmyk };

class CodecFrame {
 public:
  // Makes a frame for these pixels of the picture, all zeros.
  void begin(Box box, FrameColours colours);
  // Frees the memory if it is so large that one huge file would hold it for the rest of the run.
  void end();

  const Box& box() const { return box_; }
  FrameColours colours() const { return colours_; }
  int channels() const;
  size_t stride() const { return size_t{1} * box_.width * channels(); }
  // Row y of the frame, which is row box().y + y of the picture.
  uint8_t* row(int y) { return bytes_.data() + static_cast<size_t>(y) * stride(); }
  const uint8_t* row(int y) const { return bytes_.data() + static_cast<size_t>(y) * stride(); }

  // Writes columns [x, x + width) of a row of the picture, as Pillow's convert("RGB") gives them.
  void rgb(int y, int x, int width, uint8_t* to) const;

  int64_t scratch_bytes() const { return static_cast<int64_t>(bytes_.capacity()); }

 private:
  void rgb_inside(const uint8_t* from, int width, uint8_t* to) const;

  Box box_;
  FrameColours colours_ = FrameColours::rgb;
  ScratchVector<uint8_t> bytes_;  // (box height, box width, channels)
};

}  // namespace stoker
