// The formula of a Loader's memory (MemoryPlan): bounds for what is not allocated at construction.
#include "pipeline/feed/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "pipeline/augment/program.h"
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

// Returns what a row of a picture needs at least: the image on which those steps begin that the
// decoder does not do. 0: nobody knows.
int64_t least_picture_bytes(const AugmentSpec& augment, Size size, SampleId id) {
  constexpr int64_t kEpochsTried = 8;
  Draws draws;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t epoch = 0; epoch < kEpochsTried; ++epoch) {
    int64_t of_views = 0;
    for (int view = 0; view < augment.own_views(); ++view) {
      draw_augmentation(augment, size, 0, epoch, id, draws, view);
      if (!draws.failure().empty()) return 0;
      const Box& window = plan_decode(draws).crop.window;
      of_views = std::max(of_views, pixel_bytes({window.width, window.height}));
    }
    least = std::min(least, of_views);
  }
  return least;
}

// Returns what a row needs that is made of several pictures, or has masks.
int64_t beside_picture(const Source& source, const AugmentSpec& augment) {
  int64_t bytes = augment.mix.on() ? mix_scratch_bytes(augment.output) : 0;
  if (augment.combines()) bytes += CombinedRow::scratch_bound(augment);
  if (source.annotations().any()) {
    bytes += kBytesPerMaskPixel * augment.output.width * augment.output.height;
  }
  return bytes;
}

}  // namespace

int64_t worker_scratch_bytes(const Source& source, const AugmentSpec& augment,
                             const DecodeOptions& decode) {
  const bool is_file = source.encoding() == SampleEncoding::image_file;
  const std::optional<Size> raw = is_file ? std::nullopt : std::optional(source.raw_size());
  const Size largest = largest_row(augment);
  const int64_t output = pixel_bytes(largest);
  int64_t working = 0;
  for (int view = 0; view < augment.views(); ++view) {
    working = std::max(working, working_bytes(augment.view(view), raw));
  }
  int64_t bytes = working + beside_picture(source, augment);
  if (!is_file) {
    if (augment.has_pictures()) bytes += decode_scratch_bound(decode, largest).streamed;
    return bytes + pixel_bytes(*raw) + output + kBytesPerColumn * (raw->width + largest.width);
  }
  if (augment.own_views() > 1) bytes += 3 * kMaxSharedPixels;
  return bytes + 2 * output + decode_scratch_bound(decode, largest).streamed;
}

int64_t worker_usual_bytes(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode, const std::optional<PictureLook>& look) {
  constexpr int64_t kDecoder = 900 << 10, kSmallBlocks = 80 << 10;
  const int64_t most = worker_scratch_bytes(source, augment, decode);
  if (source.encoding() != SampleEncoding::image_file) return most;
  if (look) {
    const int64_t partner = augment.mix.on() ? look->file_bytes : 0;
    // Buffers that grow leave holes behind.
    return look->row_bytes + look->row_bytes / 8 + kSmallBlocks + partner +
           beside_picture(source, augment);
  }
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

void refuse_unfit_pictures(const Source& source, const AugmentSpec& augment,
                           const DecodeOptions& decode, const MemoryShares& shares,
                           int64_t tolerated) {
  constexpr int64_t kMiB = 1 << 20;
  const int64_t most = shares.own + shares.pictures;
  // Most recipes begin with a crop or a resize, which no picture is too large for.
  const auto side = static_cast<int>(std::sqrt(static_cast<double>(decode.max_pixels)));
  const bool is_known =
      source.encoding() == SampleEncoding::image_file && source.annotations().any();
  if (!is_known || augment.combines() || least_picture_bytes(augment, {side, side}, 0) <= most) {
    return;
  }
  int64_t unfit = 0, largest = 0, first_needs = 0;
  SampleId first = -1;
  for (SampleId id = 0; id < source.size(); ++id) {
    const Size size = source.picture_size(id);
    // A picture with more than max_pixels is a bad sample, whatever memory there is.
    const int64_t pixels = int64_t{size.width} * size.height;
    if (size.width <= 0 || size.height <= 0 || pixels > decode.max_pixels || 3 * pixels <= most) {
      continue;
    }
    const int64_t needed = least_picture_bytes(augment, size, id);
    if (needed <= most) continue;
    if (unfit++ == 0) {
      first = id;
      first_needs = needed;
    }
    largest = std::max(largest, needed);
  }
  if (unfit <= tolerated) return;
  const Size size = source.picture_size(first);
  // Workers get a quarter of what a limit has more, at most, and files an eighth of the rest.
  const int64_t enough = shares.limit + (largest - most) / 21 * 32 + kMiB;
  throw InvalidField(
      "FeedOptions", "memory",
      " is " + std::to_string(shares.limit / kMiB) + " MiB, of which a picture may have " +
          std::to_string(most / kMiB) + " MiB, and " + std::to_string(unfit) + " of " +
          std::to_string(source.size()) +
          " pictures can never have enough, where `max_bad` allows " + std::to_string(tolerated) +
          ": the first is " + source.name(first) + ", " + std::to_string(size.width) + " x " +
          std::to_string(size.height) + " pixels, which take at least " +
          std::to_string(first_needs / kMiB) + " MiB; the largest needs a limit of about " +
          std::to_string(enough / kMiB) +
          " MiB, or a smaller picture (`augment` may begin with a crop or a resize)");
}

}  // namespace stoker
