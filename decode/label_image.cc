#include "decode/label_image.h"

#include <algorithm>
#include <cstring>

#include "decode/byte_reader.h"
#include "decode/codec/png_labels.h"
#include "decode/codec/png_reader.h"

namespace stoker {
namespace {

// Takes rows one below the other.
class LabelRows final : public RowSink {
 public:
  LabelRows(size_t row_bytes, uint8_t* to) : row_bytes_(row_bytes), to_(to) {}
  void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) override {
    for (int i = 0; i < count; ++i, to_ += row_bytes_) {
      std::memcpy(to_, first + i * stride_bytes, row_bytes_);
    }
  }

 private:
  const size_t row_bytes_;
  uint8_t* to_;
};

}  // namespace

std::string read_label_image(std::span<const uint8_t> file, int label_bytes, int64_t max_pixels,
                             LabelImage& out) {
  if (!begins_with(file, "\x89PNG\r\n\x1a\n", 8)) return "a label image that is not a PNG";
  PngHeader header;
  DecodeStatus status = read_png_header(file, header);
  if (!status.ok()) return status.message;
  const auto [width, height] = header.size;
  const int64_t pixels = int64_t{width} * height;
  if (pixels > max_pixels) {
    return "a label image of " + std::to_string(width) + "x" + std::to_string(height) +
           " pixels; the limit is " + std::to_string(max_pixels);
  }
  if (header.orientation != 1) {
    return "a label image that EXIF turns (orientation " + std::to_string(header.orientation) + ")";
  }
  constexpr uint64_t kMostDeflated = 1032;  // bytes that one byte can become
  if (header.row_bytes(width) * static_cast<uint64_t>(height) / kMostDeflated > file.size()) {
    return "a label image with too little data";
  }
  PngLabels labels;
  if (std::string problem = labels.begin(header, label_bytes); !problem.empty()) return problem;
  status = check_png_chunks(file);
  if (!status.ok()) return status.message;
  out.size = header.size;
  out.label_bytes = label_bytes;
  out.pixels.resize(static_cast<size_t>(pixels) * labels.pixel_bytes());
  LabelRows rows(static_cast<size_t>(width) * labels.pixel_bytes(), out.pixels.data());
  PngReader reader;
  return reader.read(file, labels, {0, 0, width, height}, rows).message;
}

}  // namespace stoker
