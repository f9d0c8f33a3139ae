// their_viewer FILE OUT.ppm: decodes the middle of an image to 64 x 64 with both pixel policies.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "stoker/decode/image_decoder.h"

namespace {

constexpr stoker::Size kThumb{64, 64};
using Bytes = std::vector<uint8_t>;

// Decodes the square in the middle; ends the program on an error.
Bytes thumbnail(const Bytes& file, stoker::PixelPolicy policy) {
  stoker::ImageDecoder decoder({.pixels = policy});
  stoker::ImageInfo info;
  stoker::DecodeStatus status = decoder.info(file, info);
  Bytes pixels(size_t{3} * kThumb.width * kThumb.height);
  if (status.ok()) {
    const auto [width, height] = info.size;
    const int side = width < height ? width : height;
    const stoker::CropSpec crop{.crop = {(width - side) / 2, (height - side) / 2, side, side},
                                .resized = kThumb,
                                .window = {0, 0, kThumb.width, kThumb.height}};
    status =
        decoder.decode(file, crop, {pixels.data(), kThumb.width, kThumb.height, 3 * kThumb.width});
  }
  if (status.ok()) return pixels;
  std::fprintf(stderr, "their_viewer: %s: %s\n", to_string(status.code), status.message.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream in(argv[1], std::ios::binary);
  const Bytes file{std::istreambuf_iterator<char>(in), {}};
  const Bytes exact = thumbnail(file, stoker::PixelPolicy::exact);
  const Bytes fast = thumbnail(file, stoker::PixelPolicy::fast);
  double difference = 0;
  for (size_t i = 0; i < exact.size(); ++i) difference += std::abs(exact[i] - fast[i]);
  difference /= static_cast<double>(exact.size());
  std::ofstream out(argv[2], std::ios::binary);
  out << "P6\n" << kThumb.width << ' ' << kThumb.height << "\n255\n";
  out.write(reinterpret_cast<const char*>(exact.data()),
            static_cast<std::streamsize>(exact.size()));
  std::printf("fast differs from exact by %.2f grey levels on average\n", difference);
  return out && difference < 1 ? 0 : 1;
}
