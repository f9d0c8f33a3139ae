#include "tools/data/image_file_reader.h"

#include <limits>
#include <stdexcept>

#include "tools/data/png_writer.h"

namespace stoker {
namespace {

const char* extension_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg:
      return "jpg";
    case ImageFormat::png:
      return "png";
    case ImageFormat::bmp:
      return "bmp";
    case ImageFormat::webp:
      return "webp";
    case ImageFormat::gif:
      return "gif";
    case ImageFormat::jpeg2000:
      return "jp2";
    case ImageFormat::avif:
      return "avif";
    case ImageFormat::tiff:
      return "tif";
    case ImageFormat::pnm:
      return "ppm";
    case ImageFormat::unknown:
      break;
  }
  throw std::logic_error("an image's header was read, but its format has no extension");
}

}  // namespace

// A shard may hold images of any size: what is too large to decode is the reader's business.
ImageFileReader::ImageFileReader(const Source& source)
    : source_(source), decoder_({.max_pixels = std::numeric_limits<int64_t>::max()}) {}

bool ImageFileReader::read(SampleId id, ImageFile& file, Finding& finding) {
  const ReadStatus status = source_.read(id, buffer_, file.bytes);
  if (!status.ok) {
    finding = {id, "unreadable", -1, status.message};
    return false;
  }
  file.name = source_.name(id);
  if (source_.encoding() != SampleEncoding::image_file) {
    png_ = encode_png(pixels_of(file.bytes));
    file = {file.name + ".png", "png", png_};
    return true;
  }
  ImageInfo info;
  const DecodeStatus header = decoder_.info(file.bytes, info);
  if (!header.ok()) {
    finding = {id, to_string(header.code), header.byte_offset, header.message};
    return false;
  }
  file.extension = extension_of(info.format);
  return true;
}

ImageView ImageFileReader::pixels_of(std::span<const uint8_t> raw) {
  const auto [width, height] = source_.raw_size();
  const ImageView whole{raw.data(), width, height, ptrdiff_t{3} * width};
  if (source_.encoding() == SampleEncoding::raw_rgb) return whole;
  const size_t plane = raw.size() / 3;
  pixels_.resize(raw.size());
  for (size_t i = 0; i < plane; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) {
      pixels_[3 * i + channel] = raw[channel * plane + i];
    }
  }
  return {pixels_.data(), width, height, whole.stride_bytes};
}

}  // namespace stoker
