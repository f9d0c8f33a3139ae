// AVIF files: our own readers of the boxes and of AV1's headers, and, where it is there, libavif
// behind them, as the plugin calls it. No access outside, no impossible values, the same pixels
// twice, all of them written.
#include <cstdlib>
#include <vector>

#include "decode/codec/avif_file.h"
#include "decode/codec/codec_plugin.h"

#if STOKER_HAS_AVIF

extern "C" const stoker::CodecPlugin* stoker_codec_plugin();

namespace {

void check_pixels(std::span<const uint8_t> file, stoker::Size size) {
  const size_t bytes = size_t{3} * static_cast<size_t>(size.width) * size.height;
  std::vector<uint8_t> first(bytes, 0x11), second(bytes, 0xEE);
  std::string problem;
  const stoker::CodecPlugin* plugin = stoker_codec_plugin();
  const bool is_read = plugin->decode(file, size, first.data(), problem);
  if (plugin->decode(file, size, second.data(), problem) != is_read) std::abort();
  if (is_read && first != second) std::abort();
}

}  // namespace

#else

namespace {

void check_pixels(std::span<const uint8_t>, stoker::Size) {}

}  // namespace

#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  constexpr int64_t kMaxPlanned = 1 << 18;
  const std::span<const uint8_t> file(data, size);
  AvifHeader header;
  if (!is_avif(file) || !read_avif_header(file, header).ok()) return 0;
  if (header.size.width <= 0 || header.size.height <= 0 || header.orientation < 1 ||
      header.orientation > 8 ||
      header.planned_pixels < int64_t{header.size.width} * header.size.height) {
    std::abort();
  }
  if (check_avif_body(file).ok() && header.planned_pixels <= kMaxPlanned) {
    check_pixels(file, header.size);
  }
  return 0;
}
