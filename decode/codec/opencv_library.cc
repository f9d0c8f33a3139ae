// libstoker_opencv.so (codec_plugin.h), and the only file of this folder that uses OpenCV.
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <utility>

#include "decode/codec/codec_plugin.h"

namespace stoker {
namespace {

bool decode(std::span<const uint8_t> bytes, Size size, uint8_t* rgb, std::string& problem) {
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
  static const CodecPlugin plugin{kCodecPluginVersion, STOKER_BUILD_STAMP, CV_VERSION, decode};
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::setNumThreads(1);
  return &plugin;
}
