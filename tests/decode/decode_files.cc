// Decodes files for scripts that compare stoker with other decoders or with itself:
//   decode_files used|fresh [MAX_PIXELS]
// uses one decoder for all files, or one for each. A line of standard input is a path. The output
// is a line, "code width height crop message", and if the code is "ok" the height * width * 3 bytes
// of RGB. `crop` is a digest of small crops under both policies, "-" if one is refused.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "tests/decode/pixels.h"

namespace stoker {
namespace {

class Decoders {
 public:
  explicit Decoders(int64_t max_pixels)
      : exact_({.exif = ExifPolicy::ignore, .max_pixels = max_pixels}),
        fast_({.pixels = PixelPolicy::fast, .exif = ExifPolicy::apply, .max_pixels = max_pixels}) {}

  void answer(const std::vector<uint8_t>& file) {
    ImageInfo info;
    DecodeStatus status = exact_.info(file, info);
    std::vector<uint8_t> pixels;
    if (status.ok()) {
      const auto [width, height] = info.size;
      pixels.resize(size_t{3} * width * height);
      status = exact_.decode(file, plain_crop({0, 0, width, height}),
                             {pixels.data(), width, height, ptrdiff_t{3} * width});
    }
    std::cout << to_string(status.code) << ' ' << info.size.width << ' ' << info.size.height << ' '
              << crop(exact_, file) + crop(fast_, file) << ' ' << status.message << '\n';
    if (status.ok()) {
      std::cout.write(reinterpret_cast<const char*>(pixels.data()),
                      static_cast<std::streamsize>(pixels.size()));
    }
  }

 private:
  static std::string crop(ImageDecoder& decoder, const std::vector<uint8_t>& file) {
    ImageInfo info;
    if (!decoder.info(file, info).ok()) return "-";
    const auto [width, height] = info.size;
    const CropSpec spec{
        {width / 4, height / 5, (width + 1) / 2, (height + 2) / 3}, {20, 24}, {2, 1, 17, 20}, true};
    Pixels out({17, 20});
    return decoder.decode(file, spec, out.view()).ok() ? fnv1a(out.packed()) : "-";
  }

  ImageDecoder exact_, fast_;
};

int decode_listed(bool fresh, int64_t max_pixels) {
  std::optional<Decoders> decoders;
  for (std::string path; std::getline(std::cin, path);) {
    if (fresh || !decoders) decoders.emplace(max_pixels);
    decoders->answer(read_file(path));
    std::cout.flush();
  }
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  const std::string how = argc == 2 || argc == 3 ? argv[1] : "";
  const int64_t max_pixels = argc == 3 ? std::strtoll(argv[2], nullptr, 10) : 4'000'000;
  if ((how != "used" && how != "fresh") || max_pixels <= 0) {
    std::fprintf(stderr, "usage: decode_files used|fresh [MAX_PIXELS]\n");
    return 2;
  }
  std::ios::sync_with_stdio(false);
  return stoker::decode_listed(how == "fresh", max_pixels);
}
