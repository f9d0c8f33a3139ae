// Converts pixels to a net's input, on the device that holds them: u8 NHWC -> (pixel / 255 - mean)
// / deviation as bf16, fp16 or fp32, NHWC or NCHW, with channels of zeros after the third for
// kernels that are faster with 4 or 8. GPUs run a kernel, host devices a plain twin of it. A pixel
// has 256 values, so both use one table, which the host rounds to nearest, ties to even: the bits
// are the same everywhere. Values; any thread. Throws std::invalid_argument with the numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

// A kernel's arguments, by value. The table holds the output's bits, 16-bit types in the low half.
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

// Returns arguments with the table, without images. Throws std::invalid_argument with the numbers.
NormaliseArgs normalise_args(const NormaliseOptions& options);

size_t value_bytes(PixelType type);  // 2 or 4

class Normaliser {
 public:
  // `device` outlives it.
  Normaliser(Device& device, const NormaliseOptions& options);

  size_t row_bytes() const;  // of the output
  // Queues writing rows * row_bytes() bytes to `out`, which is device memory, as `images` is.
  // `stream` is the device's.
  void run(Stream& stream, const uint8_t* images, void* out, int rows) const;

 private:
  using Kernel = void (*)(Stream& stream, const NormaliseArgs& args);
  Kernel kernel_;
  NormaliseArgs args_;
};

// Runs immediately, on the calling thread.
void normalise_on_host(const NormaliseArgs& args);

// Returns the nearest bf16 or fp16, ties to even; a value too large for fp16 becomes infinite.
uint16_t bf16_bits(float value);
uint16_t fp16_bits(float value);

}  // namespace stoker
