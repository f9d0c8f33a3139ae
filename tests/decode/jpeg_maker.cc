#include "tests/decode/jpeg_maker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>

// clang-format off
#include <jpeglib.h>
// clang-format on

namespace stoker {
namespace {

int channel_count(JpegColours colours) {
  switch (colours) {
    case JpegColours::gray:
      return 1;
    case JpegColours::cmyk:
    case JpegColours::ycck:
      return 4;
    default:
      return 3;
  }
}

void set_colours(jpeg_compress_struct& cinfo, JpegColours colours) {
  constexpr J_COLOR_SPACE kInput[] = {JCS_GRAYSCALE, JCS_RGB, JCS_RGB, JCS_CMYK, JCS_CMYK};
  constexpr J_COLOR_SPACE kStored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_YCCK};
  cinfo.input_components = channel_count(colours);
  cinfo.in_color_space = kInput[static_cast<int>(colours)];
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, kStored[static_cast<int>(colours)]);
}

// A smooth texture with edges and noise, so that all coefficients are used.
void fill_row(int width, int y, int channels, uint32_t seed, std::vector<uint8_t>& row) {
  uint32_t state = seed * 2654435761u + static_cast<uint32_t>(y);
  for (int x = 0; x < width; ++x) {
    for (int c = 0; c < channels; ++c) {
      state = state * 1664525u + 1013904223u;
      const double wave = 90 * std::sin(x / (5.0 + c) + y / (7.0 - c) + seed);
      const int edge = (x / 11 + y / 13 + c) % 3 == 0 ? 35 : -20;
      const int value = static_cast<int>(128 + wave + edge + (state >> 28));
      row[static_cast<size_t>(x) * channels + c] =
          static_cast<uint8_t>(std::min(255, std::max(0, value)));
    }
  }
}

void write_exif(jpeg_compress_struct& cinfo, int orientation, bool big_endian) {
  std::vector<uint8_t> block = {'E', 'x', 'i', 'f', 0, 0};
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      block.push_back(static_cast<uint8_t>(value >> 8 * (big_endian ? bytes - 1 - i : i)));
    }
  };
  block.insert(block.end(), 2, big_endian ? 'M' : 'I');
  put(42, 2);
  put(8, 4);
  put(1, 2);
  put(0x0112, 2);
  put(3, 2);
  put(1, 4);
  put(static_cast<uint32_t>(orientation), 2);
  put(0, 2);
  put(0, 4);
  jpeg_write_marker(&cinfo, JPEG_APP0 + 1, block.data(), static_cast<unsigned>(block.size()));
}

void scan_each_component(jpeg_compress_struct& cinfo) {
  static constexpr jpeg_scan_info kScans[] = {{1, {0, 0, 0, 0}, 0, 63, 0, 0},
                                              {1, {1, 0, 0, 0}, 0, 63, 0, 0},
                                              {1, {2, 0, 0, 0}, 0, 63, 0, 0},
                                              {1, {3, 0, 0, 0}, 0, 63, 0, 0}};
  cinfo.scan_info = kScans;
  cinfo.num_scans = cinfo.num_components;
}

void limit_scans(jpeg_compress_struct& cinfo, int scans_kept) {
  if (scans_kept > 0 && scans_kept < cinfo.num_scans) cinfo.num_scans = scans_kept;
}

}  // namespace

std::string describe(const JpegKind& k) {
  constexpr const char* kNames[] = {"gray", "ycc", "rgb", "cmyk", "ycck"};
  std::ostringstream text;
  text << kNames[static_cast<int>(k.colours)] << '_' << k.sampling_x << 'x' << k.sampling_y;
  if (k.progressive) text << "_progressive";
  if (k.scans_kept > 0) text << k.scans_kept;
  if (!k.interleaved) text << "_apart";
  if (k.arithmetic) text << "_arithmetic";
  if (k.restart_rows > 0) text << "_restart" << k.restart_rows;
  return text.str();
}

std::vector<uint8_t> make_jpeg(Size size, const JpegKind& kind, uint32_t seed) {
  jpeg_compress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* file = nullptr;
  unsigned long file_bytes = 0;
  jpeg_mem_dest(&cinfo, &file, &file_bytes);
  cinfo.image_width = static_cast<JDIMENSION>(size.width);
  cinfo.image_height = static_cast<JDIMENSION>(size.height);
  set_colours(cinfo, kind.colours);
  jpeg_set_quality(&cinfo, kind.quality, TRUE);
  for (int c = 0; c < cinfo.num_components; ++c) {
    const bool full = c == 0 || c == 3;
    cinfo.comp_info[c].h_samp_factor = full ? kind.sampling_x : 1;
    cinfo.comp_info[c].v_samp_factor = full ? kind.sampling_y : 1;
  }
  cinfo.restart_in_rows = kind.restart_rows;
  cinfo.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&cinfo);
  limit_scans(cinfo, kind.scans_kept);
  if (!kind.interleaved) scan_each_component(cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  if (kind.exif_orientation > 0) write_exif(cinfo, kind.exif_orientation, kind.exif_big_endian);
  const int channels = channel_count(kind.colours);
  std::vector<uint8_t> row(static_cast<size_t>(size.width) * channels);
  for (int y = 0; y < size.height; ++y) {
    fill_row(size.width, y, channels, seed, row);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&cinfo, &pointer, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::vector<uint8_t> bytes(file, file + file_bytes);
  std::free(file);
  return bytes;
}

Pixels decode_whole_jpeg(std::span<const uint8_t> bytes) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  cinfo.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, bytes.data(), bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  const bool four = cinfo.num_components == 4;
  cinfo.out_color_space = four ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&cinfo);
  Pixels image({static_cast<int>(cinfo.output_width), static_cast<int>(cinfo.output_height)});
  std::vector<uint8_t> row(size_t{4} * cinfo.output_width);
  while (cinfo.output_scanline < cinfo.output_height) {
    const int y = static_cast<int>(cinfo.output_scanline);
    JSAMPROW pointer = row.data();
    jpeg_read_scanlines(&cinfo, &pointer, 1);
    for (int x = 0; x < image.size().width; ++x) {
      for (int c = 0; c < 3; ++c) {
        if (!four) {
          image.pixel(x, y)[c] = row[3 * static_cast<size_t>(x) + c];
          continue;
        }
        // Ink c on the light that black leaves, both inverted in the file; rounded as in Pillow's
        // cmyk2rgb.
        const int ink = 255 - row[4 * static_cast<size_t>(x) + c];
        const int light = row[4 * static_cast<size_t>(x) + 3];
        const int product = ink * light + 128;
        image.pixel(x, y)[c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
      }
    }
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return image;
}

std::vector<uint8_t> with_size(std::vector<uint8_t> jpeg, Size size) {
  for (size_t at = 2; at + 9 < jpeg.size();) {
    const uint8_t marker = jpeg[at + 1];
    if (marker >= 0xC0 && marker <= 0xC2) {
      jpeg[at + 5] = static_cast<uint8_t>(size.height >> 8);
      jpeg[at + 6] = static_cast<uint8_t>(size.height);
      jpeg[at + 7] = static_cast<uint8_t>(size.width >> 8);
      jpeg[at + 8] = static_cast<uint8_t>(size.width);
      return jpeg;
    }
    at += 2 + (jpeg[at + 2] << 8 | jpeg[at + 3]);
  }
  return jpeg;
}

}  // namespace stoker
