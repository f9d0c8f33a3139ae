// Pictures with painted boxes that say which object they are, their annotations, and the rows of a
// feed of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/source/forwarding_source.h"
#include "tests/pipeline/loader_support.h"
#include "tests/support/fake_source.h"

namespace stoker::testing {

inline constexpr int kPictures = 23;

struct PaintedObject {
  Box box;
  uint8_t colour = 0;
};

inline Size size_of(int64_t id) {
  return {50 + static_cast<int>(id % 5) * 7, 44 + static_cast<int>(id % 3) * 9};
}

// One to four boxes that do not overlap, of colours that say which they are.
inline std::vector<PaintedObject> objects_of(int64_t id) {
  std::vector<PaintedObject> objects;
  const Size size = size_of(id);
  for (int i = 0; i <= id % 4; ++i) {
    const int left = (i % 2) * size.width / 2, top = (i / 2) * size.height / 2;
    const Box box{left + 3 + static_cast<int>(id % 3), top + 2, size.width / 2 - 9,
                  size.height / 2 - 7 - i};
    objects.push_back({box, static_cast<uint8_t>(50 * (i + 1))});
  }
  return objects;
}

// The pictures of a source.
struct Painting {
  std::function<Size(int64_t id)> size = size_of;
  std::function<std::vector<PaintedObject>(int64_t id)> objects = objects_of;
  bool is_noisy = false;  // no pixel is as its neighbours
};

inline std::vector<uint8_t> picture_of(const Painting& painting, int64_t id) {
  const Size size = painting.size(id);
  const std::string head =
      "P6\n" + std::to_string(size.width) + " " + std::to_string(size.height) + "\n255\n";
  std::vector<uint8_t> file(head.begin(), head.end());
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * size.width * size.height), 7);
  for (const auto& [box, colour] : painting.objects(id)) {
    for (int y = box.y; y < box.y + box.height; ++y) {
      std::fill_n(&pixels[static_cast<size_t>(3 * (y * size.width + box.x))], 3 * box.width,
                  colour);
    }
  }
  if (painting.is_noisy) {
    const RandomKey noise(1, 0, id);
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<uint8_t>(noise.bits(static_cast<uint32_t>(i)));
    }
  }
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

inline FakeSource pictures(const Painting& painting = {}) {
  std::vector<std::vector<uint8_t>> files;
  for (int id = 0; id < kPictures; ++id) files.push_back(picture_of(painting, id));
  return FakeSource(files, kPictures, 3);
}

// Gives the pictures their objects: boxes, and masks that are the same boxes as polygons.
class PaintedSource final : public ForwardingSource {
 public:
  explicit PaintedSource(const Source& source, Painting painting = {})
      : ForwardingSource(source), info_(source.info()), painting_(std::move(painting)) {
    info_.annotations = {.objects = true, .masks = true, .keypoints = 2, .digest = 17};
  }
  const SourceInfo& info() const override { return info_; }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t>,
                              Annotations& out) const override {
    out.clear();
    if (broken.contains(id)) return {false, broken.at(id)};
    out.size = sizes.contains(id) ? sizes.at(id) : painting_.size(id);
    std::vector<PaintedObject> objects = painting_.objects(id);
    if (is_reversed) std::reverse(objects.begin(), objects.end());
    for (const auto& [box, colour] : objects) {
      const double x0 = box.x, y0 = box.y, x1 = box.x + box.width, y1 = box.y + box.height;
      const auto first = static_cast<uint32_t>(out.points.size());
      out.points.insert(out.points.end(), {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}});
      const auto index = static_cast<int32_t>(out.objects.size());
      out.polygons.push_back({first, 4});
      out.objects.push_back({{x0, y0, x1, y1},
                             colour,
                             1000 * id + index,
                             (x1 - x0) * (y1 - y0),
                             index == 2,
                             {MaskKind::polygons, static_cast<uint32_t>(index), 1},
                             index});
      out.keypoints.push_back({x0 + 1, y0 + 1, 2});
      out.keypoints.push_back({x1 - 1, y1 - 1, 1});
    }
    if (has_bad_masks) {
      out.size = {};
      out.runs = {5};
      for (AnnotatedObject& object : out.objects) object.mask = {MaskKind::runs, 0, 1};
    }
    return {};
  }

  std::map<SampleId, std::string> broken{};
  std::map<SampleId, Size> sizes{};
  bool has_bad_masks = false;  // run lengths of another size
  bool is_reversed = false;    // the smallest object is the first

 private:
  SourceInfo info_;
  const Painting painting_;
};

// The values of a column's row.
template <class T>
std::vector<T> values_of(const Loader& loader, const DeviceBatch& batch, const std::string& name,
                         int row) {
  const auto& columns = loader.targets();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name != name) continue;
    const auto count = static_cast<size_t>(columns[i].numbers());
    EXPECT_EQ(count * sizeof(T), static_cast<size_t>(columns[i].bytes())) << name;
    const auto* first =
        reinterpret_cast<const T*>(batch.target(i)) + count * static_cast<size_t>(row);
    return {first, first + count};
  }
  ADD_FAILURE() << "no column " << name;
  return {};
}

struct AnnotatedRow {
  std::vector<uint8_t> pixels{};
  int count = 0;
  std::vector<float> boxes{}, keypoints{}, area{};
  std::vector<int64_t> labels{}, ids{};
  std::vector<uint8_t> crowd{}, masks{};
  std::vector<int32_t> picture_box{};
  float weight = 0;
  RowNote note{};
};

using Rows = std::map<SampleId, AnnotatedRow>;

// The row of each sample; of those that come again, one that counts.
inline Rows rows_of(Feed& feed) {
  Rows rows;
  Delivered batch;
  const Loader& loader = feed.loader();
  const auto look = [&](const DeviceBatch& leased) {
    const size_t bytes = size_t{3} * leased.shape().width * leased.shape().height;
    for (int row = 0; row < leased.shape().rows; ++row) {
      AnnotatedRow out;
      out.pixels.assign(leased.images() + bytes * row, leased.images() + bytes * (row + 1));
      out.count = values_of<int32_t>(loader, leased, "object_count", row)[0];
      out.boxes = values_of<float>(loader, leased, "boxes", row);
      out.keypoints = values_of<float>(loader, leased, "keypoints", row);
      out.area = values_of<float>(loader, leased, "area", row);
      out.labels = values_of<int64_t>(loader, leased, "labels", row);
      out.ids = values_of<int64_t>(loader, leased, "object_ids", row);
      out.crowd = values_of<uint8_t>(loader, leased, "iscrowd", row);
      out.masks = values_of<uint8_t>(loader, leased, "masks", row);
      // Nobody clears the masks behind the last object.
      out.masks.resize(out.masks.size() / out.labels.size() * static_cast<size_t>(out.count));
      out.picture_box = values_of<int32_t>(loader, leased, "picture_box", row);
      out.weight = leased.weights()[row];
      out.note = row_notes(leased)[row];
      if (out.weight > 0 || !rows.contains(leased.ids()[row])) rows[leased.ids()[row]] = out;
    }
  };
  while (feed.next(0, batch, look)) {
  }
  return rows;
}

}  // namespace stoker::testing
