#include "decode/codec/opencv_plugin.h"

#include "decode/codec/readers.h"
#include "staging/plugin.h"

namespace stoker {
namespace {

struct Opened {
  Opened() {
    const Plugin plugin = open_plugin(kOpencvPluginFile, kOpencvPluginEntry);
    problem = plugin.problem;
    if (plugin.entry == nullptr) return;
    table = reinterpret_cast<OpencvPluginEntry>(plugin.entry)();
    if (table->version == kOpencvPluginVersion && std::string(table->build) == STOKER_BUILD_STAMP)
      return;
    problem = std::string(kOpencvPluginFile) + " comes from another build of stoker";
    table = nullptr;
  }
  const OpencvPlugin* table = nullptr;
  std::string problem;
};

}  // namespace

const OpencvPlugin* open_opencv_plugin(std::string& problem) {
  static const Opened opened;
  problem = opened.problem;
  return opened.table;
}

DecodeStatus read_opencv_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                                CodecFrame& frame) {
  constexpr size_t kMostBytes = 0x7fffffff;
  std::string problem;
  const OpencvPlugin* plugin = open_opencv_plugin(problem);
  if (plugin == nullptr) return {DecodeCode::unsupported, 0, "JPEG 2000 needs OpenCV: " + problem};
  if (bytes.size() > kMostBytes) return {DecodeCode::too_large, -1, "more bytes than OpenCV reads"};
  frame.begin({0, 0, header.size.width, header.size.height}, FrameColours::rgb);
  if (plugin->decode(bytes, header.size, frame.row(0), problem)) return {};
  return {DecodeCode::corrupt, -1, problem};
}

}  // namespace stoker
