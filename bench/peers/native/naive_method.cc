// A simple C++ loader: decode the whole file with libjpeg-turbo, take the crop, resize it
// with OpenCV's bilinear filter (not antialiased, so the pixels differ from Pillow's), mirror it.
#include <opencv2/imgproc.hpp>
#include <optional>
#include <stdexcept>

#include "bench/peers/native/method.h"
#include "decode/jpeg/libjpeg_session.h"
#include "decode/pixel_ops.h"

namespace stoker::peers {
namespace {

class Naive final : public Method {
 public:
  void decode(int, std::span<const uint8_t> bytes, const CropSpec& spec,
              MutableImageView out) override {
    session_.emplace(bytes);
    if (!session_->read_header() || !read()) {
      const DecodeStatus status = session_->failure();
      session_.reset();
      throw std::runtime_error("libjpeg-turbo: " + status.message);
    }
    const Size size{static_cast<int>(session_->cinfo().output_width),
                    static_cast<int>(session_->cinfo().output_height)};
    session_.reset();
    const cv::Mat image(size.height, size.width, CV_8UC3, pixels_.data());
    const Box& c = spec.crop;
    const Box& w = spec.window;
    cv::resize(image(cv::Rect(c.x, c.y, c.width, c.height)), resized_,
               cv::Size(spec.resized.width, spec.resized.height), 0, 0, cv::INTER_LINEAR);
    cv::Mat result(out.height, out.width, CV_8UC3, out.data, static_cast<size_t>(out.stride_bytes));
    resized_(cv::Rect(w.x, w.y, w.width, w.height)).copyTo(result);
    if (spec.flip) flip_horizontal(out);
  }

 private:
  bool read() {
    const bool started = session_->guarded([](jpeg_decompress_struct& cinfo) {
      cinfo.out_color_space = JCS_RGB;
      jpeg_start_decompress(&cinfo);
    });
    if (!started) return false;
    const size_t stride = size_t{3} * session_->cinfo().output_width;
    pixels_.resize(std::max(pixels_.size(), stride * session_->cinfo().output_height));
    return session_->guarded([&](jpeg_decompress_struct& cinfo) {
      while (cinfo.output_scanline < cinfo.output_height) {
        JSAMPROW row = pixels_.data() + stride * cinfo.output_scanline;
        jpeg_read_scanlines(&cinfo, &row, 1);
      }
    });
  }

  std::optional<JpegSession> session_;  // of the current image
  std::vector<uint8_t> pixels_;
  cv::Mat resized_;
};

}  // namespace

std::unique_ptr<Method> make_naive() {
  cv::setNumThreads(1);  // images are processed in parallel, not the parts of one image
  return std::make_unique<Naive>();
}

std::string naive_version() { return libjpeg_version() + ", OpenCV " CV_VERSION; }

}  // namespace stoker::peers
