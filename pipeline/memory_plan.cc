// The formula of a Loader's memory (MemoryPlan): bounds for what is not allocated at construction.
#include "pipeline/memory_plan.h"

namespace stoker {
namespace {

constexpr int64_t kBytesPerColumn = 256;  // of a raw image that is resized: rows and tables

}  // namespace

int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode) {
  const int64_t output = int64_t{3} * augment.output.width * augment.output.height;
  if (source.encoding() != SampleEncoding::image_file) {
    const Size size = source.raw_size();
    const int64_t input = int64_t{3} * size.width * size.height;
    return input + output + kBytesPerColumn * (size.width + augment.output.width);
  }
  return 2 * output + decode_scratch_bound(decode, augment.output).streamed;
}

int64_t worker_frame_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode) {
  if (source.encoding() != SampleEncoding::image_file) return 0;
  const ScratchBound bound = decode_scratch_bound(decode, augment.output);
  return bound.whole_frame - bound.streamed;
}

}  // namespace stoker
