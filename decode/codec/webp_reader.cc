// The only file that uses libwebp.
#include <webp/decode.h>

#include <algorithm>
#include <vector>

#include "decode/codec/file_headers.h"
#include "decode/codec/readers.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

// Colours are interpolated between pixels, so libwebp gives other ones at the border of a crop. Two
// pixels more on each side, and even places, as its crops have them, make up for that.
Box with_margin(Box box, Size size) {
  constexpr int kMargin = 2;
  const int x = std::max((box.x & ~1) - kMargin, 0), y = std::max((box.y & ~1) - kMargin, 0);
  const int end_x = std::min(box.x + box.width + kMargin, size.width);
  const int end_y = std::min(box.y + box.height + kMargin, size.height);
  return {x, y, end_x - x, end_y - y};
}

// libwebp takes less than 12 bytes only as a file. One colour needs no more. Returns the file, or
// nothing for other pixels.
std::vector<uint8_t> wrap_tiny(std::span<const uint8_t> data) {
  constexpr size_t kMin = 12;
  if (data.size() >= kMin) return {};
  const auto size = static_cast<uint8_t>(data.size());
  const auto odd = static_cast<uint8_t>(size % 2), whole = static_cast<uint8_t>(12 + size + odd);
  std::vector<uint8_t> file{'R', 'I', 'F', 'F', whole, 0,   0,    0, 'W', 'E',
                            'B', 'P', 'V', 'P', '8',   'L', size, 0, 0,   0};
  file.insert(file.end(), data.begin(), data.end());
  file.resize(file.size() + odd);
  return file;
}

// Decodes a part of a frame as RGB. libwebp stops below it.
bool decode_part(std::span<const uint8_t> data, Box part, CodecFrame& frame) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return false;
  config.options.use_cropping = 1;
  config.options.crop_left = part.x;
  config.options.crop_top = part.y;
  config.options.crop_width = part.width;
  config.options.crop_height = part.height;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = frame.row(0);
  config.output.u.RGBA.stride = static_cast<int>(frame.stride());
  config.output.u.RGBA.size = frame.stride() * static_cast<size_t>(part.height);
  return WebPDecode(data.data(), data.size(), &config) == VP8_STATUS_OK;
}

// Returns what libwebp takes: of a lossless picture (VP8L) its pixels, their copy and transforms,
// of a lossy one some lines.
int64_t libwebp_bytes(std::span<const uint8_t> data, Size size) {
  constexpr int64_t kBytesPerPixel = 12, kBytesPerColumn = 256;
  constexpr uint8_t kLossless = 0x2F;  // the first byte of VP8L's data
  const bool is_lossless = data[0] == kLossless;
  return is_lossless ? kBytesPerPixel * size.width * size.height : kBytesPerColumn * size.width;
}

}  // namespace

DecodeStatus read_webp_pixels(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                              CodecFrame& frame) {
  WebpFrame picture;
  const DecodeStatus status = find_webp_frame(bytes, header.size, picture);
  if (!status.ok()) return status;
  const std::vector<uint8_t> wrapped = wrap_tiny(picture.data);
  if (!wrapped.empty()) picture.data = wrapped;
  int width = 0, height = 0;
  if (WebPGetInfo(picture.data.data(), picture.data.size(), &width, &height) == 0) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the header"};
  }
  const Box& box = picture.box;
  if (width != box.width || height != box.height) {
    return {DecodeCode::corrupt, -1, "the pixels are not what the header says"};
  }
  // The first frame of an animation may have no pixels in the region; one of them is decoded.
  Box wanted{std::clamp(region.x, box.x, box.x + width - 1) - box.x,
             std::clamp(region.y, box.y, box.y + height - 1) - box.y, 1, 1};
  wanted.width = std::clamp(region.x + region.width - box.x - wanted.x, 1, width - wanted.x);
  wanted.height = std::clamp(region.y + region.height - box.y - wanted.y, 1, height - wanted.y);
  const Box part = with_margin(wanted, {width, height});
  frame.begin({box.x + part.x, box.y + part.y, part.width, part.height}, FrameColours::rgb);
  const ScratchCharge charge(libwebp_bytes(picture.data, {width, height}));
  if (!decode_part(picture.data, part, frame)) {
    return {DecodeCode::corrupt, -1, "libwebp cannot read the pixels"};
  }
  return {};
}

}  // namespace stoker
