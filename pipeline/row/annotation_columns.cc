#include "pipeline/row/annotation_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "pipeline/annotation/picture_checks.h"
#include "pipeline/augment/pixel_steps.h"
#include "pipeline/augment/stages.h"
#include "pipeline/files/digest.h"
#include "pipeline/files/invalid_field.h"

namespace stoker {
namespace {

constexpr int kMaxObjects = 1 << 16;
constexpr int64_t kNoLabel = -1;

template <class T>
void put(std::byte* out, size_t place, std::initializer_list<T> values) {
  std::memcpy(out + place * values.size() * sizeof(T), values.begin(), values.size() * sizeof(T));
}

// The part of a row that is not padding of its last step: what a stage before padded, as
// random_zoom_out, is the picture's.
Box picture_box_of(const Draws& draws) {
  for (size_t i = draws.steps().size(); i > 0; --i) {
    const Movement step = draws.movement(i - 1);
    if (step.motion == Motion::none || is_of_objects(step.motion)) continue;
    if (step.motion != Motion::pad) break;
    return {static_cast<int>(step.values[0]), static_cast<int>(step.values[1]), step.before.width,
            step.before.height};
  }
  return {0, 0, draws.size().width, draws.size().height};
}

DecodeStatus broken_annotation(const std::string& why) {
  return {DecodeCode::corrupt, -1, "annotation: " + why};
}

// Sets all `count` values to one.
template <class T>
void fill(std::byte* out, size_t count, T value) {
  std::fill_n(reinterpret_cast<T*>(out), count, value);
}

// Calls look(draws) for example images. `objects`: those that lie on them; null: they carry none.
template <class Look>
void draw_examples(const AugmentSpec& augment, const Annotations* objects, const Look& look) {
  constexpr int64_t kSamples = 64;
  Draws draws;
  draws.carry(objects, 0);
  std::vector<AugmentView> views = {augment.view(0)};
  for (const Stage& stage : augment.stages.stages()) {
    if (stage.partner_stages()) views.push_back({augment.output, *stage.partner_stages()});
  }
  for (const AugmentView& view : views) {
    for (size_t level = 0; level < view.stages.levels().size(); ++level) {
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        draw_example(view, level, {640, 480}, sample, draws);
        look(draws);
      }
    }
  }
}

// Names a step that cannot move what lies on a picture, as far as example images show it.
std::string unmovable_step(const AugmentSpec& augment) {
  const Annotations nothing;  // or a stage that needs boxes would end the list
  std::string name;
  draw_examples(augment, &nothing, [&](const Draws& draws) {
    for (const PixelStep& step : draws.steps()) {
      const bool mirrors =
          step.kind == &kPadStep && static_cast<Padding>(step.choice) != Padding::constant;
      if (mirrors || step.kind->motion == Motion::unknown) name = step.kind->name;
    }
  });
  return name;
}

// Returns why samples without objects cannot be augmented so, if those with objects can.
std::string missing_objects(const AugmentSpec& augment) {
  const Annotations nothing;
  const auto failure = [&](const Annotations* objects) {
    std::string first;
    draw_examples(augment, objects, [&](const Draws& draws) {
      if (first.empty()) first = draws.failure();
    });
    return first;
  };
  const std::string problem = failure(nullptr);
  return problem == failure(&nothing) ? "" : problem;
}

void require(bool good, const char* field, const std::string& problem) {
  if (!good) throw InvalidField("LoaderOptions", std::string("annotations") + field, problem);
}

}  // namespace

std::vector<AnnotationColumn> annotation_columns(const AnnotationInfo& info,
                                                 const AnnotationOptions& options, Size output) {
  using enum AnnotationField;
  std::vector<AnnotationColumn> all;
  const auto add = [&](AnnotationField field, const char* name, TargetType type,
                       std::vector<int64_t> shape) {
    all.push_back({field, {name, type, std::move(shape)}});
  };
  const int64_t n = options.max_objects, height = output.height, width = output.width;
  if (info.objects) {
    add(boxes, "boxes", TargetType::float32, {n, box_numbers(options.box_format)});
    add(labels, "labels", TargetType::int64, {n});
    add(area, "area", TargetType::float32, {n});
    add(object_ids, "object_ids", TargetType::int64, {n});
    add(iscrowd, "iscrowd", TargetType::uint8, {n});
    if (info.keypoints > 0) {
      add(keypoints, "keypoints", TargetType::float32, {n, info.keypoints, 3});
    }
    if (options.masks != RowMasks::none) {
      const int64_t bytes = options.masks == RowMasks::bits ? (width + 7) / 8 : width;
      add(masks, "masks", TargetType::uint8, {n, height, bytes});
    }
    add(object_count, "object_count", TargetType::int32, {});
    add(image_id, "image_id", TargetType::int64, {});
  }
  if (info.objects && options.packed) {
    for (size_t i = 0; i < all.size(); ++i) {
      const AnnotationColumn& each = all[i];
      if (each.field > keypoints) break;
      all.push_back(
          {packed, {"packed_" + each.column.name, each.column.type, each.column.shape}, i});
    }
    add(object_offsets, "object_offsets", TargetType::int32, {});
  }
  if (info.label_image) {
    const bool is_byte = info.label_bytes == 1;
    add(label_image, "label_image", is_byte ? TargetType::uint8 : TargetType::int32,
        {height, width});
  }
  if (!all.empty()) add(picture_box, "picture_box", TargetType::int32, {4});
  return all;
}

void check_annotations(const AnnotationInfo& info, const AnnotationOptions& options,
                       const AugmentSpec& augment) {
  if (!info.any()) return;
  require(options.max_objects >= 1 && options.max_objects <= kMaxObjects, ".max_objects",
          " is " + std::to_string(options.max_objects) + ", must be 1 to " +
              std::to_string(kMaxObjects));
  require(!info.objects || is_rotated(options.box_format) == info.rotated, ".box_format",
          std::string(" is for ") + (info.rotated ? "upright" : "rotated") +
              " boxes, and those of the samples are " + (info.rotated ? "rotated" : "upright"));
  require(info.masks || options.masks == RowMasks::none, ".masks",
          ": the samples carry no masks of objects, but " + describe(info));
  const int64_t most = info.label_bytes == 1 ? 255 : std::numeric_limits<int32_t>::max();
  require(options.ignore_label >= 0 && options.ignore_label <= most, ".ignore_label",
          " is " + std::to_string(options.ignore_label) + ", must be 0 to " + std::to_string(most));
  for (const Stage& stage : augment.stages.stages()) {
    if (stage.partners() == 0) continue;
    const bool pastes = stage.type() == &kCopyPaste, blends = stage.type() == &kMixup;
    require(
        !pastes || info.masks, "",
        ": copy_paste cuts objects out by their masks, and the samples carry " + describe(info));
    require(!info.label_image || !(pastes || blends), "",
            ": " + stage.describe() + " cannot be done to label images");
  }
  require(augment.views() == 1 && !augment.mix.on(), "",
          ": pictures that carry " + describe(info) + " have one view and are not mixed");
  const std::string stage = unmovable_step(augment);
  require(stage.empty(), "",
          ": " + stage + " cannot move what the samples carry: " + describe(info));
  const std::string missing = info.objects ? "" : missing_objects(augment);
  require(missing.empty(), "", ": " + missing + ", but " + describe(info));
}

AnnotationColumns::AnnotationColumns(const AnnotationInfo& info, const AnnotationOptions& options,
                                     Size output, int64_t max_pixels)
    : info_(info),
      options_(options),
      max_pixels_(max_pixels),
      columns_(annotation_columns(info, options, output)) {}

std::byte* AnnotationColumns::place_of(AnnotationField field,
                                       std::span<std::byte* const> outs) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field == field) return outs[i];
  }
  return nullptr;
}

void AnnotationColumns::write_nothing(std::span<std::byte* const> outs) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const AnnotationColumn& each = columns_[i];
    const auto numbers = static_cast<size_t>(each.column.numbers());
    switch (each.field) {
      case AnnotationField::masks:
      case AnnotationField::packed:
      case AnnotationField::object_offsets:
        break;
      case AnnotationField::image_id:
      case AnnotationField::labels:
        fill<int64_t>(outs[i], numbers, kNoLabel);
        break;
      case AnnotationField::label_image:
        if (info_.label_bytes == 1) {
          fill<uint8_t>(outs[i], numbers, static_cast<uint8_t>(options_.ignore_label));
        } else {
          fill<int32_t>(outs[i], numbers, options_.ignore_label);
        }
        break;
      default:
        std::memset(outs[i], 0, static_cast<size_t>(each.column.bytes()));
    }
  }
}

DecodeStatus AnnotationColumns::write(const Annotations& carried, const LabelImage* labels,
                                      AnnotationScratch& scratch, Draws& draws,
                                      std::span<std::byte* const> outs, RowNote& note) const {
  write_nothing(outs);
  const ObjectMover& moved = draws.objects();
  const DecodeStatus status = choose_objects(moved.objects(), scratch.kept);
  if (!status.ok()) return status;
  for (size_t place = 0; place < scratch.kept.size(); ++place) {
    write_object(moved, static_cast<size_t>(scratch.kept[place]), place, outs);
  }
  const auto count = static_cast<int32_t>(scratch.kept.size());
  if (info_.objects) {
    put<int32_t>(place_of(AnnotationField::object_count, outs), 0, {count});
    put<int64_t>(place_of(AnnotationField::image_id, outs), 0, {carried.picture_id});
  }
  const Box box = picture_box_of(draws);
  put<int32_t>(place_of(AnnotationField::picture_box, outs), 0,
               {box.x, box.y, box.x + box.width, box.y + box.height});
  std::byte* const masks_out = place_of(AnnotationField::masks, outs);
  std::byte* const labels_out = place_of(AnnotationField::label_image, outs);
  if (masks_out || labels_out) {
    scratch.masks.begin(draws.source());
    for (size_t i = 0; i < draws.steps().size(); ++i) scratch.masks.move(draws.movement(i));
  }
  DecodeStatus made;
  if (labels_out) made = write_labels(carried, labels, draws.source(), scratch, labels_out);
  if (made.ok() && masks_out) made = write_masks(carried, scratch, draws, masks_out);
  if (!made.ok()) return made;  // the note stays that of a row without a picture
  note.objects = count;
  note.picture = box;
  return {};
}

DecodeStatus AnnotationColumns::choose_objects(std::span<const AnnotatedObject> moved,
                                               std::vector<int32_t>& kept) const {
  kept.resize(moved.size());
  for (size_t i = 0; i < moved.size(); ++i) kept[i] = static_cast<int32_t>(i);
  const auto most = static_cast<size_t>(options_.max_objects);
  if (moved.size() <= most) return {};
  if (options_.too_many == TooManyObjects::fail) {
    return broken_annotation(std::to_string(moved.size()) + " objects, a row has max_objects=" +
                             std::to_string(most) + " of them");
  }
  const auto area = [&](int32_t i) {
    const auto& box = moved[static_cast<size_t>(i)].box;
    return (box[2] - box[0]) * (box[3] - box[1]);
  };
  std::stable_sort(kept.begin(), kept.end(),
                   [&](int32_t a, int32_t b) { return area(a) > area(b); });
  kept.resize(most);
  std::sort(kept.begin(), kept.end());
  ++full_rows_;
  objects_left_out_ += static_cast<int64_t>(moved.size() - most);
  return {};
}

void AnnotationColumns::write_box_of(const ObjectMover& moved, size_t from, float* out) const {
  if (info_.rotated) return write_corners(options_.box_format, moved.corners()[from], out);
  write_box(options_.box_format, moved.objects()[from].box, out);
}

void AnnotationColumns::write_object(const ObjectMover& moved, size_t from, size_t place,
                                     std::span<std::byte* const> outs) const {
  const AnnotatedObject& object = moved.objects()[from];
  for (size_t i = 0; i < columns_.size(); ++i) {
    std::byte* const out = outs[i];
    switch (columns_[i].field) {
      case AnnotationField::boxes:
        write_box_of(moved, from,
                     reinterpret_cast<float*>(out) +
                         place * static_cast<size_t>(box_numbers(options_.box_format)));
        break;
      case AnnotationField::labels:
        put<int64_t>(out, place, {object.label});
        break;
      case AnnotationField::area:
        put<float>(out, place, {static_cast<float>(object.area)});
        break;
      case AnnotationField::object_ids:
        put<int64_t>(out, place, {object.id});
        break;
      case AnnotationField::iscrowd:
        put<uint8_t>(out, place, {static_cast<uint8_t>(object.is_crowd)});
        break;
      case AnnotationField::keypoints: {
        const std::span<const Keypoint> points = moved.keypoints(from);
        for (size_t k = 0; k < points.size(); ++k) {
          const auto f = [](double value) { return static_cast<float>(value); };
          put(out, place * points.size() + k,
              {f(points[k].x), f(points[k].y), f(points[k].visibility)});
        }
        break;
      }
      default:
        break;
    }
  }
}

DecodeStatus AnnotationColumns::write_labels(const Annotations& carried, const LabelImage* labels,
                                             Size source, AnnotationScratch& scratch,
                                             std::byte* out) const {
  if (!labels) {
    const std::string problem =
        read_labels(carried, info_.label_bytes, max_pixels_, source, scratch.labels);
    if (!problem.empty()) return broken_annotation(problem);
    labels = &scratch.labels;
  }
  scratch.masks.make_labels(*labels, options_.ignore_label, out);
  return {};
}

DecodeStatus AnnotationColumns::write_masks(const Annotations& carried, AnnotationScratch& scratch,
                                            Draws& draws, std::byte* out) const {
  const MaskForm form = options_.masks == RowMasks::bits ? MaskForm::bits : MaskForm::bytes;
  const Size size = draws.size();
  const size_t bytes =
      static_cast<size_t>(size.height) *
      static_cast<size_t>(form == MaskForm::bits ? (size.width + 7) / 8 : size.width);
  const std::span<const AnnotatedObject> moved = draws.objects().objects();
  for (size_t place = 0; place < scratch.kept.size(); ++place) {
    const AnnotatedObject& object = moved[static_cast<size_t>(scratch.kept[place])];
    const std::string problem = runs_problem(carried, object, draws.source());
    if (!problem.empty()) return broken_annotation(problem);
    scratch.masks.make_mask(carried, object.mask, form, out + place * bytes);
  }
  return {};
}

void AnnotationColumns::pack(Slab& slab, size_t first, int rows) const {
  if (!options_.packed || !info_.objects) return;
  std::byte* const* const columns = &slab.targets[first];
  const std::span<std::byte* const> outs(columns, columns_.size());
  const auto* counts =
      reinterpret_cast<const int32_t*>(place_of(AnnotationField::object_count, outs));
  auto* offsets = reinterpret_cast<int32_t*>(place_of(AnnotationField::object_offsets, outs));
  std::exclusive_scan(counts, counts + rows, offsets, 0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field != AnnotationField::packed) continue;
    const auto row_bytes = static_cast<size_t>(columns_[i].column.bytes());
    const size_t object_bytes = row_bytes / static_cast<size_t>(options_.max_objects);
    const std::byte* const from = outs[columns_[i].packs];
    for (int row = 0; row < rows; ++row) {
      std::memcpy(outs[i] + object_bytes * static_cast<size_t>(offsets[row]),
                  from + row_bytes * static_cast<size_t>(row),
                  object_bytes * static_cast<size_t>(counts[row]));
    }
  }
}

uint64_t AnnotationColumns::digest(std::span<std::byte* const> outs) const {
  std::vector<uint64_t> digests;
  int32_t count = 0;
  if (info_.objects) {
    std::memcpy(&count, place_of(AnnotationField::object_count, outs), sizeof(count));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field >= AnnotationField::packed) continue;  // of the whole batch
    auto bytes = static_cast<size_t>(columns_[i].column.bytes());
    // Masks behind the last object are nobody's.
    if (columns_[i].field == AnnotationField::masks) {
      bytes = bytes / static_cast<size_t>(options_.max_objects) * static_cast<size_t>(count);
    }
    digests.push_back(pixel_digest({reinterpret_cast<const uint8_t*>(outs[i]), bytes}));
  }
  return pixel_digest(
      {reinterpret_cast<const uint8_t*>(digests.data()), digests.size() * sizeof(uint64_t)});
}

}  // namespace stoker
