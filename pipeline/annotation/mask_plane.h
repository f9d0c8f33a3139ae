// Draws masks as bits, as they are seen through maps of columns and rows. A change of a column's
// pixels (polygon_columns.h) is noted as one bit at its row; then bits are summed down the rows,
// modulo 2, 64 columns at once. So a mask costs what its boundary and its box cost, and columns and
// rows that nobody sees cost nothing.
//
// Owner: a MaskMover. Threads: one at a time. Nothing is allocated once sizes were met.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/image.h"
#include "pipeline/annotation/pixel_map.h"

namespace stoker {

class MaskPlane {
 public:
  // Prepares for masks of pictures that are seen so; the plane is empty afterwards. A turn is left
  // to the caller: the plane's x goes along the map of columns, its y along that of rows.
  void begin(const AxisMaps& maps);

  // Each adds to what was drawn before.
  void add_polygon(std::span<const std::array<double, 2>> points);
  void add_runs(std::span<const uint32_t> runs);  // REQUIRES: they are of the picture's size
  void clear();

  // Everything drawn lies in these rows, and in these bytes of them; a byte has 8 pixels, the
  // leftmost in the lowest bit.
  struct Bounds {
    int top = 0, bottom = 0;
    size_t first_byte = 0, end_byte = 0;
  };
  Bounds bounds() const;
  // As many bytes as hold the plane's width, and some.
  const uint8_t* row(int y) const;
  bool has(int x, int y) const {
    return (row(y)[static_cast<size_t>(x) / 8] >> (static_cast<unsigned>(x) % 8) & 1) != 0;
  }

 private:
  // The places at which a column is seen: [first, end).
  struct Seen {
    int32_t first = 0, end = 0;
  };
  // Rows [top, bottom], words [first, end).
  struct Part {
    int top, bottom;
    size_t first, end;
    bool is_empty() const { return first >= end; }
    void clear() { *this = {INT32_MAX, -1, SIZE_MAX, 0}; }
    void add(const Part& other);
  };

  void find_rows(const std::vector<int32_t>& rows);
  void change(int column, int row);
  void fill_changed();
  uint64_t* words(std::vector<uint64_t>& plane, int y) const {
    return plane.data() + static_cast<size_t>(y) * stride_;
  }

  Size source_;
  int height_ = 0;
  size_t stride_ = 0;            // words of a row
  std::vector<Seen> columns_;    // of the picture
  std::vector<int32_t> row_of_;  // the first row that a change at a row of the picture is seen in
  int end_row_ = 0;              // behind the last row that shows the picture
  std::vector<uint64_t> changes_, bits_;  // all zero but for `changed_` and `drawn_`
  std::vector<uint64_t> inside_;          // of one row
  Part changed_{}, drawn_{};
};

}  // namespace stoker
