// Decodes what its standard input requests, so that scripts can compare stoker with other
// libraries. A line is
//   crop_x crop_y crop_w crop_h resized_w resized_h win_x win_y win_w win_h flip filter exif path
// (flip and exif 0 or 1, filter by its number in crop_spec.h). Writes one byte, the DecodeCode, and
// if that is 0 the win_h * win_w * 3 bytes of RGB. The argument is the pixel policy. Environment:
// DECODE_ROWS_REPEAT=N decodes each N times and prints the CPU time on standard error.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "decode/image_decoder.h"

namespace stoker {
namespace {

struct Request {
  CropSpec spec;
  bool exif = false;
  std::string path;
};

bool parse(const std::string& line, Request& request) {
  std::istringstream in(line);
  CropSpec& s = request.spec;
  int flip = 0, filter = 0, exif = 0;
  in >> s.crop.x >> s.crop.y >> s.crop.width >> s.crop.height >> s.resized.width >>
      s.resized.height >> s.window.x >> s.window.y >> s.window.width >> s.window.height >> flip >>
      filter >> exif;
  in.get();
  std::getline(in, request.path);
  s.flip = flip != 0;
  s.filter = static_cast<Filter>(filter);
  request.exif = exif != 0;
  return !request.path.empty();
}

std::vector<uint8_t> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int decode_requests(PixelPolicy policy) {
  ImageDecoder plain({.pixels = policy});
  ImageDecoder oriented({.pixels = policy, .exif = ExifPolicy::apply});
  const char* text = std::getenv("DECODE_ROWS_REPEAT");
  const int repeat = text != nullptr ? std::atoi(text) : 1;
  double seconds = 0;
  std::map<std::string, std::vector<uint8_t>> files;
  std::vector<uint8_t> pixels;
  std::string line;
  Request request;
  while (std::getline(std::cin, line)) {
    if (!parse(line, request)) return 2;
    const Box window = request.spec.window;
    auto [file, is_new] = files.try_emplace(request.path);
    if (is_new) file->second = file_bytes(request.path);
    pixels.resize(static_cast<size_t>(window.width) * window.height * 3);
    ImageDecoder& decoder = request.exif ? oriented : plain;
    DecodeStatus status;
    const std::clock_t begin = std::clock();
    for (int i = 0; i < repeat; ++i) {
      status = decoder.decode(file->second, request.spec,
                              {pixels.data(), window.width, window.height, 3 * window.width});
    }
    seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::cout.put(static_cast<char>(status.code));
    if (status.ok()) {
      std::cout.write(reinterpret_cast<char*>(pixels.data()),
                      static_cast<std::streamsize>(pixels.size()));
    } else {
      std::fprintf(stderr, "%s: %s: %s\n", request.path.c_str(), to_string(status.code),
                   status.message.c_str());
    }
  }
  if (text != nullptr) std::fprintf(stderr, "decode_rows: %.3f s of CPU\n", seconds);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using stoker::PixelPolicy;
  std::ios::sync_with_stdio(false);
  for (const PixelPolicy policy :
       {PixelPolicy::exact, PixelPolicy::exact_pillow12, PixelPolicy::fast}) {
    if (argc == 2 && std::string(argv[1]) == to_string(policy))
      return stoker::decode_requests(policy);
  }
  std::fprintf(stderr, "usage: decode_rows exact|exact-pillow12|fast\n");
  return 2;
}
