#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/pixel/warp_pixels.h"

namespace stoker {
namespace {

using Matrix = std::array<double, 6>;

constexpr int kFixedBits = 16;

// Outputs [begin, end) of a row.
struct Span {
  int begin = 0, end = 0;
};

Span common(Span a, Span b) {
  const int begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

void fill_pixels(Rgb fill, int count, uint8_t* out) {
  if (fill[0] == fill[1] && fill[1] == fill[2]) {
    std::memset(out, fill[0], 3 * static_cast<size_t>(std::max(count, 0)));
    return;
  }
  for (int i = 0; i < count; ++i) copy_pixel(fill.data(), out + 3 * static_cast<ptrdiff_t>(i));
}

// --- Scaling and moving: the coordinates are running sums, one per column and one per row. ---

// Which source columns some output columns show; the table is for one part of the row at a time.
struct ColumnTable {
  int32_t x[WarpPlaces::kMax];
  Span inside;
  bool is_a_copy = true;  // the columns follow each other
};

// Leaves `coordinate` at the column behind the part.
void fill_table(int count, double step, int width, double& coordinate, ColumnTable& table) {
  table.inside = {0, 0};
  table.is_a_copy = true;
  for (int i = 0; i < count; ++i, coordinate += step) {
    if (!is_on(coordinate, width)) continue;
    if (table.inside.end == 0) table.inside = {i, i};
    table.x[i] = static_cast<int32_t>(coordinate);
    if (i > table.inside.begin && table.x[i] != table.x[i - 1] + 1) table.is_a_copy = false;
    table.inside.end = i + 1;
  }
}

void copy_columns(const uint8_t* line, const ColumnTable& table, uint8_t* out) {
  const auto [begin, end] = table.inside;
  if (table.is_a_copy) {
    std::memcpy(out + 3 * ptrdiff_t{begin}, line + 3 * ptrdiff_t{table.x[begin]},
                3 * static_cast<size_t>(end - begin));
    return;
  }
  for (int i = begin; i < end; ++i) {
    copy_pixel(line + 3 * ptrdiff_t{table.x[i]}, out + 3 * ptrdiff_t{i});
  }
}

void scale(ImageView in, const Matrix& m, Rgb fill, MutableImageView out) {
  double column = m[2] + m[0] * 0.5;
  ColumnTable table;
  for (int x = 0; x < out.width; x += WarpPlaces::kMax) {
    const int count = std::min(WarpPlaces::kMax, out.width - x);
    fill_table(count, m[0], in.width, column, table);
    double row = m[5] + m[4] * 0.5;
    for (int y = 0; y < out.height; ++y, row += m[4]) {
      uint8_t* const to = out.data + y * out.stride_bytes + 3 * ptrdiff_t{x};
      const Span inside = is_on(row, in.height) ? table.inside : Span{};
      fill_pixels(fill, inside.begin, to);
      fill_pixels(fill, count - inside.end, to + 3 * ptrdiff_t{inside.end});
      if (inside.begin == inside.end) continue;
      copy_columns(in.data + static_cast<int>(row) * in.stride_bytes, table, to);
    }
  }
}

// --- Fixed point: 16 fractional bits. ---

// Rounds to fixed point. What does not fit becomes what an x86 conversion gives.
int32_t to_fixed_point(double v) {
  const double rounded = std::floor(v * 65536.0 + 0.5);
  const bool fits = rounded >= -2147483648.0 && rounded < 2147483648.0;
  return fits ? static_cast<int32_t>(rounded) : std::numeric_limits<int32_t>::min();
}

int32_t wrapped(uint32_t v) { return static_cast<int32_t>(v); }

// A fixed-point coordinate along a row.
struct FixedLine {
  uint32_t start, step;

  // The sums wrap around in 32 bits, but hardly ever do.
  bool wraps(int count) const {
    const int64_t last = int64_t{wrapped(start)} + int64_t{wrapped(step)} * (count - 1);
    return last != static_cast<int32_t>(last);
  }
  int pixel(int i) const { return wrapped(start + step * static_cast<uint32_t>(i)) >> kFixedBits; }
};

// Returns the outputs whose pixel is in [0, size). REQUIRES: the line does not wrap.
Span inside_of(const FixedLine& line, int size, int count) {
  const int64_t start = wrapped(line.start), step = wrapped(line.step);
  const int64_t limit = int64_t{size} << kFixedBits;
  int64_t begin = 0, end = count;
  if (step == 0) {
    if (start < 0 || start >= limit) end = 0;
  } else if (step > 0) {
    if (start < 0) begin = (-start + step - 1) / step;
    end = start >= limit ? 0 : (limit - start + step - 1) / step;
  } else {
    if (start >= limit) begin = (start - limit) / -step + 1;
    end = start < 0 ? 0 : start / -step + 1;
  }
  begin = std::min<int64_t>(begin, count);
  return {static_cast<int>(begin),
          static_cast<int>(std::clamp<int64_t>(end, begin, std::max<int64_t>(begin, count)))};
}

void copy_span(ImageView in, FixedLine across, FixedLine down, Span span, uint8_t* out) {
  for (int i = span.begin; i < span.end; ++i) {
    copy_pixel(pixel_at(in, across.pixel(i), down.pixel(i)), out + 3 * ptrdiff_t{i});
  }
}

// Copies four bytes per pixel; the next pixel overwrites the fourth.
void copy_span_fast(ImageView in, FixedLine across, FixedLine down, Span span, uint8_t* out) {
  uint32_t xx = across.start + across.step * static_cast<uint32_t>(span.begin);
  uint32_t yy = down.start + down.step * static_cast<uint32_t>(span.begin);
  out += 3 * ptrdiff_t{span.begin};
  for (int i = span.begin; i < span.end; ++i, out += 3) {
    const ptrdiff_t row = (yy >> kFixedBits) * in.stride_bytes;
    std::memcpy(out, in.data + row + ptrdiff_t{3} * (xx >> kFixedBits), 4);
    xx += across.step;
    yy += down.step;
  }
}

void fixed_row(ImageView in, FixedLine across, FixedLine down, int count, Rgb fill, uint8_t* out) {
  if (across.wraps(count) || down.wraps(count)) {
    for (int i = 0; i < count; ++i) {
      const int x = across.pixel(i), y = down.pixel(i);
      const bool is_inside = x >= 0 && x < in.width && y >= 0 && y < in.height;
      copy_pixel(is_inside ? pixel_at(in, x, y) : fill.data(), out + 3 * ptrdiff_t{i});
    }
    return;
  }
  const Span rows = inside_of(down, in.height, count);
  const Span all = common(rows, inside_of(across, in.width, count));
  // The last pixel of a source row and of the output row have no fourth byte.
  Span fast = common(all, inside_of(across, in.width - 1, count));
  fast.end = std::min(fast.end, count - 1);
  if (fast.begin >= fast.end) fast = {all.begin, all.begin};
  fill_pixels(fill, all.begin, out);
  copy_span(in, across, down, {all.begin, fast.begin}, out);
  copy_span_fast(in, across, down, fast, out);
  copy_span(in, across, down, {fast.end, all.end}, out);
  fill_pixels(fill, count - all.end, out + 3 * ptrdiff_t{all.end});
}

bool fits_fixed(const Matrix& m, int x, int y) {
  return std::fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 &&
         std::fabs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

void count_in_fixed_point(ImageView in, const Matrix& m, Rgb fill, MutableImageView out) {
  const auto fixed = [](double v) { return static_cast<uint32_t>(to_fixed_point(v)); };
  FixedLine across{fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), fixed(m[0])};
  FixedLine down{fixed(m[5] + m[3] * 0.5 + m[4] * 0.5), fixed(m[3])};
  for (int y = 0; y < out.height; ++y) {
    fixed_row(in, across, down, out.width, fill, out.data + y * out.stride_bytes);
    across.start += fixed(m[1]);
    down.start += fixed(m[4]);
  }
}

// --- Running sums in double, for coordinates beyond fixed point. ---

void add_up(ImageView in, const Matrix& m, Rgb fill, MutableImageView out) {
  double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5;
  double row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int y = 0; y < out.height; ++y, row_x += m[1], row_y += m[4]) {
    uint8_t* to = out.data + y * out.stride_bytes;
    double xx = row_x, yy = row_y;
    for (int x = 0; x < out.width; ++x, to += 3, xx += m[0], yy += m[3]) {
      const bool is_inside = is_on(xx, in.width) && is_on(yy, in.height);
      copy_pixel(is_inside ? pixel_at(in, static_cast<int>(xx), static_cast<int>(yy)) : fill.data(),
                 to);
    }
  }
}

}  // namespace

void warp_affine_nearest(ImageView in, const Matrix& matrix, Rgb fill, MutableImageView out) {
  if (matrix[1] == 0 && matrix[3] == 0) return scale(in, matrix, fill, out);
  const bool fits = fits_fixed(matrix, 0, 0) && fits_fixed(matrix, out.width, out.height) &&
                    fits_fixed(matrix, 0, out.height) && fits_fixed(matrix, out.width, 0);
  if (fits) {
    count_in_fixed_point(in, matrix, fill, out);
  } else {
    add_up(in, matrix, fill, out);
  }
}

}  // namespace stoker
