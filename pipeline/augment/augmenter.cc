#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "decode/pillow_resize.h"
#include "decode/pixel/colour.h"
#include "decode/scratch_vector.h"
#include "pipeline/annotation/picture_checks.h"
#include "pipeline/augment.h"
#include "pipeline/augment/program.h"
#include "staging/stage_stats.h"
#include "staging/tracer.h"

namespace stoker {
namespace {

std::string sides_text(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

MutableImageView view_of(ScratchVector<uint8_t>& pixels, Size size) {
  if (pixels.size() < image_bytes(size)) pixels.resize(image_bytes(size));
  return {pixels.data(), size.width, size.height, ptrdiff_t{3} * size.width};
}

ImageView crop_of(ImageView image, Box box) {
  return {image.data + box.y * image.stride_bytes + 3 * box.x, box.width, box.height,
          image.stride_bytes};
}

// Returns the smallest box that has both.
Box joined_boxes(const Box& a, const Box& b) {
  const int left = std::min(a.x, b.x), top = std::min(a.y, b.y);
  return {left, top, std::max(a.x + a.width, b.x + b.width) - left,
          std::max(a.y + a.height, b.y + b.height) - top};
}

// Draws that show a whole image as it is.
CropSpec whole_of(Size size) {
  const Box whole{0, 0, size.width, size.height};
  return {whole, size, whole};
}

bool shows_whole(const DecodePlan& plan, Size source) {
  const CropSpec& crop = plan.crop;
  return crop.crop == Box{0, 0, source.width, source.height} && crop.resized == source &&
         crop.window == crop.crop;
}

void copy_lines(ImageView from, MutableImageView to) {
  for (int y = 0; y < from.height; ++y) {
    std::copy_n(from.data + y * from.stride_bytes, 3 * static_cast<size_t>(from.width),
                to.data + y * to.stride_bytes);
  }
}

// A shuffled epoch accesses the source's memory at random: the next sample is prefetched while one
// is filled.
void prefetch(std::span<const uint8_t> bytes) {
  constexpr size_t kLine = 64, kMax = 4096;
  for (size_t at = 0; at < std::min(bytes.size(), kMax); at += kLine) {
    __builtin_prefetch(bytes.data() + at);
  }
}

}  // namespace

struct Augmenter::Impl {
  Impl(const AugmentSpec& augment, const DecodeOptions& decode)
      : spec(augment),
        decoding(decode),
        pixels(decode.pixels),
        decoder(decode),
        resize(decode.pixels),
        runner(decode.pixels, decode.max_pixels) {
    spec.validate();
  }

  void mark() {
    if (marked) marks = {steady_now_ns(), thread_cpu_ns()};
  }

  // Draws the steps of a sample. Returns the problem if it cannot be augmented so.
  DecodeStatus draw(Size source, uint64_t seed, int64_t epoch, int64_t sample, int view = 0) {
    if (spec.combines()) {
      return {DecodeCode::unsupported, -1, "augment: rows are of several samples, a Loader's"};
    }
    if (carried) {
      const std::string problem = size_problem(*carried, source);
      if (!problem.empty()) return {DecodeCode::corrupt, -1, "annotation: " + problem};
    }
    draw_augmentation(spec, source, seed, epoch, sample, draws, view);
    if (draws.failure().empty() && spec.has_pictures()) compare_sizes(view);
    if (!draws.failure().empty()) return {DecodeCode::unsupported, -1, draws.failure()};
    if (draws.size() != draws.output()) {
      return {DecodeCode::unsupported, -1,
              "augment: the last image has " + sides_text(draws.size()) +
                  " pixels, the rows have " + sides_text(draws.output())};
    }
    plan = plan_decode(draws);
    return {};
  }

  // Pictures that are moved alike have one size there.
  void compare_sizes(int view) {
    const std::span<const Size> sizes = draws.shared_sizes();
    if (view == 0) shared_sizes.clear();
    if (shared_sizes.empty()) shared_sizes.assign(sizes.begin(), sizes.end());
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == shared_sizes[i]) continue;
      draws.fail("augment: same(...) is for pictures of one size, and this one has " +
                 sides_text(sizes[i]) + " pixels there, the first one " +
                 sides_text(shared_sizes[i]));
      return;
    }
  }

  // Returns the smallest box that has all crops of the views, or the status of a view that cannot
  // be drawn.
  DecodeStatus draw_all(Size source, uint64_t seed, int64_t epoch, int64_t sample, Box& box) {
    view_draws.resize(static_cast<size_t>(spec.own_views()));
    for (int view = 0; view < spec.own_views(); ++view) {
      DecodeStatus status = draw(source, seed, epoch, sample, view);
      if (!status.ok()) return status;
      std::swap(draws, view_draws[static_cast<size_t>(view)]);
      box = view == 0 ? plan.crop.crop : joined_boxes(box, plan.crop.crop);
    }
    return {};
  }

  // Calls `decode(crop, out)` for the one view, or once for what all of them show, and makes the
  // views of these pixels.
  template <typename Decode>
  DecodeStatus views(Size source, uint64_t seed, int64_t epoch, int64_t sample,
                     std::span<const MutableImageView> outs, Decode decode) {
    spec.output = {outs[0].width, outs[0].height};
    if (outs.size() > 1) return all_views(source, seed, epoch, sample, outs, decode);
    const DecodeStatus status = draw(source, seed, epoch, sample);
    if (!status.ok()) return status;
    return finish(draws, outs[0],
                  [&](MutableImageView target) { return decode(plan.crop, target); });
  }

  template <typename Decode>
  DecodeStatus all_views(Size source, uint64_t seed, int64_t epoch, int64_t sample,
                         std::span<const MutableImageView> outs, Decode decode) {
    Box box;
    DecodeStatus status = draw_all(source, seed, epoch, sample, box);
    if (!status.ok()) return status;
    const bool shared = int64_t{box.width} * box.height <= kMaxSharedPixels;
    if (shared) {
      const Size size{box.width, box.height};
      const Box whole{0, 0, box.width, box.height};
      shared_image = view_of(rgb_pixels, size);
      status = decode(CropSpec{box, size, whole}, shared_image);
    }
    for (int view = 0; view < spec.own_views() && status.ok(); ++view) {
      std::swap(draws, view_draws[static_cast<size_t>(view)]);
      plan = plan_decode(draws);
      status = finish(draws, outs[static_cast<size_t>(view)], [&](MutableImageView target) {
        if (!shared) return decode(plan.crop, target);
        Box crop = plan.crop.crop;
        crop.x -= box.x;
        crop.y -= box.y;
        resize.run(crop_of(shared_image, crop), plan.crop, target);
        return DecodeStatus{};
      });
    }
    return status;
  }

  // Reads the header, and makes the views with `decode`.
  template <typename Decode>
  DecodeStatus file(std::span<const uint8_t> header, uint64_t seed, int64_t epoch, int64_t sample,
                    std::span<const MutableImageView> outs, Size& source, Decode decode) {
    ImageInfo info;
    const DecodeStatus status = decoder.info(header, info);
    if (!status.ok()) return status;
    source = info.size;
    decoded = {};
    if (form == nullptr || outs.size() > 1) {
      return views(source, seed, epoch, sample, outs, decode);
    }
    return views(source, seed, epoch, sample, outs,
                 [&](const CropSpec& crop, MutableImageView target) {
                   return form->is_whole ? decode_whole(source, crop, target, decode)
                                         : decode_row(source, crop, target, decode);
                 });
  }

  // Decodes what a row shows, and keeps it. A flip is a mirror, of fast pixels, too.
  template <typename Decode>
  DecodeStatus decode_row(Size source, const CropSpec& crop, MutableImageView target,
                          Decode decode) {
    const DecodeStatus status = decode(crop, target);
    const Size size{target.width, target.height};
    if (!status.ok() || size != form->size) return status;
    const MutableImageView kept = view_of(decoded_pixels, size);
    copy_lines(target, kept);
    if (crop.flip) flip_horizontal(kept);
    decoded = {source, crop, {kept.data, image_bytes(size)}};
    decoded.crop.flip = false;
    return status;
  }

  // Decodes the whole image, and keeps it.
  template <typename Decode>
  DecodeStatus decode_whole(Size source, const CropSpec& crop, MutableImageView target,
                            Decode decode) {
    if (source != form->size) return decode(crop, target);
    const CropSpec whole = whole_of(source);
    const MutableImageView kept = view_of(decoded_pixels, source);
    // A row's picture may be whole where the image is not.
    if (!decode(whole, kept).ok()) return decode(crop, target);
    decoded = {source, whole, {kept.data, image_bytes(source)}};
    show(decoded, crop, target);
    return {};
  }

  // Makes what the decoder makes of the file. Returns false if the picture has not what it needs.
  bool show(const DecodedPicture& picture, const CropSpec& crop, MutableImageView target) {
    const Size size{picture.crop.window.width, picture.crop.window.height};
    const ImageView image{picture.pixels.data(), size.width, size.height,
                          ptrdiff_t{3} * size.width};
    if (shows_the_same(picture.crop, crop)) {
      copy_lines(image, target);
      if (crop.flip) flip_horizontal(target);
      return true;
    }
    const bool has_all = shows_the_same(picture.crop, whole_of(picture.source));
    if (!has_all || pixels == PixelPolicy::fast) return false;
    resize.run(crop_of(image, crop.crop), crop, target);
    return true;
  }

  // Makes what others drew: `decode(crop, target)` as in views().
  template <typename Decode>
  DecodeStatus picture(const Draws& drawn, MutableImageView out, Decode decode) {
    plan = plan_decode(drawn);
    return finish(drawn, out, [&](MutableImageView target) { return decode(plan.crop, target); });
  }

  // Calls `produce(view)` for the cropped, resized image, shifts it, and runs the other steps.
  template <typename Produce>
  DecodeStatus finish(const Draws& drawn, MutableImageView out, Produce produce) {
    const Size size{plan.crop.window.width, plan.crop.window.height};
    std::string problem;
    const MutableImageView image =
        runner.begin(drawn.steps().subspan(plan.steps), size, out, problem);
    if (!problem.empty()) return {DecodeCode::unsupported, -1, problem};
    const MutableImageView unshifted = plan.is_shifted() ? view_of(unshifted_pixels, size) : image;
    DecodeStatus status = produce(unshifted);
    mark();
    if (!status.ok()) return status;
    if (plan.is_shifted()) {
      shift_flip(unshifted, plan.shift_x, plan.shift_y, plan.flip, plan.padding, image);
    }
    return run();
  }

  DecodeStatus run() {
    try {
      runner.run();
    } catch (const std::exception& error) {
      return {DecodeCode::corrupt, -1, error.what()};
    }
    return {};
  }

  ImageView interleaved(const uint8_t* bytes, bool planar, Size size) {
    if (!planar) return {bytes, size.width, size.height, ptrdiff_t{3} * size.width};
    const MutableImageView rgb = view_of(rgb_pixels, size);
    shift_flip_planar(bytes, size, 0, 0, false, PadMode::zero, rgb);
    return rgb;
  }

  AugmentSpec spec;  // constant but for its output
  const DecodeOptions decoding;
  const PixelPolicy pixels;
  ImageDecoder decoder;
  PillowResize resize;
  StepRunner runner;
  const Annotations* carried = nullptr;     // what lies on the current row's picture, or null
  int keypoints = 0;                        // of it
  bool records = false;                     // places in files
  Draws draws;                              // of the current row
  DecodePlan plan;                          // of the current row
  std::vector<Draws> view_draws;            // of the current row's views
  std::vector<Size> shared_sizes;           // of the first of its pictures that has any
  ScratchVector<uint8_t> unshifted_pixels;  // what the decoder made, before it is shifted
  ScratchVector<uint8_t> rgb_pixels;        // what views share, or a planar image, interleaved
  MutableImageView shared_image;            // the same as a view
  const DecodedForm* form = nullptr;        // of what is kept, or null
  ScratchVector<uint8_t> decoded_pixels;    // of what is kept
  DecodedPicture decoded;                   // what is kept of the current row's file
  bool marked = false;
  Marks marks;
};

Box needed_box(const AugmentSpec& spec, Size source, uint64_t seed, int64_t epoch, int64_t sample,
               Draws& draws) {
  Box needed;
  for (int view = 0; view < spec.own_views(); ++view) {
    draw_augmentation(spec, source, seed, epoch, sample, draws, view);
    if (!draws.failure().empty()) return {0, 0, source.width, source.height};
    const CropSpec crop = plan_decode(draws).crop;
    // Several views may be made of the pixels of all their crops.
    const Box box = spec.own_views() > 1 ? crop.crop : source_box(crop);
    needed = view == 0 ? box : joined_boxes(needed, box);
  }
  return needed;
}

Augmenter::Augmenter(const AugmentSpec& spec, const DecodeOptions& decode)
    : impl_(std::make_unique<Impl>(spec, decode)) {}

Augmenter::~Augmenter() = default;

DecodeStatus Augmenter::file_row(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                                 int64_t sample, MutableImageView out, Size& source,
                                 std::span<const uint8_t> seek_index) {
  return file_views(bytes, seed, epoch, sample, {&out, 1}, source, seek_index);
}

DecodeStatus Augmenter::file_views(std::span<const uint8_t> bytes, uint64_t seed, int64_t epoch,
                                   int64_t sample, std::span<const MutableImageView> outs,
                                   Size& source, std::span<const uint8_t> seek_index) {
  return impl_->file(bytes, seed, epoch, sample, outs, source,
                     [&](const CropSpec& crop, MutableImageView target) {
                       return impl_->decoder.decode(bytes, crop, target, seek_index);
                     });
}

DecodeStatus Augmenter::file_picture_row(std::span<const uint8_t> bytes, uint64_t seed,
                                         int64_t epoch, int64_t sample, int view,
                                         MutableImageView out, Size& source) {
  DecodeStatus status = picture_size(bytes, source);
  if (status.ok()) status = impl_->draw(source, seed, epoch, sample, view);
  if (!status.ok()) return status;
  return impl_->finish(impl_->draws, out, [&](MutableImageView target) {
    return impl_->decoder.decode(bytes, impl_->plan.crop, target);
  });
}

bool Augmenter::file_pieces(const FilePieces& file, uint64_t seed, int64_t epoch, int64_t sample,
                            std::span<const MutableImageView> outs, Size& source,
                            std::span<const uint8_t> seek_index) {
  const DecodeStatus missing{DecodeCode::truncated, -1, "not all bytes are there"};
  return impl_
      ->file(file.head, seed, epoch, sample, outs, source,
             [&](const CropSpec& crop, MutableImageView target) {
               const bool is_made = impl_->decoder.decode_pieces(file, crop, target, seek_index);
               return is_made ? DecodeStatus{} : missing;
             })
      .ok();
}

DecodeStatus Augmenter::raw_row(std::span<const uint8_t> bytes, bool planar, Size size,
                                uint64_t seed, int64_t epoch, int64_t sample, MutableImageView out,
                                std::span<const uint8_t> next, int view) {
  if (bytes.size() != image_bytes(size)) {
    return {DecodeCode::truncated, static_cast<int64_t>(bytes.size()),
            std::to_string(bytes.size()) + " bytes of raw pixels, expected " +
                std::to_string(image_bytes(size))};
  }
  if (view == 0) impl_->spec.output = {out.width, out.height};
  const DecodeStatus status = impl_->draw(size, seed, epoch, sample, view);
  if (!status.ok()) return status;
  const DecodePlan& plan = impl_->plan;
  const bool whole = shows_whole(plan, size);
  if (!whole || !planar) prefetch(next);
  if (!whole) {
    const ImageView image = impl_->interleaved(bytes.data(), planar, size);
    return impl_->finish(impl_->draws, out, [&](MutableImageView target) {
      impl_->resize.run(crop_of(image, plan.crop.crop), plan.crop, target);
      return DecodeStatus{};
    });
  }
  const auto shift_to = [&](MutableImageView image) {
    if (planar) {
      shift_flip_planar(bytes.data(), size, plan.shift_x, plan.shift_y, plan.flip, plan.padding,
                        image, next.data());
    } else {
      const ImageView from{bytes.data(), size.width, size.height, ptrdiff_t{3} * size.width};
      shift_flip(from, plan.shift_x, plan.shift_y, plan.flip, plan.padding, image);
    }
  };
  const std::span<const PixelStep> rest = impl_->draws.steps().subspan(plan.steps);
  // Small rows take so little time that nothing is done for them in vain.
  if (rest.empty()) {
    shift_to(out);
    return {};
  }
  std::string problem;
  const MutableImageView image = impl_->runner.begin(rest, size, out, problem);
  if (!problem.empty()) return {DecodeCode::unsupported, -1, problem};
  shift_to(image);
  return impl_->run();
}

DecodeStatus Augmenter::picture_size(std::span<const uint8_t> bytes, Size& size) {
  ImageInfo info;
  DecodeStatus status = impl_->decoder.info(bytes, info);
  size = info.size;
  return status;
}

DecodeStatus Augmenter::file_picture(std::span<const uint8_t> bytes, const Draws& draws,
                                     MutableImageView out, std::span<const uint8_t> seek_index) {
  return impl_->picture(draws, out, [&](const CropSpec& crop, MutableImageView target) {
    return impl_->decoder.decode(bytes, crop, target, seek_index);
  });
}

DecodeStatus Augmenter::raw_picture(std::span<const uint8_t> bytes, bool planar, const Draws& draws,
                                    MutableImageView out) {
  const ImageView image = impl_->interleaved(bytes.data(), planar, draws.source());
  return impl_->picture(draws, out, [&](const CropSpec& crop, MutableImageView target) {
    impl_->resize.run(crop_of(image, crop.crop), crop, target);
    return DecodeStatus{};
  });
}

void Augmenter::carry(const Annotations* annotations, int keypoints) {
  impl_->carried = annotations;
  impl_->keypoints = keypoints;
  impl_->draws.carry(annotations, keypoints);
}
Draws& Augmenter::draws() { return impl_->draws; }

void Augmenter::keep_decoded(const DecodedForm* form) {
  impl_->form = form;
  impl_->decoded = {};
}
const DecodedPicture& Augmenter::decoded() const { return impl_->decoded; }

bool Augmenter::decoded_row(const DecodedPicture& picture, uint64_t seed, int64_t epoch,
                            int64_t sample, MutableImageView out) {
  const DecodeStatus missing{DecodeCode::unsupported, -1, "the picture does not show it"};
  return impl_
      ->views(picture.source, seed, epoch, sample, {&out, 1},
              [&](const CropSpec& crop, MutableImageView target) {
                return impl_->show(picture, crop, target) ? DecodeStatus{} : missing;
              })
      .ok();
}

void Augmenter::record_places() {
  impl_->records = true;
  impl_->decoder.record_places();
}
void Augmenter::free_scratch() {
  const std::unique_ptr<Impl> used =
      std::exchange(impl_, std::make_unique<Impl>(impl_->spec, impl_->decoding));
  keep_marks(used->marked);
  if (used->records) record_places();
  if (used->carried) carry(used->carried, used->keypoints);
}
std::span<const uint8_t> Augmenter::recorded_index() const {
  return impl_->decoder.recorded_index();
}
SeekUse Augmenter::seek_use() const { return impl_->decoder.seek_use(); }
void Augmenter::keep_marks(bool keep) { impl_->marked = keep; }
const Augmenter::Marks& Augmenter::marks() const { return impl_->marks; }

int64_t Augmenter::scratch_bytes() const {
  return impl_->decoder.scratch_bytes() + impl_->resize.scratch_bytes() +
         impl_->runner.scratch_bytes() + impl_->draws.bytes() +
         static_cast<int64_t>(impl_->unshifted_pixels.capacity() + impl_->rgb_pixels.capacity() +
                              impl_->decoded_pixels.capacity());
}

}  // namespace stoker
