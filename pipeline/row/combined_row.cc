#include "pipeline/row/combined_row.h"

#include <algorithm>
#include <cstring>

#include "decode/pixel_ops.h"
#include "pipeline/annotation/picture_checks.h"
#include "pipeline/augment/grammar.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"

namespace stoker {
namespace {

std::string sides_in_words(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

DecodeStatus broken_picture(DecodeCode code, std::string why) { return {code, -1, std::move(why)}; }

Box whole_box(Size size) { return {0, 0, size.width, size.height}; }

// Returns the part that both have; without width or height if there is none.
Box common_part(const Box& a, const Box& b) {
  const int left = std::max(a.x, b.x), top = std::max(a.y, b.y);
  const int right = std::min(a.x + a.width, b.x + b.width);
  const int bottom = std::min(a.y + a.height, b.y + b.height);
  return {left, top, std::max(right - left, 0), std::max(bottom - top, 0)};
}

bool is_empty(const Box& box) { return box.width <= 0 || box.height <= 0; }

MutableImageView view_of_part(MutableImageView image, const Box& box) {
  return {image.data + box.y * image.stride_bytes + ptrdiff_t{3} * box.x, box.width, box.height,
          image.stride_bytes};
}

uint8_t* line_of(MutableImageView image, int y) { return image.data + y * image.stride_bytes; }

// Where a picture lies on its canvas.
Box place_of(const PlacedPicture& picture) {
  return {picture.x, picture.y, picture.shown.width, picture.shown.height};
}

// Fills what no picture covers. REQUIRES: pictures do not lie over each other, and those beside
// each other come from left to right.
void fill_around(const Combination& combination, size_t pictures, Box seen,
                 MutableImageView canvas) {
  for (int y = seen.y; y < seen.y + seen.height; ++y) {
    int x = seen.x;
    const auto fill_to = [&](int end) {
      if (end > x) fill_box(canvas, {x, y, end - x, 1}, combination.fill);
    };
    for (size_t i = 0; i < pictures; ++i) {
      const Box box = place_of(combination.pictures[i]);
      if (y < box.y || y >= box.y + box.height) continue;
      fill_to(std::min(box.x, seen.x + seen.width));
      x = std::max(x, box.x + box.width);
    }
    fill_to(seen.x + seen.width);
  }
}

// Puts the covered pixels of a part of a canvas over it. `cover`: bits of the canvas.
void paste_pixels(const std::vector<std::byte>& cover, Box part, MutableImageView from,
                  MutableImageView canvas) {
  const size_t row_bytes = (static_cast<size_t>(canvas.width) + 7) / 8;
  for (int y = 0; y < part.height; ++y) {
    const std::byte* const bits = cover.data() + static_cast<size_t>(part.y + y) * row_bytes;
    const uint8_t* const pixels = line_of(from, y);
    uint8_t* const to = line_of(canvas, part.y + y) + ptrdiff_t{3} * part.x;
    for (int x = 0; x < part.width; ++x) {
      const auto column = static_cast<size_t>(part.x + x);
      if ((bits[column / 8] >> (column % 8) & std::byte{1}) == std::byte{0}) continue;
      std::memcpy(to + ptrdiff_t{3} * x, pixels + ptrdiff_t{3} * x, 3);
    }
  }
}

// Chooses as torchvision's references: n times one of n, where crowds and objects without a mask
// do not count.
void choose_pasted(std::span<const AnnotatedObject> objects, const RandomKey& key,
                   std::vector<int32_t>& chosen) {
  chosen.clear();
  for (size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].mask.kind != MaskKind::none && !objects[i].is_crowd) {
      chosen.push_back(static_cast<int32_t>(i));
    }
  }
  const auto count = static_cast<int64_t>(chosen.size());
  std::vector<bool> is_drawn(chosen.size());
  for (int64_t i = 0; i < count; ++i) {
    is_drawn[static_cast<size_t>(key.below(static_cast<uint32_t>(i), count))] = true;
  }
  size_t left = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (is_drawn[i]) chosen[left++] = chosen[i];
  }
  chosen.resize(left);
}

}  // namespace

CombinedRow::CombinedRow(const Source& source, const AugmentSpec& augment,
                         const DecodeOptions& decode, const AnnotationOptions& annotations)
    : source_(source),
      augment_(augment),
      output_(augment.output),
      info_(source.annotations()),
      max_pixels_(decode.max_pixels),
      ignore_label_(annotations.ignore_label),
      has_labels_(info_.label_image),
      has_masks_(info_.masks && annotations.masks != RowMasks::none) {
  for (const StageLevel& level : augment.stages.levels()) {
    levels_.emplace_back(level, decode);
    has_masks_ |= level.combines && level.combines->type() == &kCopyPaste;
  }
}

void CombinedRow::plan(const Key& key, const RowNote& note) {
  size_t drawn = 0;
  plan_pictures(
      augment_.stages, key.seed, key.epoch, key.id,
      [&](const RandomKey&, uint32_t) {
        // A substitute's row may draw more of them.
        const SampleId partner = drawn < note.partners.size() ? note.partners[drawn++] : -1;
        return partner < 0 ? key.id : partner;
      },
      plan_);
  count_ = plan_.size();
  while (pictures_.size() < count_) pictures_.push_back(std::make_unique<Picture>());
}

DecodeStatus CombinedRow::draw_again(Augmenter& augmenter, const Key& key, const SampleBytes& own,
                                     const RowNote& note) {
  plan(key, note);
  output_ = note.size == Size{} ? augment_.output : note.size;
  reader_ = nullptr;
  replaced_ = note.replaced;
  return draw(augmenter, key, own);
}

DecodeStatus CombinedRow::make(Augmenter& augmenter, SampleReader& reader, const Key& key,
                               const SampleBytes& own, MutableImageView out, RowNote& note) {
  plan(key, note);
  output_ = {out.width, out.height};
  reader_ = &reader;
  replaced_ = 0;
  for (;;) {
    failed_ = 0;
    DecodeStatus status = draw(augmenter, key, own);
    note.source = pictures_[0]->draws.source();
    if (status.ok()) status = make_picture(augmenter, row(), whole_box(row().draws.size()), out);
    note.replaced = replaced_;
    if (status.ok() || failed_ == 0 || is_replaced(failed_)) return status;
    replaced_ |= static_cast<uint8_t>(1u << failed_);  // once more, without this partner
  }
}

DecodeStatus CombinedRow::draw(Augmenter& augmenter, const Key& key, const SampleBytes& own) {
  finished_.clear();
  size_t leaf = 0;
  for (size_t i = 0; i < count_; ++i) {
    Picture& picture = *pictures_[i];
    picture.plan = plan_[i];
    DecodeStatus status;
    if (picture.plan.parts > 0) {
      status = draw_canvas(key.epoch, picture);
    } else {
      if (leaf == 0 || is_replaced(leaf)) {
        picture.plan.id = key.id;
        picture.sample = own;
      } else {
        status = read_sample(picture);
      }
      if (status.ok()) status = draw_sample(augmenter, key.epoch, picture);
      if (!status.ok()) failed_ = leaf;
      ++leaf;
    }
    if (!status.ok()) return status;
    finished_.push_back(&picture);
  }
  const Size size = row().draws.size();
  if (size == output_) return {};
  return broken_picture(DecodeCode::unsupported, "augment: the last image has " +
                                                     sides_in_words(size) + " pixels, the rows " +
                                                     sides_in_words(output_));
}

DecodeStatus CombinedRow::read_sample(Picture& picture) {
  picture.buffer.trim(kKeptFileBytes);
  if (reader_) {
    reader_->read_partner(picture.plan.id, picture.buffer, picture.sample);
  } else {
    picture.sample = {};
    picture.sample.status =
        source_.read(picture.plan.id, picture.buffer.file, picture.sample.bytes);
  }
  const ReadStatus& status = picture.sample.status;
  return status.ok ? DecodeStatus{} : broken_picture(DecodeCode::truncated, status.message);
}

DecodeStatus CombinedRow::draw_sample(Augmenter& augmenter, int64_t epoch, Picture& picture) {
  const std::span<const uint8_t> bytes = picture.sample.bytes;
  Size size = source_.raw_size();
  if (source_.encoding() == SampleEncoding::image_file) {
    DecodeStatus status = augmenter.picture_size(bytes, size);
    if (!status.ok()) return status;
  } else if (bytes.size() != image_bytes(size)) {
    return broken_picture(DecodeCode::truncated, std::to_string(bytes.size()) +
                                                     " bytes of raw pixels, expected " +
                                                     std::to_string(image_bytes(size)));
  }
  const std::string problem = read_annotations(size, picture);
  if (!problem.empty()) return broken_picture(DecodeCode::corrupt, "annotation: " + problem);
  return draw_stages(epoch, size, picture);
}

// Returns "", or what is wrong for a picture of this size.
std::string CombinedRow::read_annotations(Size size, Picture& picture) {
  Annotations& annotations = picture.annotations;
  const ReadStatus read =
      source_.read_annotations(picture.plan.id, picture.sample.bytes, annotations);
  if (!read.ok) return read.message;
  std::string problem = size_problem(annotations, size);
  for (const AnnotatedObject& object : annotations.objects) {
    if (problem.empty() && has_masks_) problem = runs_problem(annotations, object, size);
  }
  if (!problem.empty() || !has_labels_) return problem;
  return read_labels(annotations, info_.label_bytes, max_pixels_, size, picture.labels);
}

DecodeStatus CombinedRow::draw_stages(int64_t epoch, Size size, Picture& picture) {
  Draws& draws = picture.draws;
  draws.carry(&picture.annotations, info_.keypoints);
  draws.begin(size, output_, picture.plan.seed, epoch, picture.plan.id);
  const StageList* const own = picture.plan.stages;
  for (const Stage& stage : own ? own->stages() : levels_[picture.plan.level].stages.stages) {
    stage.draw(draws);
    if (!draws.failure().empty()) return broken_picture(DecodeCode::unsupported, draws.failure());
  }
  return {};
}

DecodeStatus CombinedRow::draw_canvas(int64_t epoch, Picture& picture) {
  picture.parts.assign(finished_.end() - static_cast<ptrdiff_t>(picture.plan.parts),
                       finished_.end());
  finished_.resize(finished_.size() - picture.plan.parts);
  picture.stage = levels_[picture.plan.level].stages.combines;
  std::array<Size, 4> sizes;
  for (size_t i = 0; i < picture.parts.size(); ++i) sizes[i] = picture.parts[i]->draws.size();
  picture.combination =
      picture.stage->combine(picture.stage->own_key(picture.plan.seed, epoch, picture.plan.id),
                             std::span(sizes).first(picture.parts.size()));
  DecodeStatus status = place_parts(picture);
  if (!status.ok()) return status;
  merge_annotations(picture);
  return draw_stages(epoch, picture.combination.canvas, picture);
}

// Adds to each part's steps how it is resized, and what the canvas shows of it.
DecodeStatus CombinedRow::place_parts(Picture& picture) {
  const Combination& combination = picture.combination;
  for (size_t i = 0; i < picture.parts.size(); ++i) {
    Draws& draws = picture.parts[i]->draws;
    const PlacedPicture& placed = combination.pictures[i];
    if (combination.kind != CombinationKind::place && placed.size != combination.canvas) {
      return broken_picture(DecodeCode::unsupported,
                            picture.stage->describe() + ": the images before it have " +
                                sides_in_words(combination.canvas) + " and " +
                                sides_in_words(placed.size) + " pixels, must have one size");
    }
    add_resize(draws, placed.size, combination.filter);
    if (placed.shown != whole_box(placed.size)) add_crop(draws, placed.shown);
  }
  return {};
}

MovedAnnotations CombinedRow::moved(Picture& picture, MaskMover& masks) const {
  Draws& draws = picture.draws;
  const ObjectMover& objects = draws.objects();
  if (!has_masks_ && !has_labels_) return {picture.annotations, objects};
  masks.begin(draws.source());
  for (size_t i = 0; i < draws.steps().size(); ++i) masks.move(draws.movement(i));
  return {picture.annotations, objects, has_masks_ ? &masks : nullptr};
}

void CombinedRow::merge_annotations(Picture& picture) {
  merged_.begin(picture.combination.canvas, picture.annotations);
  picture.annotations.picture_id = picture.parts[0]->annotations.picture_id;
  if (picture.combination.kind == CombinationKind::paste && picture.parts.size() > 1) {
    return merge_pasted(picture);
  }
  if (has_labels_) {
    begin_labels(picture.combination.canvas, info_.label_bytes, ignore_label_, picture.labels);
  }
  for (size_t i = 0; i < picture.parts.size(); ++i) {
    Picture& part = *picture.parts[i];
    const PlacedPicture& placed = picture.combination.pictures[i];
    merged_.add(moved(part, masks_), placed.x, placed.y);
    if (!has_labels_) continue;
    begin_labels(part.draws.size(), info_.label_bytes, ignore_label_, part_labels_);
    masks_.make_labels(part.labels, ignore_label_,
                       reinterpret_cast<std::byte*>(part_labels_.pixels.data()));
    place_labels(part_labels_, placed.x, placed.y, picture.labels);
  }
}

void CombinedRow::merge_pasted(Picture& picture) {
  const MovedAnnotations from = moved(*picture.parts[1], pasted_masks_);
  choose_pasted(from.objects.objects(), picture.combination.choices, pasted_);
  merged_.cover(from, pasted_, picture.cover);
  merged_.add(moved(*picture.parts[0], masks_), 0, 0);
  merged_.uncover();
  merged_.add(from, 0, 0, &pasted_);
}

// Makes a part of a picture.
DecodeStatus CombinedRow::make_picture(Augmenter& augmenter, Picture& picture, Box part,
                                       MutableImageView out) {
  Draws& draws = picture.draws;
  if (part != whole_box(draws.size())) add_crop(draws, part);
  if (picture.plan.parts == 0) return make_sample(augmenter, picture, out);
  StepRunner& runner = levels_[picture.plan.level].runner;
  std::string problem;
  const Size canvas = picture.combination.canvas;
  const MutableImageView image = runner.begin(draws.steps(), canvas, out, problem);
  if (!problem.empty()) return broken_picture(DecodeCode::unsupported, problem);
  const Box seen = seen_part(draws.steps(), canvas);
  if (!is_empty(seen)) {
    DecodeStatus status = make_canvas(augmenter, picture, seen, image);
    if (!status.ok()) return status;
  }
  try {
    runner.run();
  } catch (const std::exception& error) {
    return broken_picture(DecodeCode::corrupt, error.what());
  }
  return {};
}

DecodeStatus CombinedRow::make_sample(Augmenter& augmenter, Picture& picture,
                                      MutableImageView out) {
  const SampleBytes& sample = picture.sample;
  const SampleEncoding encoding = source_.encoding();
  const SeekUse before = augmenter.seek_use();
  DecodeStatus status =
      encoding == SampleEncoding::image_file
          ? augmenter.file_picture(sample.bytes, picture.draws, out, sample.seek_index)
          : augmenter.raw_picture(sample.bytes, encoding == SampleEncoding::raw_planar,
                                  picture.draws, out);
  reader_->was_decoded(picture.plan.id, sample, augmenter.seek_use() - before, {});
  if (status.ok()) return status;
  for (size_t i = 0, leaf = 0; i < count_; ++i) {
    if (pictures_[i].get() == &picture) failed_ = leaf;
    leaf += pictures_[i]->plan.parts == 0;
  }
  return status;
}

// Makes the part of a canvas that is seen.
DecodeStatus CombinedRow::make_canvas(Augmenter& augmenter, Picture& picture, Box seen,
                                      MutableImageView canvas) {
  const Combination& combination = picture.combination;
  if (combination.kind != CombinationKind::place) return overlay(augmenter, picture, seen, canvas);
  fill_around(combination, picture.parts.size(), seen, canvas);
  for (size_t i = 0; i < picture.parts.size(); ++i) {
    const Box place = place_of(combination.pictures[i]);
    const Box part = common_part(place, seen);
    if (is_empty(part)) continue;
    const Box of_picture{part.x - place.x, part.y - place.y, part.width, part.height};
    DecodeStatus status =
        make_picture(augmenter, *picture.parts[i], of_picture, view_of_part(canvas, part));
    if (!status.ok()) return status;
  }
  return {};
}

DecodeStatus CombinedRow::overlay(Augmenter& augmenter, Picture& picture, Box seen,
                                  MutableImageView canvas) {
  const MutableImageView own = view_of_part(canvas, seen);
  DecodeStatus status = make_picture(augmenter, *picture.parts[0], seen, own);
  if (!status.ok() || picture.parts.size() == 1) return status;
  ScratchVector<uint8_t>& pixels = levels_[picture.plan.level].partner;
  pixels.resize(std::max(pixels.size(), image_bytes({seen.width, seen.height})));
  const MutableImageView partner{pixels.data(), seen.width, seen.height, ptrdiff_t{3} * seen.width};
  status = make_picture(augmenter, *picture.parts[1], seen, partner);
  if (!status.ok()) return status;
  const Combination& combination = picture.combination;
  if (combination.kind == CombinationKind::paste) {
    paste_pixels(picture.cover, seen, partner, canvas);
    return {};
  }
  const auto share = static_cast<int>(combination.own_share * kMixParts);
  for (int y = 0; y < seen.height; ++y) {
    mix_values(share, line_of(partner, y), size_t{3} * static_cast<size_t>(seen.width),
               line_of(own, y));
  }
  return {};
}

// Returns "mosaic(640) of 4 at (0, 12), ..." or "mixup(p=0.5) of 2, own_share=0.25".
std::string CombinedRow::describe_canvas(const Picture& picture) {
  const Combination& combination = picture.combination;
  std::string text = picture.stage->describe() + " of " + std::to_string(picture.plan.parts);
  if (combination.kind == CombinationKind::blend && picture.plan.parts > 1) {
    text += ", own_share=" + number_text(double{combination.own_share});
  }
  for (size_t i = 0; i < picture.plan.parts && combination.kind == CombinationKind::place; ++i) {
    const PlacedPicture& placed = combination.pictures[i];
    text.append(i == 0 ? " at (" : ", (").append(std::to_string(placed.x));
    text.append(", ").append(std::to_string(placed.y)).append(")");
  }
  return text;
}

std::string CombinedRow::describe() const {
  std::string text;
  for (size_t i = 0; i < count_; ++i) {
    const Picture& picture = *pictures_[i];
    const std::string steps = steps_text(picture.draws.steps());
    if (i > 0) text += "\n";
    text += picture.plan.parts == 0 ? "sample " + std::to_string(picture.plan.id)
                                    : describe_canvas(picture);
    if (!steps.empty()) text += ": " + steps;
  }
  return text;
}

// Images on the way are kept twice, and what lies over others once.
int64_t CombinedRow::scratch_bound(const AugmentSpec& augment) {
  int64_t bytes = 0;
  size_t pictures = 1;
  std::optional<Size> size;
  for (const Stage& stage : augment.stages.stages()) {
    size = stage.size(size, augment.output);
    if (stage.partners() == 0) continue;
    if (size) bytes += 3 * static_cast<int64_t>(image_bytes(*size));
    pictures *= 1 + static_cast<size_t>(stage.partners());
  }
  return bytes + static_cast<int64_t>(pictures * kKeptFileBytes);
}

}  // namespace stoker
