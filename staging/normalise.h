// Pixels to a net's input, on the device that holds them: u8 NHWC -> (pixel / 255 - mean) /
// deviation as bf16, fp16 or fp32, NHWC or NCHW, with channels of zeros after the third where
// kernels like 4 or 8 better. On a GPU one kernel; on host devices its twin. There are 256 values
// of a pixel, so both look them up in one table that the host rounds to nearest, ties to even: the
// same bits everywhere. Values; any thread. Errors: std::invalid_argument with the numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "staging/device.h"

namespace stoker {

enum class PixelType : uint8_t { bf16, fp16, fp32 };
enum class PixelOrder : uint8_t { nhwc, nchw };

struct NormaliseOptions {
  int height = 0;
  int width = 0;
  int channels = 3;  // of the output: 3, 4 or 8; those after the third are 0
  PixelType type = PixelType::bf16;
  PixelOrder order = PixelOrder::nhwc;
  std::array<float, 3> mean{};  // of pixels / 255, RGB
  std::array<float, 3> stddev{1, 1, 1};
};

// What a kernel is given, by value. The table holds the output's bits, 16-bit types in the low
// half.
struct NormaliseArgs {
  const uint8_t* images = nullptr;  // (rows, height, width, 3)
  void* out = nullptr;  // (rows, height, width, channels) or (rows, channels, height, width)
  int64_t rows = 0;
  int64_t plane = 0;  // height * width
  int channels = 3;
  PixelType type = PixelType::bf16;
  PixelOrder order = PixelOrder::nhwc;
  std::array<std::array<uint32_t, 256>, 3> table;
};

// With the table made, and no images yet. Throws std::invalid_argument with the numbers.
NormaliseArgs normalise_args(const NormaliseOptions& options);

size_t value_bytes(PixelType type);  // 2 or 4

class Normaliser {
 public:
  // device outlives it.
  Normaliser(Device& device, const NormaliseOptions& options);

  size_t row_bytes() const;  // of the output
  // Queues rows * row_bytes() bytes into `out`, device memory as `images` is. `stream` is the
  // device's.
  void run(Stream& stream, const uint8_t* images, void* out, int rows) const;

 private:
  using Kernel = void (*)(Stream& stream, const NormaliseArgs& args);
  Kernel kernel_;
  NormaliseArgs args_;
};

// Now, on the calling thread.
void normalise_on_host(const NormaliseArgs& args);

// The nearest bf16 and fp16, ties to even; what is too large for fp16 becomes infinite.
uint16_t bf16_bits(float value);
uint16_t fp16_bits(float value);

}  // namespace stoker
