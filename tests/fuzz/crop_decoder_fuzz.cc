// CropDecoder: no access outside its memory, and nothing accepted that JpegDecoder calls bad.
#include <cstdlib>
#include <vector>

#include "decode/crop_decoder.h"
#include "decode/image_decoder.h"
#include "decode/jpeg_headers.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr int64_t kMaxPixels = 1 << 20;
  static CropDecoder crop(kMaxPixels);
  static ImageDecoder exact({.max_pixels = kMaxPixels});
  if (size < kFuzzHeader) return 0;
  BaselineJpeg jpeg;
  if (!parse_baseline({data + kFuzzHeader, size - kFuzzHeader}, jpeg)) return 0;
  if (int64_t{jpeg.size.width} * jpeg.size.height > kMaxPixels) return 0;
  const FuzzInput input = read_fuzz_input(data, size, jpeg.size);
  const Box& window = input.spec.window;
  std::vector<uint8_t> pixels(static_cast<size_t>(window.width) * window.height * 3);
  const MutableImageView out{pixels.data(), window.width, window.height, 3 * window.width};
  if (crop.decode(input.file, input.spec, out) && !exact.decode(input.file, input.spec, out).ok()) {
    std::abort();
  }
  return 0;
}
