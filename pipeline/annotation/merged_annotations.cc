#include "pipeline/annotation/merged_annotations.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker {
namespace {

// Masks as bits: rows of whole bytes, the leftmost pixel in the lowest bit.
struct BitPlane {
  std::span<const std::byte> bits;
  Size size;

  size_t row_bytes() const { return (static_cast<size_t>(size.width) + 7) / 8; }
  uint8_t byte(int y, size_t i) const {
    return static_cast<uint8_t>(bits[static_cast<size_t>(y) * row_bytes() + i]);
  }
  bool has(int x, int y) const {
    const auto column = static_cast<size_t>(x);
    return (byte(y, column / 8) >> column % 8 & 1) != 0;
  }
};

// The smallest box that has all bits; no width and no height if there are none.
Box bounds_of(const BitPlane& plane) {
  int left = plane.size.width, right = 0, top = plane.size.height, bottom = 0;
  for (int y = 0; y < plane.size.height; ++y) {
    for (size_t i = 0; i < plane.row_bytes(); ++i) {
      const uint8_t byte = plane.byte(y, i);
      if (byte == 0) continue;
      const int first = static_cast<int>(8 * i);
      left = std::min(left, first + std::countr_zero(byte));
      right = std::max(right, first + std::bit_width(byte));
      top = std::min(top, y);
      bottom = y + 1;
    }
  }
  if (right <= left) return {};
  return {left, top, right - left, bottom - top};
}

// Appends the runs of a plane that lies at (x, y) of a canvas; `box` has all of its bits.
void append_runs(const BitPlane& plane, Box box, int x, int y, Size canvas,
                 std::vector<uint32_t>& runs) {
  int64_t begin = 0;  // of the current run
  bool is_one = false;
  const auto change = [&](bool to_one, int64_t at) {
    if (to_one == is_one) return;
    runs.push_back(static_cast<uint32_t>(at - begin));
    begin = at;
    is_one = to_one;
  };
  for (int column = box.x; column < box.x + box.width; ++column) {
    const int64_t first = int64_t{x + column} * canvas.height + y;
    for (int row = box.y; row < box.y + box.height; ++row) {
      change(plane.has(column, row), first + row);
    }
    // Below the box there is nothing; where it reaches the canvas's end, the next column follows.
    if (y + box.y + box.height < canvas.height) change(false, first + box.y + box.height);
    // Nor is there above it.
    if (y + box.y > 0) change(false, first + canvas.height - y);
  }
  change(false, int64_t{x + box.x + box.width} * canvas.height);
  const int64_t end = int64_t{canvas.width} * canvas.height;
  if (begin < end) runs.push_back(static_cast<uint32_t>(end - begin));
}

}  // namespace

void MergedAnnotations::begin(Size canvas, Annotations& out) {
  canvas_ = canvas;
  out_ = &out;
  cover_ = {};
  out.clear();
  out.size = canvas;
}

// Makes mask_.
void MergedAnnotations::make_mask(const MovedAnnotations& picture, const AnnotatedObject& object) {
  const Size size = picture.masks->size();
  mask_.resize((static_cast<size_t>(size.width) + 7) / 8 * static_cast<size_t>(size.height));
  picture.masks->make_mask(picture.given, object.mask, MaskForm::bits, mask_.data());
}

// Takes what is covered out of mask_. Returns whether anything was.
bool MergedAnnotations::cut_mask() {
  bool is_cut = false;
  for (size_t i = 0; i < std::min(cover_.size(), mask_.size()); ++i) {
    is_cut |= (mask_[i] & cover_[i]) != std::byte{0};
    mask_[i] &= ~cover_[i];
  }
  return is_cut;
}

// Makes the object's mask one of the canvas. Returns false if nothing of it is left.
bool MergedAnnotations::place_mask(const MovedAnnotations& picture, int x, int y,
                                   AnnotatedObject& object) {
  if (!picture.masks || object.mask.kind == MaskKind::none) {
    object.mask = {};
    return true;
  }
  make_mask(picture, object);
  const bool is_cut = cut_mask();
  const BitPlane plane{mask_, picture.masks->size()};
  const Box box = bounds_of(plane);
  if (is_cut && box.width == 0) return false;
  if (is_cut) {
    const auto [x0, y0, x1, y1] = object.box;
    const double before = (x1 - x0) * (y1 - y0);
    const double share = before > 0 ? double(box.width) * box.height / before : 0;
    object.visible *= std::min(share, 1.0);
    object.box = {double(x + box.x), double(y + box.y), double(x + box.x + box.width),
                  double(y + box.y + box.height)};
  }
  const auto first = static_cast<uint32_t>(out_->runs.size());
  append_runs(plane, box, x, y, canvas_, out_->runs);
  object.mask = {MaskKind::runs, first, static_cast<uint32_t>(out_->runs.size()) - first};
  return true;
}

void MergedAnnotations::append(const MovedAnnotations& picture, size_t place, int x, int y,
                               const AnnotatedObject& object) {
  out_->objects.push_back(object);
  if (!picture.objects.corners().empty()) {
    std::array<double, 8> corners = picture.objects.corners()[place];
    for (size_t i = 0; i < corners.size(); ++i) corners[i] += i % 2 == 0 ? x : y;
    out_->corners.push_back(corners);
  }
  for (const Keypoint& point : picture.objects.keypoints(place)) {
    out_->keypoints.push_back({point.x + x, point.y + y, point.visibility});
  }
}

void MergedAnnotations::add(const MovedAnnotations& picture, int x, int y,
                            const std::vector<int32_t>* chosen) {
  const std::span<const AnnotatedObject> objects = picture.objects.objects();
  const size_t count = chosen ? chosen->size() : objects.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t place = chosen ? static_cast<size_t>((*chosen)[i]) : i;
    AnnotatedObject object = objects[place];
    object.box = {object.box[0] + x, object.box[1] + y, object.box[2] + x, object.box[3] + y};
    if (place_mask(picture, x, y, object)) append(picture, place, x, y, object);
  }
}

void MergedAnnotations::cover(const MovedAnnotations& picture, const std::vector<int32_t>& chosen,
                              std::vector<std::byte>& cover) {
  cover.assign((static_cast<size_t>(canvas_.width) + 7) / 8 * static_cast<size_t>(canvas_.height),
               std::byte{0});
  for (const int32_t place : chosen) {
    make_mask(picture, picture.objects.objects()[static_cast<size_t>(place)]);
    for (size_t i = 0; i < cover.size(); ++i) cover[i] |= mask_[i];
  }
  cover_ = cover;
}

void begin_labels(Size size, int label_bytes, int32_t label, LabelImage& out) {
  out.size = size;
  out.label_bytes = label_bytes;
  const auto count = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  out.pixels.resize(count * static_cast<size_t>(label_bytes));
  if (label_bytes == 1) {
    std::ranges::fill(out.pixels, static_cast<uint8_t>(label));
  } else {
    std::fill_n(reinterpret_cast<int32_t*>(out.pixels.data()), count, label);
  }
}

void place_labels(const LabelImage& picture, int x, int y, LabelImage& canvas) {
  const auto bytes = static_cast<size_t>(canvas.label_bytes);
  const size_t row = static_cast<size_t>(picture.size.width) * bytes;
  for (int line = 0; line < picture.size.height; ++line) {
    const size_t to = (static_cast<size_t>(y + line) * static_cast<size_t>(canvas.size.width) +
                       static_cast<size_t>(x)) *
                      bytes;
    std::memcpy(canvas.pixels.data() + to, picture.pixels.data() + static_cast<size_t>(line) * row,
                row);
  }
}

}  // namespace stoker
