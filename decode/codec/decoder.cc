#include "decode/codec/decoder.h"

#include <algorithm>
#include <vector>

#include "decode/codec/frame.h"
#include "decode/codec/png_reader.h"
#include "decode/codec/pnm_file.h"
#include "decode/codec/readers.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

constexpr int kFrameBatchRows = 16;

bool contains(Box outer, Box inner) {
  return inner.x >= outer.x && inner.y >= outer.y &&
         inner.x + inner.width <= outer.x + outer.width &&
         inner.y + inner.height <= outer.y + outer.height;
}

}  // namespace

struct CodecDecoder::Impl {
  CodecFrame frame;
  PngReader png;
  ScratchVector<uint8_t> rows;  // (kFrameBatchRows, region width, 3) u8

  DecodeStatus read(std::span<const uint8_t> bytes, const CodecHeader& header, Box region) {
    switch (header.format) {
      case ImageFormat::bmp:
        return read_bmp_pixels(bytes, region, frame);
      case ImageFormat::gif:
        return read_gif_pixels(bytes, region, frame);
      case ImageFormat::avif:
      case ImageFormat::jpeg2000:
        return read_plugin_pixels(bytes, header, frame);
      case ImageFormat::webp:
        return read_webp_pixels(bytes, header, region, frame);
      default:
        return {DecodeCode::not_an_image, 0, "no known signature"};
    }
  }

  // Only the rows and columns of the region are touched: there is no frame.
  DecodeStatus give_pnm(std::span<const uint8_t> bytes, Box region, RowSink& sink) {
    PnmLayout layout;
    const DecodeStatus status = read_pnm_layout(bytes, layout);
    if (!status.ok()) return status;
    PnmRows pnm(bytes, layout);
    give_rows(region, sink,
              [&](int y, uint8_t* to) { return pnm.read(y, region.x, region.width, to); });
    return pnm.status();
  }

  DecodeStatus give(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                    RowSink& sink) {
    if (header.format == ImageFormat::pnm) return give_pnm(bytes, region, sink);
    if (header.format == ImageFormat::png) return png.read(bytes, region, sink);
    if (header.format == ImageFormat::tiff) {
      return read_tiff_pixels(bytes, region, frame, [&](int begin, int end) {
        give_frame({region.x, begin, region.width, end - begin}, sink);
      });
    }
    const DecodeStatus status = read(bytes, header, region);
    if (status.ok()) give_frame(region, sink);
    return status;
  }

  void give_frame(Box region, RowSink& sink) {
    const Box& box = frame.box();
    if (frame.colours() == FrameColours::rgb && contains(box, region)) {
      sink.rows(frame.row(region.y - box.y) + 3 * static_cast<size_t>(region.x - box.x),
                static_cast<ptrdiff_t>(frame.stride()), region.height);
      return;
    }
    give_rows(region, sink, [&](int y, uint8_t* to) {
      frame.rgb(y, region.x, region.width, to);
      return true;
    });
  }

  // Ends early where read_row() returns false.
  template <class ReadRow>
  void give_rows(Box region, RowSink& sink, const ReadRow& read_row) {
    const size_t stride = 3 * static_cast<size_t>(region.width);
    if (rows.size() < kFrameBatchRows * stride) rows.resize(kFrameBatchRows * stride);
    for (int done = 0; done < region.height;) {
      const int batch = std::min(kFrameBatchRows, region.height - done);
      for (int r = 0; r < batch; ++r) {
        if (!read_row(region.y + done + r, rows.data() + r * stride)) return;
      }
      sink.rows(rows.data(), static_cast<ptrdiff_t>(stride), batch);
      done += batch;
    }
  }
};

CodecDecoder::CodecDecoder() : impl_(std::make_unique<Impl>()) {}
CodecDecoder::~CodecDecoder() = default;

DecodeStatus CodecDecoder::decode(std::span<const uint8_t> bytes, const CodecHeader& header,
                                  Box region, RowSink& sink) {
  const DecodeStatus status = impl_->give(bytes, header, region, sink);
  impl_->frame.end();
  impl_->png.end();
  if (std::ssize(impl_->rows) > kKeptCodecBytes) ScratchVector<uint8_t>().swap(impl_->rows);
  return status;
}

int64_t CodecDecoder::scratch_bytes() const {
  return impl_->frame.scratch_bytes() + impl_->png.scratch_bytes() +
         static_cast<int64_t>(impl_->rows.capacity());
}

}  // namespace stoker
