#include "decode/image_decoder.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "decode/jpeg_decoder.h"
#include "decode/row_resizer.h"

namespace stoker {
namespace {

bool begins_with(std::span<const uint8_t> bytes, const char* text, size_t size, size_t at = 0) {
  return bytes.size() >= at + size && std::memcmp(bytes.data() + at, text, size) == 0;
}

ImageFormat sniff(std::span<const uint8_t> bytes) {
  if (begins_with(bytes, "\xFF\xD8\xFF", 3)) return ImageFormat::jpeg;
  if (begins_with(bytes, "\x89PNG\r\n\x1A\n", 8)) return ImageFormat::png;
  if (begins_with(bytes, "BM", 2)) return ImageFormat::bmp;
  if (begins_with(bytes, "RIFF", 4) && begins_with(bytes, "WEBP", 4, 8)) return ImageFormat::webp;
  if (begins_with(bytes, "II*\0", 4) || begins_with(bytes, "MM\0*", 4)) return ImageFormat::tiff;
  if (begins_with(bytes, "GIF8", 4)) return ImageFormat::gif;
  return ImageFormat::unknown;
}

bool lies_inside(Box box, Size size) {
  return box.width > 0 && box.height > 0 && box.x >= 0 && box.y >= 0 &&
         box.x <= size.width - box.width && box.y <= size.height - box.height;
}

}  // namespace

struct ImageDecoder::Impl {
  explicit Impl(const DecodeOptions& o) : options(o), jpeg(o.max_pixels) {}

  const DecodeOptions options;
  JpegDecoder jpeg;
  RowResizer resizer;
};

ImageDecoder::ImageDecoder(const DecodeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
ImageDecoder::~ImageDecoder() = default;

DecodeStatus ImageDecoder::info(std::span<const uint8_t> bytes, ImageInfo& info) {
  if (bytes.empty()) return {DecodeCode::empty, 0, "no bytes"};
  info = {};
  info.format = sniff(bytes);
  if (info.format == ImageFormat::jpeg) return impl_->jpeg.info(bytes, info.size);
  return {DecodeCode::not_an_image, 0, "no known signature"};
}

DecodeStatus ImageDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec,
                                  MutableImageView out) {
  if (!is_sane(spec) || out.width != spec.window.width || out.height != spec.window.height) {
    return {DecodeCode::bad_region, -1, "the crop's sizes do not fit together"};
  }
  ImageInfo header;
  DecodeStatus status = info(bytes, header);
  if (!status.ok()) return status;
  if (!lies_inside(spec.crop, header.size)) {
    return {DecodeCode::bad_region, -1, "the crop does not lie inside the image"};
  }
  Box needed = impl_->resizer.begin(spec, out);
  needed.x += spec.crop.x;
  needed.y += spec.crop.y;
  return impl_->jpeg.decode(bytes, needed, impl_->resizer);
}

int64_t ImageDecoder::scratch_bytes() const {
  return impl_->jpeg.scratch_bytes() + impl_->resizer.scratch_bytes();
}

}  // namespace stoker
