#include <algorithm>
#include <exception>
#include <string>

#include "decode/pillow_resize.h"
#include "decode/pixel/colour.h"
#include "pipeline/augment.h"
#include "pipeline/digest.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {
namespace {

size_t image_bytes(Size size) {
  return size_t{3} * static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
}

MutableImageView view_of(std::vector<uint8_t>& pixels, Size size) {
  if (pixels.size() < image_bytes(size)) pixels.resize(image_bytes(size));
  return {pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

ImageView crop_of(ImageView image, Box box) {
  return {image.data + box.y * image.stride_bytes + 3 * box.x, box.width, box.height,
          image.stride_bytes};
}

bool is_whole(const AugmentDraw& draw, Size source) {
  return draw.crop == Box{0, 0, source.width, source.height} && draw.resized == source &&
         draw.window == draw.crop;
}

// A shuffled epoch accesses the source's memory at random: the next sample is prefetched while one
// is filled.
void prefetch(std::span<const uint8_t> bytes) {
  constexpr size_t kLine = 64, kMost = 4096;
  for (size_t at = 0; at < std::min(bytes.size(), kMost); at += kLine) {
    __builtin_prefetch(bytes.data() + at);
  }
}

void apply_jitter(MutableImageView image, const AugmentDraw& draw) {
  for (const uint8_t op : draw.jitter_order) {
    const float factor = draw.jitter_factor[op];
    if (factor == (op == 3 ? 0.0f : 1.0f)) continue;
    switch (op) {
      case 0:
        adjust_brightness(image, factor);
        break;
      case 1:
        adjust_contrast(image, factor);
        break;
      case 2:
        adjust_saturation(image, factor);
        break;
      default:
        adjust_hue(image, factor);
    }
  }
}

}  // namespace

struct Augmenter::Impl {
  Impl(const AugmentSpec& augment, const DecodeOptions& decode)
      : spec(augment), decoder(decode), resize(decode.pixels) {
    spec.validate();
    for (const PixelOperation& operation : spec.operations) {
      operation_keys.push_back(text_digest("stoker operation " + operation.name));
    }
  }

  bool is_shifted(const AugmentDraw& draw) const { return draw.shift_x != 0 || draw.shift_y != 0; }

  CropSpec crop_spec(const AugmentDraw& draw) const {
    // A shift comes before the flip, so the resize must not flip then.
    return {draw.crop, draw.resized, draw.window, draw.flip && !is_shifted(draw), spec.filter};
  }

  void mark() {
    if (marked) marks = {steady_now_ns(), thread_cpu_ns()};
  }

  // Calls `produce(view)` for the cropped, resized image, then shifts it into `out`.
  template <typename Produce>
  DecodeStatus shifted(const AugmentDraw& draw, MutableImageView out, Produce produce) {
    if (!is_shifted(draw)) {
      DecodeStatus status = produce(out);
      mark();
      return status;
    }
    const MutableImageView unshifted = view_of(unshifted_pixels, spec.output);
    DecodeStatus status = produce(unshifted);
    mark();
    if (status.ok()) {
      shift_flip(unshifted, draw.shift_x, draw.shift_y, draw.flip, spec.pad_mode, out);
    }
    return status;
  }

  void finish(const AugmentDraw& draw, MutableImageView out) const {
    if (draw.jitter) apply_jitter(out, draw);
    if (draw.cutout.width > 0) fill_box(out, draw.cutout, spec.cutout_value);
  }

  // Applies the user's operations. Each has its own key, so that none changes the draws of another.
  DecodeStatus operate(uint64_t seed, int64_t epoch, int64_t sample, MutableImageView out) const {
    for (size_t i = 0; i < spec.operations.size(); ++i) {
      const PixelOperation& operation = spec.operations[i];
      try {
        operation.apply(out, RandomKey(seed ^ operation_keys[i], epoch, sample));
      } catch (const std::exception& error) {
        return {DecodeCode::corrupt, -1, "operation " + operation.name + ": " + error.what()};
      } catch (...) {
        return {DecodeCode::corrupt, -1,
                "operation " + operation.name + " threw no std::exception"};
      }
    }
    return {};
  }

  ImageView interleaved(const uint8_t* bytes, bool planar, Size size) {
    if (!planar) return {bytes, size.width, size.height, ptrdiff_t{3} * size.width};
    const MutableImageView rgb = view_of(rgb_pixels, size);
    shift_flip_planar(bytes, size, 0, 0, false, PadMode::zero, rgb);
    return rgb;
  }

  AugmentSpec spec;                      // constant after construction
  std::vector<uint64_t> operation_keys;  // constant too: the seed is mixed with these
  ImageDecoder decoder;
  PillowResize resize;
  std::vector<uint8_t> unshifted_pixels;  // (output.height, output.width, 3) u8
  std::vector<uint8_t> rgb_pixels;        // a planar source image, interleaved
  bool marked = false;
  Marks marks;
};

Augmenter::Augmenter(const AugmentSpec& spec, const DecodeOptions& decode)
    : impl_(std::make_unique<Impl>(spec, decode)) {}

Augmenter::~Augmenter() = default;

DecodeStatus Augmenter::file_row(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                                 int64_t sample, MutableImageView out, Size& source,
                                 AugmentDraw& draw, std::span<const uint8_t> seek_index) {
  ImageInfo info;
  DecodeStatus status = impl_->decoder.info(bytes, info);
  if (!status.ok()) return status;
  source = info.size;
  draw = draw_augmentation(impl_->spec, source, seed, epoch, sample);
  status = impl_->shifted(draw, out, [&](MutableImageView target) {
    return impl_->decoder.decode(bytes, impl_->crop_spec(draw), target, seek_index);
  });
  if (!status.ok()) return status;
  impl_->finish(draw, out);
  return impl_->operate(seed, epoch, sample, out);
}

DecodeStatus Augmenter::raw_row(std::span<const uint8_t> bytes, bool planar, Size size,
                                uint64_t seed, int64_t epoch, int64_t sample, MutableImageView out,
                                AugmentDraw& draw, std::span<const uint8_t> next) {
  if (bytes.size() != image_bytes(size)) {
    return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()),
            std::to_string(bytes.size()) + " bytes of raw pixels, expected " +
                std::to_string(image_bytes(size))};
  }
  draw = draw_augmentation(impl_->spec, size, seed, epoch, sample);
  const bool whole = is_whole(draw, size);
  if (!whole || !planar) prefetch(next);
  if (whole) {
    if (planar) {
      shift_flip_planar(bytes.data(), size, draw.shift_x, draw.shift_y, draw.flip,
                        impl_->spec.pad_mode, out, next.data());
    } else {
      const ImageView image{bytes.data(), size.width, size.height, ptrdiff_t{3} * size.width};
      shift_flip(image, draw.shift_x, draw.shift_y, draw.flip, impl_->spec.pad_mode, out);
    }
  } else {
    const ImageView image = impl_->interleaved(bytes.data(), planar, size);
    impl_->shifted(draw, out, [&](MutableImageView target) {
      impl_->resize.run(crop_of(image, draw.crop), impl_->crop_spec(draw), target);
      return DecodeStatus{};
    });
  }
  impl_->finish(draw, out);
  return impl_->operate(seed, epoch, sample, out);
}

SeekUse Augmenter::seek_use() const { return impl_->decoder.seek_use(); }
void Augmenter::keep_marks(bool keep) { impl_->marked = keep; }
const Augmenter::Marks& Augmenter::marks() const { return impl_->marks; }

int64_t Augmenter::scratch_bytes() const {
  return impl_->decoder.scratch_bytes() + impl_->resize.scratch_bytes() +
         static_cast<int64_t>(impl_->unshifted_pixels.capacity() + impl_->rgb_pixels.capacity());
}

}  // namespace stoker
