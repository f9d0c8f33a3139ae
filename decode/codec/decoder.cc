#include "decode/codec/decoder.h"

#include <algorithm>
#include <vector>

#include "decode/codec/frame.h"
#include "decode/codec/readers.h"

namespace stoker {
namespace {

constexpr int kBatchRows = 16;

}  // namespace

struct CodecDecoder::Impl {
  CodecFrame frame;
  std::vector<uint8_t> rows;  // (kBatchRows, region width, 3) u8

  DecodeStatus read(std::span<const uint8_t> bytes, const CodecHeader& header) {
    switch (header.format) {
      case ImageFormat::bmp:
        return read_bmp_pixels(bytes, frame);
      case ImageFormat::png:
        return read_png_pixels(bytes, header, frame);
      case ImageFormat::tiff:
        return read_tiff_pixels(bytes, header, frame);
      case ImageFormat::webp:
        return read_webp_pixels(bytes, header, frame);
      default:
        return {DecodeCode::not_an_image, 0, "no known signature"};
    }
  }

  void give_rows(Box region, RowSink& sink) {
    const size_t stride = 3 * static_cast<size_t>(region.width);
    if (rows.size() < kBatchRows * stride) rows.resize(kBatchRows * stride);
    for (int done = 0; done < region.height;) {
      const int batch = std::min(kBatchRows, region.height - done);
      for (int r = 0; r < batch; ++r) {
        frame.rgb(region.y + done + r, region.x, region.width, rows.data() + r * stride);
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
  const DecodeStatus status = impl_->read(bytes, header);
  if (status.ok()) impl_->give_rows(region, sink);
  impl_->frame.end();
  return status;
}

int64_t CodecDecoder::scratch_bytes() const {
  return impl_->frame.scratch_bytes() + static_cast<int64_t>(impl_->rows.capacity());
}

}  // namespace stoker
