// Label images: a reason, or labels of a PNG that is decoded as a picture, too, and shows them.
//
// Input: a byte, odd for labels of 4 bytes, then the file, whose checksums are made right.
#include <cstdlib>
#include <cstring>

#include "decode/codec/png_file.h"
#include "decode/label_image.h"
#include "tests/decode/png_maker.h"
#include "tests/fuzz/parts_of_picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size < 1) return 0;
  constexpr int64_t kMost = 1 << 18;
  const std::vector<uint8_t> file = join_png(split_png({data + 1, size - 1}));
  const int label_bytes = data[0] % 2 == 0 ? 1 : 4;
  LabelImage image;
  if (!read_label_image(file, label_bytes, kMost, image).empty()) return 0;
  const auto [width, height] = image.size;
  const size_t count = static_cast<size_t>(width) * height;
  if (image.pixels.size() != count * label_bytes) std::abort();
  ImageDecoder decoder({.max_pixels = kMost});
  std::vector<uint8_t> pixels;
  if (!decode_picture(decoder, file, {0, 0, width, height}, 0, pixels).ok()) std::abort();
  PngHeader header;
  read_png_header(file, header);
  if (header.colours == PngColours::palette) return 0;
  for (size_t i = 0; i < count; ++i) {
    int32_t label = 0;
    std::memcpy(&label, &image.pixels[i * label_bytes], label_bytes);
    int32_t shown = pixels[3 * i];
    if (header.colours == PngColours::rgb) {
      shown |= pixels[3 * i + 1] << 8 | pixels[3 * i + 2] << 16;
    }
    if (header.bits == 1) shown /= 255;
    if (header.bits == 16 ? std::min(label, 255) != shown : label != shown) std::abort();
  }
  return 0;
}
