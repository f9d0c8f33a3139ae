#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "decode/codec/libtiff_reader.h"
#include "decode/codec/readers.h"
#include "decode/codec/tiff_lines.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

constexpr int kRowsAtOnce = 16;

class TiffReader {
 public:
  TiffReader(const TiffLayout& layout, Box region, CodecFrame& frame, const TakeFrame& take)
      : layout_(layout),
        region_(region),
        end_(region.y + region.height),
        frame_(frame),
        take_(take),
        line_(static_cast<size_t>(layout.line_bytes())) {}

  // Reads the rows of the region; strips and tiles that have none of them are left out.
  bool read(TiffLines& lines) {
    const bool is_by_line = !layout_.is_tiled && !layout_.is_separate;
    return for_each_row_of_parts([&](int top, int begin, int end) {
      return is_by_line ? read_strip(lines, top, begin, end) : read_band(lines, top, begin, end);
    });
  }

  bool convert(LibtiffReader& library) {
    return for_each_row_of_parts([&](int top, int begin, int end) {
      const int rows = layout_.has_packed_bits() ? layout_.lines_of_part(top) : end - top;
      frame_.begin({region_.x, top, region_.width, rows}, FrameColours::rgb);
      if (!library.convert(top, rows, region_.x, region_.width, frame_.row(0))) return false;
      take_(begin, end);
      return true;
    });
  }

 private:
  // Calls read(top, begin, end) for each row of parts: the row of the picture where it begins, and
  // those that it has of the region.
  template <class Read>
  bool for_each_row_of_parts(const Read& read) {
    const int height = layout_.part.height;
    for (int64_t top = region_.y - region_.y % height; top < end_; top += height) {
      const auto begin = std::max(static_cast<int>(top), region_.y);
      const auto end = static_cast<int>(std::min<int64_t>(top + height, end_));
      if (!read(static_cast<int>(top), begin, end)) return false;
    }
    return true;
  }

  bool begin_part(TiffLines& lines, int plane, int across, int top, int end) {
    const int64_t number = plane * layout_.parts_of_a_plane() +
                           int64_t{top / layout_.part.height} * layout_.parts_across() + across;
    return lines.begin({number, top, layout_.lines_of_part(top), end - top});
  }

  // Only some rows of a strip are held.
  bool read_strip(TiffLines& lines, int top, int begin, int end) {
    if (!begin_part(lines, 0, 0, top, end)) return false;
    for (int y = top; y < begin; ++y) {
      if (!lines.next(line_.data())) return false;
    }
    for (int y = begin; y < end; y += kRowsAtOnce) {
      const int rows = std::min(kRowsAtOnce, end - y);
      frame_.begin({region_.x, y, region_.width, rows}, layout_.colours);
      for (int r = 0; r < rows; ++r) {
        if (!lines.next(line_.data())) return false;
        unpack(region_.x, region_.width, 0, frame_.row(r));
      }
      take_(y, y + rows);
    }
    return true;
  }

  // Tiles beside each other, or the strips of all planes.
  bool read_band(TiffLines& lines, int top, int begin, int end) {
    frame_.begin({region_.x, begin, region_.width, end - begin}, layout_.colours);
    const int planes = layout_.is_separate ? frame_.channels() : 1;
    const int first = region_.x / layout_.part.width;
    const int last = (region_.x + region_.width - 1) / layout_.part.width;
    for (int plane = 0; plane < planes; ++plane) {
      for (int across = first; across <= last; ++across) {
        if (!begin_part(lines, plane, across, top, end)) return false;
        for (int y = top; y < end; ++y) {
          if (!lines.next(line_.data())) return false;
          if (y >= begin) unpack_part(across, plane, frame_.row(y - begin));
        }
      }
    }
    take_(begin, end);
    return true;
  }

  // Copies what a part's line has of the region to the frame's row.
  void unpack_part(int across, int plane, uint8_t* row) const {
    const int64_t left = int64_t{across} * layout_.part.width;
    const auto begin = static_cast<int>(std::max<int64_t>(left, region_.x));
    const auto end =
        static_cast<int>(std::min<int64_t>(left + layout_.part.width, region_.x + region_.width));
    unpack(static_cast<int>(begin - left), end - begin, plane,
           row + int64_t{begin - region_.x} * frame_.channels());
  }

  // A sample of up to 8 bits as it is.
  int index(const uint8_t* from, int64_t i) const {
    const auto bits = static_cast<int>(layout_.bits);
    const int64_t at = i * bits;
    return from[at / 8] >> (8 - bits - at % 8) & ((1 << bits) - 1);
  }

  uint8_t sample(const uint8_t* from, int64_t i) const {
    switch (layout_.bits) {
      case 1:
        return static_cast<uint8_t>(index(from, i) * 255);
      case 2:
        return static_cast<uint8_t>(index(from, i) * 85);
      case 4:
        return static_cast<uint8_t>(index(from, i) * 17);
      case 16: {
        uint16_t value;
        std::memcpy(&value, from + 2 * i, sizeof value);
        if (layout_.colours == FrameColours::gray) {
          return value > 255 ? uint8_t{255} : static_cast<uint8_t>(value);
        }
        return static_cast<uint8_t>(value >> 8);
      }
      default:
        return from[i];
    }
  }

  // Copies samples of the line, of one plane or of all, to the frame's channels.
  void unpack(int first, int pixels, int plane, uint8_t* to) const {
    const uint8_t* from = line_.data();
    const int channels = frame_.channels();
    const int given = layout_.is_separate ? 1 : static_cast<int>(layout_.samples);
    const int wanted = layout_.is_separate ? 1 : channels;
    const uint8_t inverted = layout_.photometric == kTiffWhiteIsZero ? 255 : 0;
    if (layout_.bits == 8 && given == channels && inverted == 0) {
      std::memcpy(to, from + int64_t{first} * channels, static_cast<size_t>(pixels) * channels);
      return;
    }
    if (layout_.has_palette) {
      for (int i = 0; i < pixels; ++i) {
        std::copy_n(layout_.palette[index(from, (int64_t{first} + i) * given)], 3, to + 3 * i);
      }
      return;
    }
    for (int i = 0; i < pixels; ++i) {
      for (int c = 0; c < wanted; ++c) {
        to[i * channels + plane + c] = sample(from, (int64_t{first} + i) * given + c) ^ inverted;
      }
    }
  }

  const TiffLayout& layout_;
  const Box region_;
  const int end_;  // of the region's rows
  CodecFrame& frame_;
  const TakeFrame& take_;
  ScratchVector<uint8_t> line_;
};

}  // namespace

DecodeStatus read_tiff_pixels(std::span<const uint8_t> bytes, Box region, CodecFrame& frame,
                              const TakeFrame& take) {
  TiffLayout layout;
  DecodeStatus status = read_tiff_layout(bytes, layout);
  if (!status.ok()) return status;
  TiffReader reader(layout, region, frame, take);
  if (StoredTiffLines::has(layout) && !layout.is_converted()) {
    StoredTiffLines lines(bytes, layout);
    return reader.read(lines) ? status : DecodeStatus{DecodeCode::corrupt, -1, lines.problem()};
  }
  LibtiffReader library(bytes, layout);
  status = library.open();
  if (!status.ok()) return status;
  const bool is_read = layout.is_converted() ? reader.convert(library) : reader.read(library);
  return is_read ? status : DecodeStatus{DecodeCode::corrupt, -1, library.problem()};
}

}  // namespace stoker
