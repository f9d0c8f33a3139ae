// PNG against libpng: what we accept, libpng accepts with the same pixels, and what it accepts we
// accept, but for an end of the data that is not right (tests/decode/png_test.cc says why). Parts
// of the picture have the pixels of the whole.
//
// Input: a byte that chooses the part, then the file, whose checksums are made right.
#include <cstdlib>
#include <cstring>

#include "decode/image_decoder.h"
#include "tests/decode/png_maker.h"
#include "tests/decode/png_reference.h"

namespace stoker {
namespace {

DecodeStatus decode(std::span<const uint8_t> file, Box box, std::vector<uint8_t>& pixels) {
  pixels.assign(size_t{3} * box.width * box.height, 0xA5);
  ImageDecoder decoder({.max_pixels = 1 << 18});
  return decoder.decode(file, {box, {box.width, box.height}, {0, 0, box.width, box.height}},
                        {pixels.data(), box.width, box.height, ptrdiff_t{3} * box.width});
}

void check_part(std::span<const uint8_t> file, Size size, uint8_t choice,
                const std::vector<uint8_t>& whole) {
  Box box{size.width * (choice & 3) / 4, size.height * (choice >> 2 & 3) / 4, 0, 0};
  box.width = 1 + (size.width - box.x - 1) * (choice >> 4 & 3) / 3;
  box.height = 1 + (size.height - box.y - 1) * (choice >> 6) / 3;
  std::vector<uint8_t> part;
  if (!decode(file, box, part).ok()) std::abort();
  for (int y = 0; y < box.height; ++y) {
    const uint8_t* expected =
        whole.data() + 3 * (static_cast<size_t>(box.y + y) * size.width + box.x);
    const uint8_t* found = part.data() + 3 * static_cast<size_t>(y) * box.width;
    if (std::memcmp(expected, found, 3 * static_cast<size_t>(box.width)) != 0) std::abort();
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size < 1) return 0;
  const std::vector<uint8_t> file = join_png(split_png({data + 1, size - 1}));
  ImageDecoder decoder({.max_pixels = 1 << 18});
  ImageInfo info;
  if (!decoder.info(file, info).ok()) return 0;
  std::vector<uint8_t> pixels;
  const Size all = info.size;
  const DecodeStatus status = decode(file, {0, 0, all.width, all.height}, pixels);
  if (status.code == DecodeCode::truncated) return 0;  // without its last chunk; libpng reads it
  const PngReference reference = read_png_reference(file);
  if (!status.ok()) {
    constexpr char kEnd[] = "a PNG whose data end badly or have a wrong checksum";
    if (reference.is_read && status.message != kEnd) std::abort();
    return 0;
  }
  if (!reference.is_read || reference.pixels != pixels) std::abort();
  check_part(file, all, data[0], pixels);
  return 0;
}
