#include "decode/codec/png_reader.h"

#include <algorithm>
#include <cstring>

#include "decode/codec/frame.h"
#include "decode/codec/png_filters.h"

namespace stoker {
namespace {

// How many of `length` columns or rows a pass has.
int pass_length(int length, int first, int step) {
  return length <= first ? 0 : (length - first + step - 1) / step;
}

// Where the pixels of a pass's row go.
struct Spread {
  int x, step, count;

  template <size_t kBytes>
  void pixels(const uint8_t* from, uint8_t* to) const {
    for (int i = 0; i < count; ++i) {
      std::memcpy(to + kBytes * static_cast<size_t>(x + i * step),
                  from + kBytes * static_cast<size_t>(i), kBytes);
    }
  }
};

}  // namespace

// Every `step`th pixel from the first on. A picture that is not interlaced is one pass.
struct PngReader::Pass {
  int x = 0, y = 0, step_x = 1, step_y = 1;
  Size size;        // in pixels of the pass
  int rows = 0;     // that are decoded
  int columns = 0;  // that are undone
  bool is_empty() const { return size.width == 0 || size.height == 0; }
};

DecodeStatus PngReader::read(std::span<const uint8_t> bytes, Box region, RowSink& sink) {
  size_t pixels_at = 0;
  const DecodeStatus status = open(bytes, pixels_at);
  if (!status.ok()) return status;
  rgb_.begin(header_, palette_);
  return read_rows_of(bytes, pixels_at, rgb_, region, sink);
}

DecodeStatus PngReader::read(std::span<const uint8_t> bytes, const PngRowFormat& format, Box region,
                             RowSink& sink) {
  size_t pixels_at = 0;
  const DecodeStatus status = open(bytes, pixels_at);
  return status.ok() ? read_rows_of(bytes, pixels_at, format, region, sink) : status;
}

DecodeStatus PngReader::open(std::span<const uint8_t> bytes, size_t& pixels_at) {
  DecodeStatus status = read_png_header(bytes, header_);
  palette_ = {};
  if (status.ok()) status = find_png_pixels(bytes, header_, palette_, pixels_at);
  return status;
}

DecodeStatus PngReader::read_rows_of(std::span<const uint8_t> bytes, size_t pixels_at,
                                     const PngRowFormat& format, Box region, RowSink& sink) {
  format_ = &format;
  region_ = region;
  sink_ = &sink;
  PngPixelData data(bytes, pixels_at);
  return header_.is_interlaced ? read_interlaced(data) : read_plain(data);
}

DecodeStatus PngReader::read_plain(InflateInput& data) {
  Pass pass;
  pass.size = header_.size;
  pass.rows = region_.y + region_.height;
  pass.columns = region_.x + region_.width;
  const bool is_whole = pass.rows == pass.size.height;
  begin(data, {&pass, 1}, is_whole);
  out_.grow(kPngRowsAtOnce * out_stride() + kPngRowSpare);
  const DecodeStatus status =
      read_rows(pass, [&](const uint8_t* rows, size_t stride, int y, int count) {
        const int above = std::max(region_.y - y, 0);
        if (above < count) {
          give_rows(rows + static_cast<size_t>(above) * stride, stride, count - above);
        }
      });
  return status.ok() && is_whole ? check_end() : status;
}

DecodeStatus PngReader::read_interlaced(InflateInput& data) {
  constexpr int kFirst[7][2] = {{0, 0}, {4, 0}, {0, 4}, {2, 0}, {0, 2}, {1, 0}, {0, 1}};
  constexpr int kSteps[7][2] = {{8, 8}, {8, 8}, {4, 8}, {4, 4}, {2, 4}, {2, 2}, {1, 2}};
  Pass passes[7];
  for (int i = 0; i < 7; ++i) {
    Pass& pass = passes[i];
    pass = {kFirst[i][0], kFirst[i][1], kSteps[i][0], kSteps[i][1], {}, 0, 0};
    pass.size = {pass_length(header_.size.width, pass.x, pass.step_x),
                 pass_length(header_.size.height, pass.y, pass.step_y)};
    pass.rows = pass.size.height;
    pass.columns = pass.size.width;
  }
  begin(data, passes, true);
  out_.grow(out_stride() + kPngRowSpare);
  frame_.grow(out_stride() * static_cast<size_t>(region_.height));
  for (const Pass& pass : passes) {
    if (pass.is_empty()) continue;
    const DecodeStatus status =
        read_rows(pass, [&](const uint8_t* rows, size_t stride, int y, int count) {
          for (int r = 0; r < count; ++r) {
            scatter_row(rows + static_cast<size_t>(r) * stride, pass, y + r);
          }
        });
    if (!status.ok()) return status;
  }
  const DecodeStatus status = check_end();
  if (!status.ok()) return status;
  sink_->rows(frame_.data(), static_cast<ptrdiff_t>(out_stride()), region_.height);
  return {};
}

// Plans how much of the compressed data is needed.
void PngReader::begin(InflateInput& data, std::span<const Pass> passes, bool is_whole) {
  uint64_t total = 0;
  size_t widest = 0;
  for (const Pass& pass : passes) {
    if (pass.is_empty()) continue;
    const size_t line = 1 + header_.row_bytes(pass.size.width);
    total += uint64_t{line} * static_cast<uint64_t>(pass.rows);
    widest = std::max(widest, line);
  }
  data_.begin(data, {kPngRowsAtOnce * widest, total, is_whole});
  rows_.grow((1 + kPngRowsAtOnce) * (widest + 2 * kPngRowMargin));
}

// Decodes the rows of a pass, and passes them on as take(rows, stride, y, count).
template <class Take>
DecodeStatus PngReader::read_rows(const Pass& pass, const Take& take) {
  const size_t line = 1 + header_.row_bytes(pass.size.width);
  const size_t bytes = header_.row_bytes(pass.columns);
  const size_t stride = bytes + 2 * kPngRowMargin;
  uint8_t* const above = rows_.data() + kPngRowMargin;
  uint8_t* const rows = above + stride;
  std::memset(rows_.data(), 0, stride);
  for (int y = 0; y < pass.rows;) {
    const int count = std::min(kPngRowsAtOnce, pass.rows - y);
    const uint8_t* filtered = data_.read(static_cast<size_t>(count) * line);
    if (filtered == nullptr) return failure();
    const size_t pixel_bytes = static_cast<size_t>(std::max(header_.pixel_bits() / 8, 1));
    if (!undo_png_filters({filtered, line, rows, stride, bytes, pixel_bytes, count})) {
      return {DecodeCode::corrupt, -1, "a PNG row with a filter that is not known"};
    }
    take(rows, stride, y, count);
    std::memcpy(above, rows + static_cast<size_t>(count - 1) * stride, bytes);
    y += count;
  }
  return {};
}

void PngReader::give_rows(const uint8_t* rows, size_t stride, int count) {
  if (format_->is_as_stored()) {
    const size_t left = format_->pixel_bytes() * static_cast<size_t>(region_.x);
    sink_->rows(rows + left, static_cast<ptrdiff_t>(stride), count);
    return;
  }
  for (int r = 0; r < count; ++r) {
    format_->write(rows + static_cast<size_t>(r) * stride, region_.x, region_.width,
                   out_.data() + static_cast<size_t>(r) * out_stride());
  }
  sink_->rows(out_.data(), static_cast<ptrdiff_t>(out_stride()), count);
}

// Puts the pixels of a pass's row that lie in the region into the frame.
void PngReader::scatter_row(const uint8_t* row, const Pass& pass, int y) {
  const int to_y = pass.y + y * pass.step_y - region_.y;
  if (to_y < 0 || to_y >= region_.height) return;
  const int first = pass_length(region_.x, pass.x, pass.step_x);
  const int end = pass_length(region_.x + region_.width, pass.x, pass.step_x);
  if (first >= end) return;
  format_->write(row, first, end - first, out_.data());
  uint8_t* const to = frame_.data() + static_cast<size_t>(to_y) * out_stride();
  const Spread spread{pass.x + first * pass.step_x - region_.x, pass.step_x, end - first};
  switch (format_->pixel_bytes()) {
    case 1:
      spread.pixels<1>(out_.data(), to);
      break;
    case 3:
      spread.pixels<3>(out_.data(), to);
      break;
    default:
      spread.pixels<4>(out_.data(), to);
      break;
  }
}

DecodeStatus PngReader::check_end() {
  if (data_.ends_well()) return {};
  return {DecodeCode::corrupt, -1, "a PNG whose data end badly or have a wrong checksum"};
}

DecodeStatus PngReader::failure() const {
  const bool is_short = data_.fault() != InflateFault::broken;
  return {DecodeCode::corrupt, -1,
          is_short ? "a PNG with too little data" : "a PNG whose deflated data are broken"};
}

int64_t PngReader::scratch_bytes() const {
  return data_.scratch_bytes() + rows_.bytes() + out_.bytes() + frame_.bytes();
}

void PngReader::end() {
  if (scratch_bytes() <= kKeptCodecBytes) return;
  data_.release();
  rows_.release();
  out_.release();
  frame_.release();
}

}  // namespace stoker
