#include "pipeline/source/format/known_names.h"

#include <algorithm>

namespace stoker {

std::string extension_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  std::string extension(name.substr(dot));
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return extension;
}

bool is_image_extension(std::string_view extension) {
  constexpr std::array<std::string_view, 9> kKnown = {".jpg", ".jpeg", ".png", ".bmp", ".webp",
                                                      ".tif", ".tiff", ".ppm", ".pgm"};
  return std::find(kKnown.begin(), kKnown.end(), extension) != kKnown.end();
}

bool is_shard_image_extension(std::string_view extension) {
  constexpr std::array<std::string_view, 4> kMore = {".avif", ".gif", ".jp2", ".pbm"};
  return is_image_extension(extension) ||
         std::find(kMore.begin(), kMore.end(), extension) != kMore.end();
}

}  // namespace stoker
