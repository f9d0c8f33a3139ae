// The formula of a Loader's memory (MemoryPlan): what is not allocated at construction is bounded.
#include "pipeline/memory_plan.h"

#include <algorithm>

namespace stoker {
namespace {

// Of a JPEG that is decoded row by row: libjpeg's rows of all components, ours, and the tables of
// the resampling, per column of the widest image that the format allows. A test holds it.
constexpr int64_t kBytesPerColumn = 256;
constexpr int64_t kMaxJpegWidth = 65'535;
// Formats and variants that need the whole frame: 3 bytes of pixels and as much to convert them,
// or 2 bytes for each coefficient of a progressive JPEG without subsampling.
constexpr int64_t kBytesPerFramePixel = 6;

}  // namespace

int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode) {
  const int64_t output = int64_t{3} * augment.output.width * augment.output.height;
  if (source.encoding() != SampleEncoding::image_file) {
    const Size size = source.raw_size();
    const int64_t input = int64_t{3} * size.width * size.height;
    return input + output + kBytesPerColumn * (size.width + augment.output.width);
  }
  const int64_t columns = std::min(kMaxJpegWidth, decode.max_pixels);
  return 2 * output + kBytesPerColumn * (columns + augment.output.width);
}

int64_t worker_frame_bytes(const Source& source, const DecodeOptions& decode) {
  if (source.encoding() != SampleEncoding::image_file) return 0;
  return kBytesPerFramePixel * decode.max_pixels;
}

}  // namespace stoker
