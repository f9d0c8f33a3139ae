// JpegDecoder (libjpeg-turbo and what is around it): no access outside its memory, a status for
// every file.
#include <vector>

#include "decode/image_decoder.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static ImageDecoder decoder({.exif = ExifPolicy::apply, .max_pixels = 1 << 20});
  if (size < kFuzzHeader + 3 || data[kFuzzHeader] != 0xFF) return 0;
  ImageInfo info;
  if (!decoder.info({data + kFuzzHeader, size - kFuzzHeader}, info).ok()) return 0;
  const FuzzInput input = read_fuzz_input(data, size, info.size);
  const Box& window = input.spec.window;
  std::vector<uint8_t> pixels(static_cast<size_t>(window.width) * window.height * 3);
  decoder.decode(input.file, input.spec,
                 {pixels.data(), window.width, window.height, 3 * window.width});
  return 0;
}
