// PNG against libpng: what we accept, libpng accepts with the same pixels, and what it accepts we
// accept, but for an end of the data that is not right (tests/decode/png_test.cc says why). And
// what parts_of_picture.h demands.
//
// Input: a byte that chooses the part, then the file, whose checksums are made right.
#include "tests/decode/png_maker.h"
#include "tests/decode/png_reference.h"
#include "tests/fuzz/parts_of_picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  if (size < 1) return 0;
  std::vector<uint8_t> input = join_png(split_png({data + 1, size - 1}));
  input.insert(input.begin(), data[0]);
  const std::span<const uint8_t> file(input.data() + 1, input.size() - 1);
  ImageDecoder decoder({.max_pixels = 1 << 18});
  ImageInfo info;
  if (!decoder.info(file, info).ok()) return 0;
  std::vector<uint8_t> pixels;
  const Box whole{0, 0, info.size.width, info.size.height};
  const DecodeStatus status = decode_picture(decoder, file, whole, 0xA5, pixels);
  if (status.code == DecodeCode::truncated) return 0;  // without its last chunk; libpng reads it
  const PngReference reference = read_png_reference(file);
  if (!status.ok()) {
    constexpr char kEnd[] = "a PNG whose data end badly or have a wrong checksum";
    if (reference.is_read && status.message != kEnd) std::abort();
    return 0;
  }
  if (!reference.is_read || reference.pixels != pixels) std::abort();
  check_parts_of_picture(ImageFormat::png, input.data(), input.size());
  return 0;
}
