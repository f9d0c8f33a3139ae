// JpegDecoder (libjpeg-turbo and the code around it) and the exact resize, alone and inside
// ImageDecoder, which calls them after CropDecoder: no access outside their memory, a status for
// every file, and a region's pixels are those of the whole image.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "decode/image_decoder.h"
#include "tests/decode/libjpeg_path.h"
#include "tests/fuzz/fuzz_input.h"

namespace stoker {
namespace {

struct Decoded {
  DecodeStatus status;
  std::vector<uint8_t> pixels;
};

template <class Decoder>
Decoded decode(Decoder& decoder, std::span<const uint8_t> file, const CropSpec& spec) {
  const Box& window = spec.window;
  Decoded result{{}, std::vector<uint8_t>(size_t{3} * window.width * window.height)};
  result.status = decoder.decode(
      file, spec, {result.pixels.data(), window.width, window.height, 3 * window.width});
  return result;
}

// Damage below the region may make the whole image fail, but never differ.
template <class Decoder>
void require_part_of_whole(Decoder& decoder, const FuzzInput& input, Size size,
                           const Decoded& part) {
  const Box& crop = input.spec.crop;
  const Decoded whole =
      decode(decoder, input.file,
             {{0, 0, size.width, size.height}, size, {0, 0, size.width, size.height}});
  if (!whole.status.ok()) return;
  const Box& window = input.spec.window;
  for (int y = 0; y < window.height; ++y) {
    for (int x = 0; x < window.width; ++x) {
      const int from_x = crop.x + (input.spec.flip ? window.width - 1 - x : x);
      const size_t from = size_t{3} * (size_t{1} * (crop.y + y) * size.width + from_x);
      const size_t to = size_t{3} * (size_t{1} * y * window.width + x);
      if (std::memcmp(&whole.pixels[from], &part.pixels[to], 3) != 0) std::abort();
    }
  }
}

template <class Decoder>
void decode_and_check(Decoder& decoder, const uint8_t* data, size_t bytes, Size size) {
  const FuzzInput input = read_fuzz_input(data, bytes, size);
  const Decoded part = decode(decoder, input.file, input.spec);
  const Box& crop = input.spec.crop;
  const bool is_unscaled = input.spec.resized == Size{crop.width, crop.height};
  if (part.status.ok() && is_unscaled) require_part_of_whole(decoder, input, size, part);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr int64_t kMaxPixels = 1 << 18;
  static ImageDecoder images({.exif = ExifPolicy::apply, .max_pixels = kMaxPixels});
  static JpegDecoder headers(kMaxPixels);
  static LibjpegPath jpegs(kMaxPixels);
  if (size < kFuzzHeader + 3 || data[kFuzzHeader] != 0xFF) return 0;
  const std::span<const uint8_t> file(data + kFuzzHeader, size - kFuzzHeader);
  ImageInfo info;
  if (images.info(file, info).ok()) decode_and_check(images, data, size, info.size);
  Size stored;
  if (headers.info(file, stored).ok()) decode_and_check(jpegs, data, size, stored);
  return 0;
}
