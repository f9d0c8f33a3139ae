// libstoker_opencv.so (codec_plugin.h), and the only file of this folder that uses OpenCV.
#include <iostream>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <streambuf>
#include <utility>

#include "decode/codec/codec_plugin.h"

namespace stoker {
namespace {

thread_local bool is_decoding = false;

// OpenCV writes to std::cerr what it also reports. In the place of that stream's buffer, this drops
// what a thread writes while it decodes, and passes on everything else.
class DropWhileDecoding final : public std::streambuf {
 public:
  explicit DropWhileDecoding(std::streambuf& to) : to_(to) {}

 protected:
  int_type overflow(int_type letter) override {
    if (is_decoding || traits_type::eq_int_type(letter, traits_type::eof())) {
      return traits_type::not_eof(letter);
    }
    return to_.sputc(traits_type::to_char_type(letter));
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    return is_decoding ? count : to_.sputn(text, count);
  }
  int sync() override { return to_.pubsync(); }

 private:
  std::streambuf& to_;
};

bool decode_jpeg2000(std::span<const uint8_t> bytes, Size size, uint8_t* rgb,
                     std::string& problem) {
  struct Decoding {
    Decoding() { is_decoding = true; }
    ~Decoding() { is_decoding = false; }
  };
  const Decoding decoding;
  try {
    const cv::Mat file(1, static_cast<int>(bytes.size()), CV_8UC1,
                       const_cast<uint8_t*>(bytes.data()));  // OpenCV does not write there
    cv::Mat pixels(size.height, size.width, CV_8UC3, rgb);
    cv::imdecode(file, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION, &pixels);
    // Another place: OpenCV found other sizes than the header says.
    if (pixels.data != rgb || pixels.rows != size.height || pixels.cols != size.width) {
      problem = "OpenCV cannot read the pixels";
      return false;
    }
  } catch (const cv::Exception& error) {
    problem = "OpenCV: " + error.err;  // what() has several lines and names OpenCV's source files
    return false;
  } catch (const std::exception& error) {
    problem = std::string("OpenCV: ") + error.what();
    return false;
  }
  const size_t count = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  for (size_t i = 0; i < count; ++i) std::swap(rgb[3 * i], rgb[3 * i + 2]);  // it gives BGR
  return true;
}

}  // namespace
}  // namespace stoker

extern "C" __attribute__((visibility("default"))) const stoker::CodecPlugin* stoker_codec_plugin() {
  using namespace stoker;
  static const CodecPlugin plugin{kCodecPluginVersion, STOKER_BUILD_STAMP, CV_VERSION,
                                  decode_jpeg2000};
  // Never destroyed: whoever writes last, when the process ends, still finds it.
  static auto* const errors = new DropWhileDecoding(*std::cerr.rdbuf());
  std::cerr.rdbuf(errors);
  // Errors come as exceptions; without this they are printed, too.
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::setNumThreads(1);
  return &plugin;
}
