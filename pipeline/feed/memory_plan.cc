// The formula of a Loader's memory (MemoryPlan): bounds for what is not allocated at construction.
#include "pipeline/feed/memory_plan.h"

#include <algorithm>
#include <optional>
#include <string>

#include "pipeline/files/invalid_field.h"
#include "pipeline/row/combined_row.h"
#include "staging/group_memory.h"

namespace stoker {
namespace {

constexpr int64_t kBytesPerColumn = 256;  // of a raw image that is resized: rows and tables

// Images on the way are kept twice, and a blur needs floats of one.
constexpr int64_t kWorkingImages = 2 + 2 * sizeof(float);

// Where each pixel of a warped mask comes from, and the bits of the mask of one object.
constexpr int64_t kBytesPerMaskPixel = 16;

int64_t pixel_bytes(Size size) { return int64_t{3} * size.width * size.height; }

// Returns the size of the largest of a sample's rows. A decoder's memory grows with it.
Size largest_row(const AugmentSpec& augment) {
  Size largest = augment.output;
  for (const AugmentView& view : augment.more_views) {
    if (!augment.has_pictures()) break;  // made of the pixels that all views share
    largest = {std::max(largest.width, view.output.width),
               std::max(largest.height, view.output.height)};
  }
  return largest;
}

// Returns what the stages of a view need that the decoder does not do, as far as the sizes on the
// way are the same for all images.
int64_t working_bytes(const AugmentView& view, std::optional<Size> size) {
  int64_t largest = 0;
  for (const Stage& stage : view.stages.stages()) {
    size = stage.size(size, view.output);
    if (size) largest = std::max(largest, pixel_bytes(*size));
  }
  return kWorkingImages * largest;
}

}  // namespace

int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode) {
  const bool is_file = source.encoding() == SampleEncoding::image_file;
  const std::optional<Size> raw = is_file ? std::nullopt : std::optional(source.raw_size());
  const Size largest = largest_row(augment);
  const int64_t output = pixel_bytes(largest);
  int64_t bytes = augment.mix.on() ? mix_scratch_bytes(augment.output) : 0;
  int64_t working = 0;
  for (int view = 0; view < augment.views(); ++view) {
    working = std::max(working, working_bytes(augment.view(view), raw));
  }
  bytes += working;
  if (augment.combines()) bytes += CombinedRow::scratch_bound(augment);
  if (source.annotations().any()) {
    bytes += kBytesPerMaskPixel * augment.output.width * augment.output.height;
  }
  if (!is_file) {
    if (augment.has_pictures()) bytes += decode_scratch_bound(decode, largest).streamed;
    return bytes + pixel_bytes(*raw) + output + kBytesPerColumn * (raw->width + largest.width);
  }
  if (augment.own_views() > 1) bytes += 3 * kMaxSharedPixels;
  return bytes + 2 * output + decode_scratch_bound(decode, largest).streamed;
}

int64_t worker_usual_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode) {
  constexpr int64_t kDecoder = 900 << 10;
  const int64_t most = worker_scratch_bytes(source, augment, decode);
  if (source.encoding() != SampleEncoding::image_file) return most;
  return std::min(most, kDecoder + 2 * pixel_bytes(largest_row(augment)));
}

int64_t worker_frame_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode) {
  const auto is_file = [](const PictureInfo& picture) {
    return picture.encoding == SampleEncoding::image_file;
  };
  if (source.encoding() != SampleEncoding::image_file &&
      std::ranges::none_of(source.pictures(), is_file)) {
    return 0;
  }
  const ScratchBound bound = decode_scratch_bound(decode, largest_row(augment));
  const AnnotationInfo& annotations = source.annotations();
  // A label image is decoded whole.
  const int64_t labels = annotations.label_image ? annotations.label_bytes * decode.max_pixels : 0;
  return bound.whole_frame - bound.streamed + labels;
}

int64_t default_memory() {
  constexpr int64_t kIfUnknown = int64_t{4} << 30;
  const int64_t free = free_memory();
  return free < 0 ? kIfUnknown : free / 4 * 3;
}

MemoryShares share_memory(const FeedOptions& options, int64_t needed, int64_t own, int64_t workers,
                          bool reads_ahead) {
  constexpr int64_t kMiB = 1 << 20;
  constexpr int64_t kLeastOwn = 8 * kMiB, kLeastPictures = 32 * kMiB;
  constexpr int64_t kOwnShare = 4, kFilesShare = 8;
  const int64_t least_own = std::min(own, kLeastOwn);
  const int64_t least = needed + workers * least_own + kLeastPictures;
  MemoryShares shares{.limit = options.memory > 0 ? options.memory : default_memory()};
  if (options.memory > 0 && options.memory < least) {
    throw InvalidField(
        "FeedOptions", "memory",
        " is " + std::to_string(options.memory / kMiB) + " MiB, must be at least " +
            std::to_string(least / kMiB + 1) + " MiB: slabs, slots, caches and buffers have " +
            std::to_string(needed / kMiB) + " MiB, each of " + std::to_string(workers) +
            " workers " + std::to_string(least_own / kMiB) + " MiB, large pictures " +
            std::to_string(kLeastPictures / kMiB) + " MiB; fewer rows, slabs or workers need less");
  }
  shares.limit = std::max(shares.limit, least);
  const int64_t rest = shares.limit - needed;
  shares.own = std::clamp((rest - kLeastPictures) / kOwnShare / workers, least_own, own);
  const int64_t left = rest - workers * shares.own;
  shares.large_files = reads_ahead ? left / kFilesShare : 0;
  shares.pictures = left - shares.large_files;
  return shares;
}

}  // namespace stoker
