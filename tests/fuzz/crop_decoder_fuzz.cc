// CropDecoder: no access outside its memory; under any policy it accepts no file that libjpeg-turbo
// calls bad; under the exact policies its pixels are libjpeg-turbo's, resized as that Pillow does.
#include <cstdlib>
#include <vector>

#include "decode/crop_decoder.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/progressive_headers.h"
#include "tests/decode/libjpeg_path.h"
#include "tests/fuzz/fuzz_input.h"

namespace stoker {
namespace {

// Returns the size of a file that CropDecoder may take.
Size size_of(std::span<const uint8_t> file) {
  static ProgressiveHeaders progressive;
  BaselineJpeg jpeg;
  if (parse_baseline(file, jpeg)) return jpeg.size;
  return progressive.open(file) ? progressive.jpeg().size : Size{};
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr int64_t kMaxPixels = 1 << 20;
  static CropDecoder fast(kMaxPixels, PixelPolicy::fast);
  static CropDecoder exact(kMaxPixels, PixelPolicy::exact);
  static CropDecoder exact12(kMaxPixels, PixelPolicy::exact_pillow12);
  static LibjpegPath oracle(kMaxPixels, PixelPolicy::exact);
  static LibjpegPath oracle12(kMaxPixels, PixelPolicy::exact_pillow12);
  if (size < kFuzzHeader) return 0;
  const Size image = size_of({data + kFuzzHeader, size - kFuzzHeader});
  const int64_t pixels_of_image = int64_t{image.width} * image.height;
  if (pixels_of_image == 0 || pixels_of_image > kMaxPixels) return 0;
  const FuzzInput input = read_fuzz_input(data, size, image);
  const Box& window = input.spec.window;
  std::vector<uint8_t> pixels(static_cast<size_t>(window.width) * window.height * 3);
  std::vector<uint8_t> expected(pixels.size());
  const auto view = [&](std::vector<uint8_t>& of) {
    return MutableImageView{of.data(), window.width, window.height, 3 * window.width};
  };
  const bool fast_takes = fast.decode(input.file, input.spec, view(pixels));
  const auto check = [&](CropDecoder& decoder, LibjpegPath& of) {
    const bool takes = decoder.decode(input.file, input.spec, view(pixels));
    if (!fast_takes && !takes) return;
    if (!of.decode(input.file, input.spec, view(expected)).ok()) std::abort();
    if (takes && pixels != expected) std::abort();
  };
  check(exact, oracle);
  check(exact12, oracle12);
  return 0;
}
