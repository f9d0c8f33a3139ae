// The demands of fuzz targets of formats of pictures: no access outside, the same answer from a
// fresh decoder and from a used one, and parts of a picture that have the pixels of the whole.
//
// Input: a byte that chooses the part, then the file. Files of other formats are left out.
#pragma once

#include <cstdlib>
#include <cstring>
#include <vector>

#include "decode/image_decoder.h"

namespace stoker {

inline DecodeStatus decode_picture(ImageDecoder& decoder, std::span<const uint8_t> file, Box box,
                                   uint8_t fill, std::vector<uint8_t>& pixels) {
  pixels.assign(size_t{3} * box.width * box.height, fill);
  return decoder.decode(file, {box, {box.width, box.height}, {0, 0, box.width, box.height}},
                        {pixels.data(), box.width, box.height, ptrdiff_t{3} * box.width});
}

inline void check_parts_of_picture(ImageFormat format, const uint8_t* data, size_t size) {
  if (size < 2) return;
  const std::span<const uint8_t> file(data + 1, size - 1);
  ImageDecoder used({.max_pixels = 1 << 18}), fresh({.max_pixels = 1 << 18});
  ImageInfo info;
  if (!used.info(file, info).ok() || info.format != format) return;
  const auto [width, height] = info.size;
  std::vector<uint8_t> whole, again, part;
  const bool is_read = decode_picture(used, file, {0, 0, width, height}, 0x11, whole).ok();
  if (decode_picture(fresh, file, {0, 0, width, height}, 0xEE, again).ok() != is_read) std::abort();
  if (!is_read) return;
  if (whole != again) std::abort();
  Box box{width * (data[0] & 3) / 4, height * (data[0] >> 2 & 3) / 4, 0, 0};
  box.width = 1 + (width - box.x - 1) * (data[0] >> 4 & 3) / 3;
  box.height = 1 + (height - box.y - 1) * (data[0] >> 6) / 3;
  if (!decode_picture(used, file, box, 0x77, part).ok()) std::abort();
  for (int y = 0; y < box.height; ++y) {
    const uint8_t* expected = whole.data() + 3 * (static_cast<size_t>(box.y + y) * width + box.x);
    const uint8_t* found = part.data() + 3 * static_cast<size_t>(y) * box.width;
    if (std::memcmp(expected, found, 3 * static_cast<size_t>(box.width)) != 0) std::abort();
  }
}

}  // namespace stoker
