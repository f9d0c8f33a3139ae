// shift_flip_planar: makes rows of CIFAR's binary files, whole vectors at a time.
#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "decode/pixel_ops.h"

// See resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/resize/planar_rows.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_PLANAR_ROWS_COMMON
#define STOKER_PLANAR_ROWS_COMMON
namespace stoker {
namespace {

struct PlanarJob {
  const uint8_t* planes;  // (3, height, width)
  ptrdiff_t plane_bytes;
  int offset_x, offset_y;
  bool flip;
  PadMode mode;
  MutableImageView out;
  const uint8_t* next;  // what to prefetch; null: nothing
};

// The definition, pixel by pixel.
void shift_plainly(const PlanarJob& job) {
  const int width = job.out.width, height = job.out.height;
  for (int y = 0; y < height; ++y) {
    uint8_t* pixel = job.out.data + y * job.out.stride_bytes;
    const int row = reflect(y + job.offset_y, height);
    const bool row_inside = row == y + job.offset_y;
    for (int x = 0; x < width; ++x, pixel += 3) {
      const int shifted = (job.flip ? width - 1 - x : x) + job.offset_x;
      const int column = reflect(shifted, width);
      const bool black = job.mode == PadMode::zero && !(row_inside && column == shifted);
      for (int c = 0; c < 3; ++c) {
        pixel[c] = black ? 0 : job.planes[c * job.plane_bytes + ptrdiff_t{row} * width + column];
      }
    }
  }
}

// One shuffle per plane turns samples into RGB. The 16 samples of a plane are three bytes apart in
// 48 bytes of RGB, which is 16 different places modulo 16: so they go to these places within their
// vector, and each third of the 48 bytes selects from the three vectors.
constexpr int kBlock = 16;
using BlockTable = std::array<std::array<uint8_t, kBlock>, 3>;

constexpr BlockTable make_sample_at() {  // [plane][place modulo 16] -> sample
  BlockTable table{};
  for (int plane = 0; plane < 3; ++plane) {
    for (int sample = 0; sample < kBlock; ++sample) {
      table[plane][(3 * sample + plane) % kBlock] = static_cast<uint8_t>(sample);
    }
  }
  return table;
}

constexpr BlockTable make_is_third() {  // [k][place] -> 0xFF where the place is k modulo 3
  BlockTable table{};
  for (int place = 0; place < kBlock; ++place) table[place % 3][place] = 0xFF;
  return table;
}

alignas(16) constexpr BlockTable kSampleAt = make_sample_at();
alignas(16) constexpr BlockTable kIsThird = make_is_third();

constexpr int kMaxShift = kBlock / 2 - 1;  // reflected samples stay in their block of 16
constexpr int kMaxLanes = 2 * kBlock;
constexpr ptrdiff_t kNextBytes = 96;  // prefetched with each line of 32 pixels

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

void shift_planar(const PlanarJob& job) { shift_plainly(job); }

#else

// Makes all lines of the columns [first, first + lanes), before the flip. REQUIRES: they are in the
// image.
template <class D>
struct Columns {
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  using V = hn::Vec<D>;

  // Returns the shuffle that moves each sample of a vector to its place, and pads where the source
  // is outside.
  static HWY_INLINE V order_of(const PlanarJob& job, int first, int plane) {
    const D d;
    const hn::RebindToSigned<D> ds;
    alignas(32) static constexpr int8_t kBlockStart[kMaxLanes] = {
        0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
        16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16};
    const V sample =
        hn::Xor(hn::LoadDup128(d, kSampleAt[plane].data()), hn::Set(d, job.flip ? kBlock - 1 : 0));
    const auto signed_sample = hn::BitCast(ds, sample);
    const auto start = hn::Load(ds, kBlockStart);
    const int left = first + job.offset_x;  // the source's column of the first sample
    const int room = job.out.width - left;  // columns from there to the image's end
    const auto column = hn::Add(signed_sample, start);
    const auto outside =
        hn::Or(hn::Lt(column, hn::Set(ds, static_cast<int8_t>(std::clamp(-left, 0, 127)))),
               hn::Gt(column, hn::Set(ds, static_cast<int8_t>(std::clamp(room - 1, -1, 127)))));
    // -left - (column + left) from the block's start, or 2 * (width - 1) - left - (column + left).
    const int mirror = job.offset_x < 0 ? -2 * left : 2 * (room - 1);
    const auto reflected = hn::Sub(
        hn::Sub(hn::Set(ds, static_cast<int8_t>(mirror)), hn::Add(start, start)), signed_sample);
    const auto black = hn::Set(ds, int8_t{-128});
    const auto pad = job.mode == PadMode::zero ? black : reflected;
    return hn::BitCast(d, hn::IfThenElse(outside, pad, signed_sample));
  }

  // Stores the thirds of RGB, of each block of 16 pixels, to `to`.
  template <bool kMirrored>
  static HWY_INLINE void store(V third0, V third1, V third2, uint8_t* to) {
    const D d;
    if constexpr (kLanes == kBlock) {
      hn::StoreU(third0, d, to);
      hn::StoreU(third1, d, to + kLanes);
      hn::StoreU(third2, d, to + 2 * kLanes);
    } else if constexpr (kMirrored) {
      hn::StoreU(hn::ConcatUpperUpper(d, third1, third0), d, to);
      hn::StoreU(hn::ConcatLowerUpper(d, third0, third2), d, to + kLanes);
      hn::StoreU(hn::ConcatLowerLower(d, third2, third1), d, to + 2 * kLanes);
    } else {
      hn::StoreU(hn::ConcatLowerLower(d, third1, third0), d, to);
      hn::StoreU(hn::ConcatUpperLower(d, third0, third2), d, to + kLanes);
      hn::StoreU(hn::ConcatUpperUpper(d, third2, third1), d, to + 2 * kLanes);
    }
  }

  // Lines of the source, `step` bytes apart, that follow each other in the output.
  struct Run {
    int lines;
    const uint8_t* line;  // of the first plane, at the output's first column before the flip
    ptrdiff_t step, plane_bytes;
  };
  // Samples beside a line are read with it, and not used. The bytes before the first line and after
  // the last may not be readable: such a line is read from the copy.
  struct Runs {
    Run run[5];
    int count = 0;
    alignas(32) uint8_t copy[7 * kLanes];  // of three planes, with padding around each
    void add(const Run& more) {
      if (more.lines > 0) run[count++] = more;
    }
  };

  static HWY_INLINE Run copied_line(const PlanarJob& job, int left, int row, uint8_t* copy) {
    const D d;
    const int column = left < 0 ? 0 : job.out.width - kLanes;
    const uint8_t* line = job.planes + ptrdiff_t{row} * job.out.width + column;
    for (int c = 0; c < 3; ++c, line += job.plane_bytes) {
      hn::Store(hn::LoadU(d, line), d, copy + (1 + 2 * c) * kLanes);
    }
    return {1, copy + kLanes + left - column, 0, 2 * kLanes};
  }

  static HWY_INLINE void find_runs(const PlanarJob& job, int first, Runs& runs) {
    alignas(32) static constexpr uint8_t kBlack[kLanes] = {};
    const int width = job.out.width, height = job.out.height, left = first + job.offset_x;
    const auto lines_from = [&](int row) { return job.planes + ptrdiff_t{row} * width + left; };
    const auto add_pad = [&](int lines, int row) {
      const Run black = {lines, kBlack, 0, 0};
      const Run reflected = {lines, lines_from(row), -width, job.plane_bytes};
      runs.add(job.mode == PadMode::zero ? black : reflected);
    };
    const int begin = std::max(job.offset_y, 0), end = height + std::min(job.offset_y, 0);
    const int unsafe = left < 0 ? 0 : left + kLanes > width ? height - 1 : -1;
    const bool copy_first = unsafe == begin, copy_last = unsafe == end - 1 && !copy_first;

    add_pad(-job.offset_y, -job.offset_y);
    if (copy_first) runs.add(copied_line(job, left, unsafe, runs.copy));
    runs.add({end - begin - copy_first - copy_last, lines_from(begin + copy_first), width,
              job.plane_bytes});
    if (copy_last) runs.add(copied_line(job, left, unsafe, runs.copy));
    add_pad(job.offset_y, height - 2);
  }

  template <bool kMirrored>
  static void run(const PlanarJob& job, int first) {
    const D d;
    Runs runs;
    find_runs(job, first, runs);
    const V order0 = order_of(job, first, 0), order1 = order_of(job, first, 1),
            order2 = order_of(job, first, 2);
    const auto is0 = hn::MaskFromVec(hn::LoadDup128(d, kIsThird[0].data()));
    const auto is1 = hn::MaskFromVec(hn::LoadDup128(d, kIsThird[1].data()));
    const auto is2 = hn::MaskFromVec(hn::LoadDup128(d, kIsThird[2].data()));
    const ptrdiff_t stride_bytes = job.out.stride_bytes;
    const int column = kMirrored ? job.out.width - kLanes - first : first;
    uint8_t* to = job.out.data + ptrdiff_t{3} * column;
    const uint8_t* next = job.next != nullptr ? job.next : job.planes;
    for (int i = 0; i < runs.count; ++i) {
      const auto [lines, from, step, plane_bytes] = runs.run[i];
      const uint8_t* line = from;
      for (int y = 0; y < lines; ++y, line += step, to += stride_bytes) {
        // If all prefetches came first, this row's own stores would have to wait for them.
        hwy::Prefetch(next);
        hwy::Prefetch(next + 64);
        next += kNextBytes;
        const V red = hn::TableLookupBytesOr0(hn::LoadU(d, line), order0);
        const V green = hn::TableLookupBytesOr0(hn::LoadU(d, line + plane_bytes), order1);
        const V blue = hn::TableLookupBytesOr0(hn::LoadU(d, line + 2 * plane_bytes), order2);
        store<kMirrored>(hn::IfThenElse(is0, red, hn::IfThenElse(is1, green, blue)),
                         hn::IfThenElse(is2, red, hn::IfThenElse(is0, green, blue)),
                         hn::IfThenElse(is1, red, hn::IfThenElse(is2, green, blue)), to);
      }
    }
  }

  // Columns that do not fill a vector are made together with those before them, which are made
  // twice.
  static HWY_INLINE void run_all(const PlanarJob& job) {
    for (int next = 0; next < job.out.width; next += kLanes) {
      const int first = std::min(next, job.out.width - kLanes);
      job.flip ? run<true>(job, first) : run<false>(job, first);
    }
  }
};

void shift_planar(const PlanarJob& job) {
  const hn::CappedTag<uint8_t, kMaxLanes> wide;
  // Otherwise a line of the padding would be the image's first or last.
  const bool few_lines = std::abs(job.offset_y) >= job.out.height - 1;
  if (job.out.width < kBlock || std::abs(job.offset_x) > kMaxShift || few_lines) {
    shift_plainly(job);
  } else if (job.out.width >= static_cast<int>(hn::MaxLanes(wide))) {
    Columns<decltype(wide)>::run_all(job);
  } else {
    Columns<hn::Full128<uint8_t> >::run_all(job);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(shift_planar);

void shift_flip_planar(const uint8_t* planes, Size size, int offset_x, int offset_y, bool flip,
                       PadMode mode, MutableImageView out, const uint8_t* next) {
  const ptrdiff_t plane_bytes = ptrdiff_t{size.width} * size.height;
  HWY_DYNAMIC_DISPATCH(shift_planar)
  ({planes, plane_bytes, offset_x, offset_y, flip, mode, out, next});
}

}  // namespace stoker
#endif
