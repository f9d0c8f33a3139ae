#include "decode/codec/codec_plugin.h"

#include "decode/codec/readers.h"
#include "staging/plugin.h"

namespace stoker {
namespace {

constexpr CodecPluginName kOpenjpeg{"JPEG 2000", "OpenJPEG", "libopenjp2-7-dev",
                                    "libstoker_openjpeg.so"};
constexpr CodecPluginName kAvif{"AVIF", "libavif", "libavif-dev and libdav1d-dev",
                                "libstoker_avif.so"};

struct Opened {
  explicit Opened(const CodecPluginName& name) {
    const Plugin plugin = open_plugin(name.file, kCodecPluginEntry);
    problem = plugin.problem;
    if (plugin.entry == nullptr) return;
    table = reinterpret_cast<CodecPluginEntry>(plugin.entry)();
    if (table->version == kCodecPluginVersion && std::string(table->build) == STOKER_BUILD_STAMP)
      return;
    problem = std::string(name.file) + " comes from another build of stoker";
    table = nullptr;
  }
  const CodecPlugin* table = nullptr;
  std::string problem;
};

const Opened& opened(ImageFormat format) {
  if (format == ImageFormat::avif) {
    static const Opened avif(kAvif);
    return avif;
  }
  static const Opened openjpeg(kOpenjpeg);
  return openjpeg;
}

}  // namespace

const CodecPluginName& codec_plugin_name(ImageFormat format) {
  return format == ImageFormat::avif ? kAvif : kOpenjpeg;
}

const CodecPlugin* open_codec_plugin(ImageFormat format, std::string& problem) {
  const Opened& plugin = opened(format);
  problem = plugin.problem;
  return plugin.table;
}

DecodeStatus read_plugin_pixels(std::span<const uint8_t> bytes, const CodecHeader& header,
                                CodecFrame& frame) {
  constexpr size_t kMaxBytes = 0x7fffffff;
  const CodecPluginName& name = codec_plugin_name(header.format);
  std::string problem;
  const CodecPlugin* plugin = open_codec_plugin(header.format, problem);
  if (plugin == nullptr) {
    return {DecodeCode::unsupported, 0,
            std::string(name.format) + " needs " + name.library + ": " + problem +
                " (it is built with " + name.package + ")"};
  }
  if (bytes.size() > kMaxBytes) {
    return {DecodeCode::too_large, -1, std::string("more bytes than ") + name.library + " reads"};
  }
  constexpr int64_t kLibraryBytesPerPixel = 12;
  const int64_t pixels = int64_t{header.size.width} * header.size.height;
  const ScratchCharge charge(kLibraryBytesPerPixel * std::max(pixels, header.planned_pixels));
  frame.begin({0, 0, header.size.width, header.size.height}, FrameColours::rgb);
  if (plugin->decode(bytes, header.size, frame.row(0), problem)) return {};
  return {DecodeCode::corrupt, -1, problem};
}

}  // namespace stoker
