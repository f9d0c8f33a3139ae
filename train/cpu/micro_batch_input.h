// Converts pixels to a micro-batch's first activation: u8 NHWC -> normalised fp32 or bf16, as they
// are (training) or through a View (evaluation). Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "train/engine/engine.h"

namespace stoker {

// Layout of the activations. The input's three channels are interleaved (NHWC) or planes (NCHW).
enum class ActivationLayout : uint8_t {
  nhwc,
  blocked,  // NCHW in blocks of kBlockChannels (padded with zeros); the input has planes
};

constexpr int kBlockChannels = 16;

// Returns the bf16 nearest to `value`, ties to even. NaN stays NaN.
uint16_t to_bf16(float value);

class MicroBatchInput {
 public:
  // REQUIRES: deviations are positive.
  MicroBatchInput(Size size, int channels, Precision precision, ActivationLayout layout,
                  const std::array<float, 3>& mean, const std::array<float, 3>& stddev);

  // Converts images (rows, H, W, 3) u8 to out (rows, H, W, C) or (rows, C, H, W) in the net's
  // precision. C is `channels`: the first of the three, or all.
  void load(const uint8_t* images, int rows, void* out) const;
  // Pixel (y, x) of the view is the image's (reflected(y + shift_y), reflected(x' + shift_x)),
  // where x' = width - 1 - x if flipped: shifted first, then mirrored. REQUIRES: |shift| < size.
  void load(const uint8_t* images, int rows, const View& view, void* out) const;

 private:
  template <typename Number>
  void load_rows(const uint8_t* images, int rows, Number* out) const;
  template <typename Number>
  void load_view(const uint8_t* images, int rows, const View& view, Number* out) const;

  Size size_;
  int channels_;
  Precision precision_;
  int64_t pixel_stride_, channel_stride_;  // of `out`, in values
  std::array<std::array<float, 256>, 3> fp32_;
  std::array<std::array<uint16_t, 256>, 3> bf16_;
};

}  // namespace stoker
