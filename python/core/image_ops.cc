#include "python/core/image_ops.h"

#include <string>

#include "decode/pillow_resize.h"

namespace stoker::python {
namespace {

constexpr int kMaxSide = 1 << 16;

std::string message_of(const DecodeStatus& status) {
  std::string text = std::string(to_string(status.code)) + ": " + status.message;
  if (status.byte_offset >= 0) text += " (byte " + std::to_string(status.byte_offset) + ")";
  return text;
}

void throw_unless_ok(const DecodeStatus& status) {
  if (!status.ok()) throw DecodeError(status);
}

CropSpec spec_of(const CropRequest& request, Size image) {
  CropSpec spec;
  spec.crop = request.crop.value_or(Box{0, 0, image.width, image.height});
  if (!lies_inside(spec.crop, image)) {
    const Box& box = spec.crop;
    throw std::invalid_argument(
        "the box x=" + std::to_string(box.x) + " y=" + std::to_string(box.y) +
        " width=" + std::to_string(box.width) + " height=" + std::to_string(box.height) +
        " does not lie inside the image of " + std::to_string(image.width) + " x " +
        std::to_string(image.height) + " pixels (width x height)");
  }
  spec.resized = request.size.value_or(Size{spec.crop.width, spec.crop.height});
  const auto [width, height] = spec.resized;
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    throw std::invalid_argument("size: height " + std::to_string(height) + " and width " +
                                std::to_string(width) + " must be 1 to " +
                                std::to_string(kMaxSide) + " pixels");
  }
  spec.window = {0, 0, width, height};
  spec.flip = request.flip;
  spec.filter = request.filter;
  return spec;
}

MutableImageView array_view(Array& image) {
  const auto height = static_cast<int>(image.shape[0]), width = static_cast<int>(image.shape[1]);
  return {static_cast<uint8_t*>(image.data), width, height, ptrdiff_t{3} * width};
}

}  // namespace

DecodeError::DecodeError(const DecodeStatus& status) : std::runtime_error(message_of(status)) {}

ImageInfo image_info(std::span<const uint8_t> bytes, const DecodeOptions& options) {
  ImageInfo info;
  throw_unless_ok(ImageDecoder(options).info(bytes, info));
  return info;
}

Array decode_image(std::span<const uint8_t> bytes, const CropRequest& request,
                   const DecodeOptions& options) {
  ImageDecoder decoder(options);
  ImageInfo info;
  throw_unless_ok(decoder.info(bytes, info));
  const CropSpec spec = spec_of(request, info.size);
  Array out = make_image(spec.resized.height, spec.resized.width);
  throw_unless_ok(decoder.decode(bytes, spec, array_view(out)));
  return out;
}

Array resize_image(ImageView image, const CropRequest& request, PixelPolicy policy) {
  const CropSpec spec = spec_of(request, {image.width, image.height});
  Array out = make_image(spec.resized.height, spec.resized.width);
  const ImageView crop = {
      image.data + spec.crop.y * image.stride_bytes + ptrdiff_t{3} * spec.crop.x, spec.crop.width,
      spec.crop.height, image.stride_bytes};
  PillowResize(policy).run(crop, spec, array_view(out));
  return out;
}

}  // namespace stoker::python
