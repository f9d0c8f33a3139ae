#include "tools/data/annotation_painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "pipeline/annotation/box_format.h"

namespace stoker {
namespace {

constexpr double kTint = 0.45;
constexpr int kPoint = 3;  // pixels of a keypoint

// The values of one row, or null if there is no such column.
const std::byte* column_row(const std::vector<TargetColumn>& columns, const DeviceBatch& batch,
                            const char* name, int row) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name != name) continue;
    return batch.target(i) + static_cast<size_t>(columns[i].bytes()) * static_cast<size_t>(row);
  }
  return nullptr;
}

// Hues that follow each other in steps of the golden ratio are far apart.
SheetColor class_color(int64_t label) {
  const double hue = std::fmod(static_cast<double>(label) * 0.6180339887498949, 1.0) * 6;
  const auto channel = [&](double turn) {
    const double k = std::fmod(hue + turn, 6.0);
    return static_cast<uint8_t>(255 * (1 - std::clamp(std::min(k, 4 - k), 0.0, 1.0) * 0.8));
  };
  return {channel(5), channel(3), channel(1)};
}

class RowPainter {
 public:
  RowPainter(const BatchShape& shape, RowPlace place, ContactSheet& sheet)
      : shape_(shape), place_(place), sheet_(sheet) {}

  // `color_at(x, y)`: the tint of a pixel, or none.
  template <class ColorAt>
  void tint(ColorAt color_at) {
    for (int y = 0; y < shape_.height; ++y) {
      for (int x = 0; x < shape_.width; ++x) {
        const std::optional<SheetColor> color = color_at(x, y);
        if (color) sheet_.tint(on_sheet(x, y, x + 1, y + 1), *color, kTint);
      }
    }
  }

  // `corners`: x, y of the four, one after the other around the box.
  void frame(const std::array<double, 8>& corners, SheetColor color, const std::string& name) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t next = (i + 1) % 4;
      line(corners[2 * i], corners[2 * i + 1], corners[2 * next], corners[2 * next + 1], color);
    }
    const Box first = on_sheet(corners[0], corners[1], corners[0], corners[1]);
    const int room = place_.x + shape_.width * place_.scale - first.x - 2;
    sheet_.draw_text(name, first.x + 2, first.y + 2, room, 1, color);
  }

  void point(double x, double y, SheetColor color) {
    const Box at = on_sheet(x, y, x, y);
    sheet_.tint({at.x - kPoint / 2, at.y - kPoint / 2, kPoint, kPoint}, color, 1);
  }

 private:
  void line(double x0, double y0, double x1, double y1, SheetColor color) {
    const int steps =
        place_.scale * static_cast<int>(std::max(std::abs(x1 - x0), std::abs(y1 - y0)));
    for (int i = 0; i <= steps; ++i) {
      const double share = steps == 0 ? 0 : static_cast<double>(i) / steps;
      Box at = on_sheet(x0 + share * (x1 - x0), y0 + share * (y1 - y0), 0.0, 0.0);
      at.width = at.height = 1;
      sheet_.tint(at, color, 1);
    }
  }
  Box on_sheet(double x0, double y0, double x1, double y1) const {
    const auto scaled = [&](double value) {
      return static_cast<int>(std::lround(value * place_.scale));
    };
    return {place_.x + scaled(x0), place_.y + scaled(y0), scaled(x1) - scaled(x0),
            scaled(y1) - scaled(y0)};
  }
  const BatchShape& shape_;
  const RowPlace place_;
  ContactSheet& sheet_;
};

std::string class_name(const AnnotationInfo& info, int64_t label) {
  const bool is_named = label >= 0 && label < std::ssize(info.class_names) &&
                        !info.class_names[static_cast<size_t>(label)].empty();
  return is_named ? info.class_names[static_cast<size_t>(label)] : std::to_string(label);
}

// Label 0 is mostly the background.
void tint_labels(int label_bytes, const std::byte* labels, int width, RowPainter& painter) {
  painter.tint([&](int x, int y) -> std::optional<SheetColor> {
    const size_t at = static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
    const int64_t label = label_bytes == 1 ? reinterpret_cast<const uint8_t*>(labels)[at]
                                           : reinterpret_cast<const int32_t*>(labels)[at];
    if (label == 0) return {};
    return class_color(label);
  });
}

void tint_mask(const uint8_t* mask, size_t line, SheetColor color, RowPainter& painter) {
  painter.tint([&](int x, int y) -> std::optional<SheetColor> {
    const uint8_t byte = mask[static_cast<size_t>(y) * line + static_cast<size_t>(x / 8)];
    if ((byte >> (x % 8) & 1) == 0) return {};
    return color;
  });
}

}  // namespace

void draw_annotations(const AnnotationInfo& info, const std::vector<TargetColumn>& columns,
                      const DeviceBatch& batch, int row, RowPlace place, ContactSheet& sheet) {
  const BatchShape shape = batch.shape();
  RowPainter painter(shape, place, sheet);
  const auto of_row = [&](const char* name) { return column_row(columns, batch, name, row); };
  if (const std::byte* labels = of_row("label_image")) {
    tint_labels(info.label_bytes, labels, shape.width, painter);
  }
  if (!info.objects) return;
  const int count = *reinterpret_cast<const int32_t*>(of_row("object_count"));
  const auto* boxes = reinterpret_cast<const float*>(of_row("boxes"));
  const auto* labels = reinterpret_cast<const int64_t*>(of_row("labels"));
  const auto* masks = reinterpret_cast<const uint8_t*>(of_row("masks"));
  const auto* points = reinterpret_cast<const float*>(of_row("keypoints"));
  const size_t line = static_cast<size_t>(shape.width + 7) / 8;
  const BoxFormat format = info.rotated ? BoxFormat::xyxyxyxy : BoxFormat::xyxy;
  for (int i = 0; i < count; ++i) {
    const SheetColor color = class_color(labels[i]);
    if (masks)
      tint_mask(masks + static_cast<size_t>(i * shape.height) * line, line, color, painter);
    const size_t numbers = static_cast<size_t>(box_numbers(format));
    const std::vector<double> box(boxes + numbers * i, boxes + numbers * (i + 1));
    painter.frame(box_corners(format, box), color, class_name(info, labels[i]));
    for (int k = 0; points && k < info.keypoints; ++k) {
      const float* point = points + 3 * (i * info.keypoints + k);
      if (point[2] > 0) painter.point(point[0], point[1], color);
    }
  }
}

}  // namespace stoker
