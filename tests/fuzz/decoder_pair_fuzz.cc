// A decoder keeps no state: decodes file B, then file A with one ImageDecoder, and A with a fresh
// one. Status, text and pixels are the same, and so are unwritten bytes of the output, which is
// filled with other bytes for each.
//
// Input: eight bytes for the crop of A, eight for B's, one of flags, two for the length of B; then
// B and A.
#include <cstdlib>
#include <vector>

#include "decode/image_decoder.h"
#include "tests/fuzz/fuzz_input.h"

namespace stoker {
namespace {

constexpr int64_t kMaxPixels = 1 << 18;

struct Answer {
  DecodeStatus info;
  DecodeStatus status;
  std::vector<uint8_t> pixels;
};

// `crop`: kFuzzHeader bytes.
Answer decode(ImageDecoder& decoder, std::span<const uint8_t> file, const uint8_t* crop,
              uint8_t fill) {
  Answer answer;
  // Files without a size are decoded anyway; they must be refused.
  ImageInfo info{.size = {9, 9}};
  answer.info = decoder.info(file, info);
  const CropSpec spec = read_fuzz_input(crop, kFuzzHeader, info.size).spec;
  const Box& window = spec.window;
  answer.pixels.assign(size_t{3} * window.width * window.height, fill);
  answer.status = decoder.decode(
      file, spec, {answer.pixels.data(), window.width, window.height, 3 * window.width});
  if (!answer.status.ok()) answer.pixels.clear();
  return answer;
}

bool is_same(const DecodeStatus& a, const DecodeStatus& b) {
  return a.code == b.code && a.byte_offset == b.byte_offset && a.message == b.message;
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr size_t kHeader = 2 * kFuzzHeader + 3;
  if (size < kHeader) return 0;
  const uint8_t flags = data[2 * kFuzzHeader];
  const size_t length = data[kHeader - 2] | static_cast<size_t>(data[kHeader - 1]) << 8;
  const std::span<const uint8_t> files(data + kHeader, size - kHeader);
  const std::span<const uint8_t> before = files.first(std::min(length, files.size()));
  const std::span<const uint8_t> file = files.subspan(before.size());
  const PixelPolicy exact = (flags & 16) != 0 ? PixelPolicy::exact_pillow12 : PixelPolicy::exact;
  const DecodeOptions options{.pixels = (flags & 1) != 0 ? PixelPolicy::fast : exact,
                              .exif = (flags & 2) != 0 ? ExifPolicy::apply : ExifPolicy::ignore,
                              .max_pixels = kMaxPixels};
  ImageDecoder fresh(options), used(options);
  const Answer expected = decode(fresh, file, data, 0x11);
  decode(used, before, data + kFuzzHeader, 0x77);
  const Answer found = decode(used, file, data, 0xEE);
  if (!is_same(found.info, expected.info) || !is_same(found.status, expected.status) ||
      found.pixels != expected.pixels) {
    std::abort();
  }
  return 0;
}
