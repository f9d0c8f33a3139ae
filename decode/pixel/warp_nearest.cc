// Pixels are taken from several rows by lookups of AVX-512 VBMI: see byte_table.cc.
#define HWY_WANT_AVX3_DL

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/pixel/warp_pixels.h"

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/pixel/warp_nearest.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PIXEL_WARP_NEAREST_COMMON
#define STOKER_PIXEL_WARP_NEAREST_COMMON
namespace stoker {
namespace {

constexpr int kFixedBits = 16;

// Outputs [begin, end) of a row.
struct Span {
  int begin = 0, end = 0;
};

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

// Outputs of a row whose pixels are all in the source, and those of them of which a fourth byte may
// be read and written.
struct InsideJob {
  ImageView in;
  FixedLine across, down;
  Span all, fast;
};

void copy_pixels(const InsideJob& job, Span span, uint8_t* out) {
  for (int i = span.begin; i < span.end; ++i) {
    copy_pixel(pixel_at(job.in, job.across.pixel(i), job.down.pixel(i)), out + 3 * ptrdiff_t{i});
  }
}

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX3_DL

// For each byte of sixteen pixels, the byte of a pixel's place that begins its 32 bits; and the
// channel.
struct ByteOrders {
  constexpr ByteOrders() {
    for (int i = 0; i < 48; ++i) {
      pixel[i] = static_cast<uint8_t>(i / 3 * 4);
      channel[i] = static_cast<uint8_t>(i % 3);
    }
  }
  alignas(64) uint8_t pixel[64] = {}, channel[64] = {};
};
constexpr ByteOrders kByteOrders;

// The source pixels of up to sixteen outputs, which follow each other on a line.
struct PixelBox {
  PixelBox(const InsideJob& job, Span span) {
    const int x0 = job.across.pixel(span.begin), x1 = job.across.pixel(span.end - 1);
    const int y0 = job.down.pixel(span.begin), y1 = job.down.pixel(span.end - 1);
    x = std::min(x0, x1), y = std::min(y0, y1);
    columns = std::max(x0, x1) - x + 1, rows = std::max(y0, y1) - y + 1;
  }
  int x, y, columns, rows;
};

HWY_INLINE __mmask64 first_bytes(int count) {
  return _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(count));
}

// Takes the pixels of sixteen outputs out of a vector per source row.
void copy_inside(const InsideJob& job, uint8_t* out) {
  constexpr int kOutputs = 16, kMostRows = 4, kMostColumns = 64 / 3;
  const __m512i pixel_bytes = _mm512_load_si512(kByteOrders.pixel);
  const __m512i channels = _mm512_load_si512(kByteOrders.channel);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const auto steps = [&](const FixedLine& line) {
    return _mm512_mullo_epi32(lane, _mm512_set1_epi32(wrapped(line.step)));
  };
  const __m512i across_steps = steps(job.across), down_steps = steps(job.down);
  for (int i = job.all.begin; i < job.all.end; i += kOutputs) {
    const Span part{i, std::min(i + kOutputs, job.all.end)};
    const PixelBox box(job, part);
    if (box.rows > kMostRows || box.columns > kMostColumns) {
      copy_pixels(job, part, out);
      continue;
    }
    // The pixels' places in the box.
    const auto places = [&](const FixedLine& line, __m512i lane_steps, int first) {
      const uint32_t start = line.start + line.step * static_cast<uint32_t>(i);
      const __m512i at = _mm512_add_epi32(_mm512_set1_epi32(wrapped(start)), lane_steps);
      return _mm512_sub_epi32(_mm512_srai_epi32(at, kFixedBits), _mm512_set1_epi32(first));
    };
    const __m512i x = places(job.across, across_steps, box.x);
    const __m512i y = places(job.down, down_steps, box.y);
    const __m512i first_byte =
        _mm512_add_epi32(_mm512_slli_epi32(y, 6), _mm512_add_epi32(x, _mm512_slli_epi32(x, 1)));
    const __m512i byte =
        _mm512_add_epi8(_mm512_permutexvar_epi8(pixel_bytes, first_byte), channels);
    const __mmask64 used = first_bytes(3 * box.columns);
    const auto row = [&](int number) {
      const uint8_t* from = pixel_at(job.in, box.x, box.y + std::min(number, box.rows - 1));
      return _mm512_maskz_loadu_epi8(used, from);
    };
    __m512i pixels = _mm512_permutex2var_epi8(row(0), byte, row(1));
    if (box.rows > 2) {
      const __m512i lower = _mm512_permutex2var_epi8(row(2), byte, row(3));
      pixels = _mm512_mask_blend_epi8(_mm512_movepi8_mask(byte), pixels, lower);
    }
    _mm512_mask_storeu_epi8(out + 3 * ptrdiff_t{i}, first_bytes(3 * (part.end - part.begin)),
                            pixels);
  }
}

#else

// Copies four bytes per pixel where it may; the next pixel overwrites the fourth.
void copy_inside(const InsideJob& given, uint8_t* out) {
  // A local copy: the compiler then knows that stores to pixels cannot change it.
  const InsideJob job = given;
  copy_pixels(job, {job.all.begin, job.fast.begin}, out);
  uint32_t xx = job.across.start + job.across.step * static_cast<uint32_t>(job.fast.begin);
  uint32_t yy = job.down.start + job.down.step * static_cast<uint32_t>(job.fast.begin);
  uint8_t* to = out + 3 * ptrdiff_t{job.fast.begin};
  for (int i = job.fast.begin; i < job.fast.end; ++i, to += 3) {
    const ptrdiff_t row = (yy >> kFixedBits) * job.in.stride_bytes;
    std::memcpy(to, job.in.data + row + ptrdiff_t{3} * (xx >> kFixedBits), 4);
    xx += job.across.step;
    yy += job.down.step;
  }
  copy_pixels(job, {job.fast.end, job.all.end}, out);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(copy_inside);

namespace {

using Matrix = std::array<double, 6>;

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
  HWY_DYNAMIC_DISPATCH(copy_inside)({in, across, down, all, fast}, out);
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
#endif
