// libstoker_avif.so (codec_plugin.h), and the only file that uses libavif.
//
// Pillow's settings and conversion, with one thread: so the pixels are Pillow's. From version 1.0
// on libavif reduces frames of 10 and 12 bits to 8 before it makes RGB of them, where that is
// faster; so does Pillow 13, and so does this for older versions.
#include <avif/avif.h>

#include <memory>
#include <vector>

#include "decode/codec/codec_plugin.h"

namespace stoker {
namespace {

struct DestroyDecoder {
  void operator()(avifDecoder* decoder) const { avifDecoderDestroy(decoder); }
};
using Decoder = std::unique_ptr<avifDecoder, DestroyDecoder>;

#if AVIF_VERSION_MAJOR < 1

// Whether libyuv, which libavif uses for speed, has the colours of the picture.
bool is_fast(const avifImage& image) {
  switch (image.matrixCoefficients) {
    case AVIF_MATRIX_COEFFICIENTS_BT709:
    case AVIF_MATRIX_COEFFICIENTS_UNSPECIFIED:
    case AVIF_MATRIX_COEFFICIENTS_BT470BG:
    case AVIF_MATRIX_COEFFICIENTS_BT601:
    case AVIF_MATRIX_COEFFICIENTS_BT2020_NCL:
      return true;
    case AVIF_MATRIX_COEFFICIENTS_CHROMA_DERIVED_NCL:
      return image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT709 ||
             image.colorPrimaries == AVIF_COLOR_PRIMARIES_UNSPECIFIED ||
             image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT470BG ||
             image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT601 ||
             image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT2020;
    default:
      return false;
  }
}

// Whether newer versions reduce a frame of more than 8 bits to 8.
bool is_reduced(const avifImage& image, bool has_alpha) {
  const bool is_gray = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  if (!has_alpha) return !is_gray;
  return is_gray || (image.depth == 12 && image.yuvFormat != AVIF_PIXEL_FORMAT_YUV420);
}

// Calls change(from, to, width) for each row of a plane, whose values have 16 bits.
template <class Change>
void each_row(uint8_t* plane, uint32_t row_bytes, uint32_t width, uint32_t height,
              const Change& change) {
  for (uint32_t y = 0; y < height && plane != nullptr; ++y) {
    uint8_t* row = plane + size_t{y} * row_bytes;
    change(reinterpret_cast<uint16_t*>(row), row, width);
  }
}

// Puts 8 bits of each value over its 16 bits. Beside gray, alpha is rounded.
void reduce_to_8_bits(avifImage& image) {
  const uint32_t shift = image.depth - 8, most = (1u << image.depth) - 1;
  const bool is_gray = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  avifPixelFormatInfo format;
  avifGetPixelFormatInfo(image.yuvFormat, &format);
  const auto cut = [&](const uint16_t* from, uint8_t* to, uint32_t width) {
    for (uint32_t x = 0; x < width; ++x) to[x] = static_cast<uint8_t>(from[x] >> shift);
  };
  const auto rounded = [&](const uint16_t* from, uint8_t* to, uint32_t width) {
    for (uint32_t x = 0; x < width; ++x) {
      to[x] = static_cast<uint8_t>((from[x] * 255u + most / 2) / most);
    }
  };
  for (int plane = 0; plane < 3; ++plane) {
    const uint32_t shift_x = plane == 0 ? 0 : static_cast<uint32_t>(format.chromaShiftX);
    const uint32_t shift_y = plane == 0 ? 0 : static_cast<uint32_t>(format.chromaShiftY);
    each_row(image.yuvPlanes[plane], image.yuvRowBytes[plane], (image.width + shift_x) >> shift_x,
             (image.height + shift_y) >> shift_y, cut);
  }
  if (is_gray) {
    each_row(image.alphaPlane, image.alphaRowBytes, image.width, image.height, rounded);
  } else {
    each_row(image.alphaPlane, image.alphaRowBytes, image.width, image.height, cut);
  }
  image.depth = 8;
}

// Newer versions convert 10 bits as they are, but take the upper 8 bits of alpha, where this one
// rounds to 8. So alpha gets the values that are rounded to those.
void cut_alpha(avifImage& image) {
  each_row(image.alphaPlane, image.alphaRowBytes, image.width, image.height,
           [](uint16_t* values, uint8_t*, uint32_t width) {
             for (uint32_t x = 0; x < width; ++x) {
               values[x] = static_cast<uint16_t>(((values[x] >> 2) * 1023 + 127) / 255);
             }
           });
}

// Does what newer versions do with more than 8 bits before, or while, they make RGB of them.
void prepare(avifImage& image, bool has_alpha) {
  if (image.depth == 8 || !is_fast(image)) return;
  if (is_reduced(image, has_alpha)) {
    reduce_to_8_bits(image);
  } else if (image.depth == 10 && has_alpha) {
    cut_alpha(image);
  }
}

#endif

// Makes RGB of the frame, as Pillow does: with alpha where there is some, which is dropped then.
avifResult convert(avifImage& image, bool has_alpha, uint8_t* rgb) {
  if (image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400 &&
      image.matrixCoefficients == AVIF_MATRIX_COEFFICIENTS_IDENTITY) {
    image.matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;  // gray is gray
  }
#if AVIF_VERSION_MAJOR < 1
  prepare(image, has_alpha);
#endif
  avifRGBImage to;
  avifRGBImageSetDefaults(&to, &image);
  to.depth = 8;
  to.format = has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  const size_t count = size_t{image.width} * image.height;
  std::vector<uint8_t> with_alpha(has_alpha ? 4 * count : 0);
  to.pixels = has_alpha ? with_alpha.data() : rgb;
  to.rowBytes = (has_alpha ? 4 : 3) * image.width;
  const avifResult result = avifImageYUVToRGB(&image, &to);
  if (result != AVIF_RESULT_OK || !has_alpha) return result;
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = with_alpha[4 * i + c];
  }
  return result;
}

bool decode_avif(std::span<const uint8_t> bytes, Size size, uint8_t* rgb, std::string& problem) {
  const uint32_t width = static_cast<uint32_t>(size.width);
  const uint32_t height = static_cast<uint32_t>(size.height);
  const Decoder decoder(avifDecoderCreate());
  if (decoder == nullptr) {
    problem = "libavif: no memory";
    return false;
  }
  decoder->maxThreads = 1;
  decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
  decoder->strictFlags &=
      ~static_cast<avifStrictFlags>(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  decoder->ignoreExif = AVIF_TRUE;
  decoder->ignoreXMP = AVIF_TRUE;
  decoder->imageSizeLimit = width * height;
  decoder->imageDimensionLimit = width > height ? width : height;
  avifResult result = avifDecoderSetIOMemory(decoder.get(), bytes.data(), bytes.size());
  if (result == AVIF_RESULT_OK) result = avifDecoderParse(decoder.get());
  if (result == AVIF_RESULT_OK) result = avifDecoderNextImage(decoder.get());
  if (result != AVIF_RESULT_OK) {
    problem = std::string("libavif: ") + avifResultToString(result);
    return false;
  }
  avifImage& image = *decoder->image;
  if (image.width != width || image.height != height) {
    problem = "libavif finds another size than the header says";
    return false;
  }
  result = convert(image, decoder->alphaPresent != AVIF_FALSE, rgb);
  if (result != AVIF_RESULT_OK) problem = std::string("libavif: ") + avifResultToString(result);
  return result == AVIF_RESULT_OK;
}

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CodecPlugin* stoker_codec_plugin() {
  using namespace stoker;
  static const CodecPlugin plugin{kCodecPluginVersion, STOKER_BUILD_STAMP, avifVersion(),
                                  decode_avif};
  return &plugin;
}
