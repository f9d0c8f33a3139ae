// The decoder and the resizer alone, for one image at a time. Threads: any; nothing here calls
// Python. Throws DecodeError for the content of a file, std::invalid_argument for everything else.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "decode/image_decoder.h"
#include "python/core/array.h"

namespace stoker::python {

// Why a file could not be decoded: the code as in the quarantine file, the message, and the place
// in the file.
class DecodeError : public std::runtime_error {
 public:
  explicit DecodeError(const DecodeStatus& status);
  explicit DecodeError(const std::string& message) : std::runtime_error(message) {}
};

// Returns width, height, format and EXIF orientation, from the header alone.
ImageInfo image_info(std::span<const uint8_t> bytes, const DecodeOptions& options);

// A crop of an image, and the size of the result.
struct CropRequest {
  std::optional<Box> crop;   // none: the whole image
  std::optional<Size> size;  // of the result; none: the crop's
  bool flip = false;
  Filter filter = Filter::bilinear;
};

// Both return (height, width, 3) uint8.
Array decode_image(std::span<const uint8_t> bytes, const CropRequest& request,
                   const DecodeOptions& options);
Array resize_image(ImageView image, const CropRequest& request, PixelPolicy policy);

}  // namespace stoker::python
