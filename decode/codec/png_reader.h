// Reads the pixels of a PNG: our own reader of chunks (png_file), deflated data (inflate), row
// filters (png_filters) and colours (png_pixels) or labels (png_labels). Internal to CodecDecoder
// and label images.
//
// Rows stream from the compressed data to the sink. What lies below the region is not decoded, and
// what lies to the right of it is decompressed only. An interlaced picture is decoded as a whole,
// because each of its passes has rows of the whole picture; only the region is kept of it.
//
// Owner: CodecDecoder, reused for every file; read() forgets the file before. Threads: one at a
// time. Errors: a status. Memory: 32 KiB and some rows; of an interlaced picture, the region.
#pragma once

#include <cstdint>
#include <span>

#include "decode/aligned_buffer.h"
#include "decode/codec/inflate.h"
#include "decode/codec/png_file.h"
#include "decode/codec/png_pixels.h"
#include "decode/decode_status.h"
#include "decode/image.h"
#include "decode/resize/row_resizer.h"

namespace stoker {

class PngReader {
 public:
  // Passes the rows of `region` to `sink`, as RGB or in a format that was prepared for the file.
  // REQUIRES: read_png_header() accepted the bytes, and check_png_chunks() too; the region lies
  // inside.
  DecodeStatus read(std::span<const uint8_t> bytes, Box region, RowSink& sink);
  DecodeStatus read(std::span<const uint8_t> bytes, const PngRowFormat& format, Box region,
                    RowSink& sink);

  int64_t scratch_bytes() const;
  // Frees what one huge file would hold for the rest of the run.
  void end();

 private:
  struct Pass;

  DecodeStatus open(std::span<const uint8_t> bytes, size_t& pixels_at);
  DecodeStatus read_rows_of(std::span<const uint8_t> bytes, size_t pixels_at,
                            const PngRowFormat& format, Box region, RowSink& sink);
  DecodeStatus read_plain(InflateInput& data);
  DecodeStatus read_interlaced(InflateInput& data);
  void begin(InflateInput& data, std::span<const Pass> passes, bool is_whole);
  template <class Take>
  DecodeStatus read_rows(const Pass& pass, const Take& take);
  void give_rows(const uint8_t* rows, size_t stride, int count);
  void scatter_row(const uint8_t* row, const Pass& pass, int y);
  DecodeStatus check_end();
  DecodeStatus failure() const;
  size_t out_stride() const { return format_->pixel_bytes() * static_cast<size_t>(region_.width); }

  PngHeader header_;
  PngPalette palette_;
  PngPixels rgb_;
  const PngRowFormat* format_ = &rgb_;
  Inflater data_;
  Box region_;
  RowSink* sink_ = nullptr;
  AlignedBuffer<uint8_t> rows_;   // the row above, then those that are undone at once
  AlignedBuffer<uint8_t> out_;    // those rows as they are written, or one row of a pass
  AlignedBuffer<uint8_t> frame_;  // the region of an interlaced picture
};

}  // namespace stoker
