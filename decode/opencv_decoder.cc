// The only file that knows OpenCV.
#include <algorithm>
#include <climits>
#include <exception>
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

#include "decode/codec_decoder.h"

namespace stoker {
namespace {

constexpr int kBatchRows = 16;

int read_flags(SampleRule samples) {
  switch (samples) {
    case SampleRule::as_is:
      return cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION;
    case SampleRule::clip_16_bits:
      return cv::IMREAD_GRAYSCALE | cv::IMREAD_ANYDEPTH | cv::IMREAD_IGNORE_ORIENTATION;
    case SampleRule::high_byte_of_16:
      return cv::IMREAD_COLOR | cv::IMREAD_ANYDEPTH | cv::IMREAD_IGNORE_ORIENTATION;
  }
  return cv::IMREAD_COLOR;
}

int matrix_type(SampleRule samples) {
  switch (samples) {
    case SampleRule::as_is:
      return CV_8UC3;
    case SampleRule::clip_16_bits:
      return CV_16UC1;
    case SampleRule::high_byte_of_16:
      return CV_16UC3;
  }
  return CV_8UC3;
}

// Columns [x, x + width) of a row of OpenCV's (B, G, R) to RGB.
void convert_row(const cv::Mat& frame, int y, int x, int width, SampleRule samples, uint8_t* to) {
  if (samples == SampleRule::as_is) {
    const uint8_t* from = frame.ptr<uint8_t>(y) + 3 * static_cast<size_t>(x);
    for (int i = 0; i < 3 * width; i += 3) {
      to[i] = from[i + 2];
      to[i + 1] = from[i + 1];
      to[i + 2] = from[i];
    }
  } else if (samples == SampleRule::clip_16_bits) {
    const uint16_t* from = frame.ptr<uint16_t>(y) + x;
    for (int i = 0; i < width; ++i) {
      const auto value = static_cast<uint8_t>(std::min<int>(from[i], 255));
      to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = value;
    }
  } else {
    const uint16_t* from = frame.ptr<uint16_t>(y) + 3 * static_cast<size_t>(x);
    for (int i = 0; i < 3 * width; i += 3) {
      for (int c = 0; c < 3; ++c) to[i + c] = static_cast<uint8_t>(from[i + 2 - c] >> 8);
    }
  }
}

// The whole image, as OpenCV decodes it; empty if it cannot. A frame that is handed to imdecode
// would come back with the pixels that it had where OpenCV refuses the header, so there is none.
cv::Mat read_frame(std::span<const uint8_t> bytes, SampleRule samples) {
  const cv::Mat file(1, static_cast<int>(bytes.size()), CV_8UC1,
                     const_cast<uint8_t*>(bytes.data()));  // imdecode only reads
  return cv::imdecode(file, read_flags(samples));
}

}  // namespace

struct CodecDecoder::Impl {
  std::vector<uint8_t> rows;  // (kBatchRows, region width, 3) u8

  void give_rows(const cv::Mat& frame, Box region, SampleRule samples, RowSink& sink) {
    const size_t stride = 3 * static_cast<size_t>(region.width);
    if (rows.size() < kBatchRows * stride) rows.resize(kBatchRows * stride);
    for (int done = 0; done < region.height;) {
      const int batch = std::min(kBatchRows, region.height - done);
      for (int r = 0; r < batch; ++r) {
        convert_row(frame, region.y + done + r, region.x, region.width, samples,
                    rows.data() + r * stride);
      }
      sink.rows(rows.data(), static_cast<ptrdiff_t>(stride), batch);
      done += batch;
    }
  }
};

CodecDecoder::CodecDecoder() : impl_(std::make_unique<Impl>()) {
  // Bad files are reported by status; OpenCV's own log would repeat them on standard error.
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
}
CodecDecoder::~CodecDecoder() = default;

DecodeStatus CodecDecoder::decode(std::span<const uint8_t> bytes, const CodecHeader& header,
                                  Box region, RowSink& sink) {
  if (bytes.size() > INT_MAX) return {DecodeCode::too_large, -1, "a file of more than 2 GiB"};
  try {
    const cv::Mat frame = read_frame(bytes, header.samples);
    if (frame.empty()) return {DecodeCode::corrupt, -1, "OpenCV cannot read the pixels"};
    if (frame.cols != header.size.width || frame.rows != header.size.height ||
        frame.type() != matrix_type(header.samples)) {
      return {DecodeCode::corrupt, -1, "the pixels are not what the header says"};
    }
    impl_->give_rows(frame, region, header.samples, sink);
  } catch (const std::exception& error) {
    return {DecodeCode::corrupt, -1, std::string("OpenCV: ") + error.what()};
  }
  return {};
}

int64_t CodecDecoder::scratch_bytes() const { return static_cast<int64_t>(impl_->rows.capacity()); }

}  // namespace stoker
