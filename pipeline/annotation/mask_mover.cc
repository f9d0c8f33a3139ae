#include "pipeline/annotation/mask_mover.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace stoker {
namespace {

// Writes the labels of one type, as they are seen.
template <class Label>
class LabelMaker {
 public:
  LabelMaker(const LabelImage& image, int32_t fill, std::byte* out)
      : image_(image), fill_(static_cast<Label>(fill)), out_(out) {}

  void make(const AxisMaps& maps) {
    const auto width = maps.along_x.size();
    const Strip strip(maps.along_x);
    for (size_t y = 0; y < maps.along_y.size(); ++y) {
      const int32_t line = maps.along_y[y];
      std::byte* const row = out_ + y * width * sizeof(Label);
      if (y > 0 && line == maps.along_y[y - 1]) {
        std::memcpy(row, row - width * sizeof(Label), width * sizeof(Label));
      } else if (line == AxisMaps::kNothing) {
        for (size_t x = 0; x < width; ++x) put(row, x, fill_);
      } else if (maps.is_turned) {
        for (size_t x = 0; x < width; ++x) put(row, x, at_or_fill(line, maps.along_x[x]));
      } else {
        make_row(maps.along_x, strip, line, row);
      }
    }
  }

  void make(const AxisMaps& maps, std::span<const PixelMap::Place> places) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].x == AxisMaps::kNothing) {
        put(out_, i, fill_);
        continue;
      }
      const int32_t x = maps.along_x[static_cast<size_t>(places[i].x)];
      const int32_t y = maps.along_y[static_cast<size_t>(places[i].y)];
      put(out_, i, maps.is_turned ? at_or_fill(y, x) : at_or_fill(x, y));
    }
  }

 private:
  // The places of a row that show pixels: [first, end).
  struct Strip {
    explicit Strip(const std::vector<int32_t>& along_x) : end(along_x.size()) {
      while (first < end && along_x[first] == AxisMaps::kNothing) ++first;
      while (end > first && along_x[end - 1] == AxisMaps::kNothing) --end;
      is_plain = true;
      for (size_t x = first + 1; x < end; ++x) is_plain &= along_x[x] == along_x[x - 1] + 1;
    }
    size_t first = 0, end;
    bool is_plain = false;  // pixels that follow one another
  };

  void make_row(const std::vector<int32_t>& along_x, const Strip& strip, int32_t line,
                std::byte* row) const {
    const uint8_t* const from = this->line(line);
    for (size_t x = 0; x < strip.first; ++x) put(row, x, fill_);
    for (size_t x = strip.end; x < along_x.size(); ++x) put(row, x, fill_);
    if (strip.is_plain && strip.first < strip.end) {
      const auto first = static_cast<size_t>(along_x[strip.first]);
      std::memcpy(row + strip.first * sizeof(Label), from + first * sizeof(Label),
                  (strip.end - strip.first) * sizeof(Label));
      return;
    }
    for (size_t x = strip.first; x < strip.end; ++x) {
      put(row, x, label(from, static_cast<size_t>(along_x[x])));
    }
  }

  const uint8_t* line(int32_t y) const {
    const auto row_bytes = static_cast<size_t>(image_.size.width) * sizeof(Label);
    return image_.pixels.data() + static_cast<size_t>(y) * row_bytes;
  }
  static Label label(const uint8_t* line, size_t x) {
    Label label;
    std::memcpy(&label, line + x * sizeof label, sizeof label);
    return label;
  }
  Label at_or_fill(int32_t x, int32_t y) const {
    if (x == AxisMaps::kNothing || y == AxisMaps::kNothing) return fill_;
    return label(line(y), static_cast<size_t>(x));
  }
  static void put(std::byte* row, size_t x, Label label) {
    std::memcpy(row + x * sizeof label, &label, sizeof label);
  }

  const LabelImage& image_;
  const Label fill_;
  std::byte* const out_;
};

// Makes eight bytes of eight bits, the lowest first.
void spread_bits(uint8_t bits, std::byte* out) {
  constexpr uint64_t kEach = 0x0101010101010101, kOne = 0x8040201008040201;
  const uint64_t chosen = (bits * kEach) & kOne;
  const uint64_t bytes = (chosen + 0x7f * kEach) >> 7 & kEach;
  std::memcpy(out, &bytes, sizeof bytes);
}

size_t mask_row_bytes(Size size, MaskForm form) {
  const auto width = static_cast<size_t>(size.width);
  return form == MaskForm::bits ? (width + 7) / 8 : width;
}

// `out` is zero. REQUIRES: the plane's maps are not turned.
void copy_plane(const MaskPlane& plane, Size size, MaskForm form, std::byte* out) {
  const MaskPlane::Bounds bounds = plane.bounds();
  const auto width = static_cast<size_t>(size.width);
  const size_t row_bytes = mask_row_bytes(size, form);
  const size_t end = std::min(bounds.end_byte, (width + 7) / 8);
  for (int y = bounds.top; y < bounds.bottom; ++y) {
    const uint8_t* const bits = plane.row(y);
    std::byte* const row = out + static_cast<size_t>(y) * row_bytes;
    if (form == MaskForm::bits) {
      std::memcpy(row + bounds.first_byte, bits + bounds.first_byte, end - bounds.first_byte);
      continue;
    }
    for (size_t i = bounds.first_byte; i < std::min(end, width / 8); ++i) {
      spread_bits(bits[i], row + 8 * i);
    }
    for (size_t x = width / 8 * 8; x < std::min(8 * end, width); ++x) {
      row[x] = static_cast<std::byte>(plane.has(static_cast<int>(x), y));
    }
  }
}

// Writes the pixels (x, y) for which has(x, y), one by one. `out` is zero.
template <class Has>
void copy_pixels(Size size, MaskForm form, const Has& has, std::byte* out) {
  const size_t row_bytes = mask_row_bytes(size, form);
  for (int y = 0; y < size.height; ++y) {
    std::byte* const row = out + static_cast<size_t>(y) * row_bytes;
    for (int x = 0; x < size.width; ++x) {
      if (!has(x, y)) continue;
      if (form == MaskForm::bits) {
        row[x / 8] |= std::byte{1} << (x % 8);
      } else {
        row[x] = std::byte{1};
      }
    }
  }
}

}  // namespace

void MaskMover::begin(Size source) {
  map_.begin(source);
  has_plane_ = false;
}

void MaskMover::move(const Movement& movement) {
  map_.move(movement);
  has_plane_ = false;
}

void MaskMover::make_labels(const LabelImage& image, int32_t fill, std::byte* out) {
  const auto make = [&](auto maker) {
    if (map_.has_warps()) {
      maker.make(map_.maps(), map_.places());
    } else {
      maker.make(map_.maps());
    }
  };
  if (image.label_bytes == 1) {
    make(LabelMaker<uint8_t>(image, fill, out));
  } else {
    make(LabelMaker<int32_t>(image, fill, out));
  }
}

void MaskMover::make_mask(const Annotations& annotations, const MaskShape& mask, MaskForm form,
                          std::byte* out) {
  std::memset(out, 0, mask_row_bytes(size(), form) * static_cast<size_t>(size().height));
  if (mask.kind == MaskKind::none) return;
  if (!has_plane_) plane_.begin(map_.maps());
  has_plane_ = true;
  draw(annotations, mask);
  const bool is_turned = map_.maps().is_turned;
  if (map_.has_warps()) {
    const auto places = map_.places();
    const auto width = static_cast<size_t>(size().width);
    copy_pixels(
        size(), form,
        [&](int x, int y) {
          const auto [from_x, from_y] =
              places[static_cast<size_t>(y) * width + static_cast<size_t>(x)];
          if (from_x == AxisMaps::kNothing) return false;
          return is_turned ? plane_.has(from_y, from_x) : plane_.has(from_x, from_y);
        },
        out);
  } else if (is_turned) {
    copy_pixels(
        size(), form, [&](int x, int y) { return plane_.has(y, x); }, out);
  } else {
    copy_plane(plane_, size(), form, out);
  }
  plane_.clear();
}

void MaskMover::draw(const Annotations& annotations, const MaskShape& mask) {
  if (mask.kind == MaskKind::runs) {
    plane_.add_runs(std::span(annotations.runs).subspan(mask.first, mask.count));
    return;
  }
  for (const Polygon& polygon : std::span(annotations.polygons).subspan(mask.first, mask.count)) {
    plane_.add_polygon(std::span(annotations.points).subspan(polygon.first, polygon.count));
  }
}

}  // namespace stoker
