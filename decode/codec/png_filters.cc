#include "decode/codec/png_filters.h"

#include <algorithm>
#include <cstring>

// See decode/resize/resize_kernels.cc: scalable vectors are left out. So is AVX-512: its
// comparisons take longer, and each sum waits for some.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/codec/png_filters.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_CODEC_PNG_FILTERS_COMMON
#define STOKER_CODEC_PNG_FILTERS_COMMON
namespace stoker {
namespace {

enum PngFilter : uint8_t { kNone, kSub, kUp, kAverage, kPaeth, kFilters };

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

uint8_t predict(uint8_t filter, int left, int above, int corner) {
  switch (filter) {
    case kSub:
      return static_cast<uint8_t>(left);
    case kUp:
      return static_cast<uint8_t>(above);
    case kAverage:
      return static_cast<uint8_t>((left + above) / 2);
    case kPaeth: {
      const int base = left + above - corner;
      const int to_left = base > left ? base - left : left - base;
      const int to_above = base > above ? base - above : above - base;
      const int to_corner = base > corner ? base - corner : corner - base;
      if (to_left <= to_above && to_left <= to_corner) return static_cast<uint8_t>(left);
      return static_cast<uint8_t>(to_above <= to_corner ? above : corner);
    }
    default:
      return 0;
  }
}

void UndoRows(const PngRows& rows) {
  for (int r = 0; r < rows.count; ++r) {
    const uint8_t* from = rows.filtered + static_cast<size_t>(r) * rows.filtered_stride;
    uint8_t* to = rows.first + static_cast<size_t>(r) * rows.stride;
    const uint8_t* above = to - rows.stride;
    for (size_t i = 0; i < rows.bytes; ++i) {
      const bool is_first = i < rows.pixel_bytes;
      const int left = is_first ? 0 : to[i - rows.pixel_bytes];
      const int corner = is_first ? 0 : above[i - rows.pixel_bytes];
      to[i] = static_cast<uint8_t>(from[1 + i] + predict(from[0], left, above[i], corner));
    }
  }
}

#else

using Bytes = hn::FixedTag<uint8_t, 16>;
using V = hn::Vec<Bytes>;

// The one of the three that is nearest to left + above - corner. The distances are those between
// above and corner, left and corner, and, if corner is between the other two, of these two
// distances; if it is not, corner is not nearest.
HWY_INLINE V paeth(V left, V above, V corner) {
  const Bytes d;
  const V above_more = hn::SaturatedSub(above, corner),
          above_less = hn::SaturatedSub(corner, above);
  const V left_more = hn::SaturatedSub(left, corner), left_less = hn::SaturatedSub(corner, left);
  const V to_left = hn::Or(above_more, above_less);
  const V to_above = hn::Or(left_more, left_less);
  const V between = hn::Or(hn::Min(above_more, left_less), hn::Min(above_less, left_more));
  const V apart = hn::VecFromMask(d, hn::Eq(between, hn::Zero(d)));
  const V to_corner = hn::Or(
      apart, hn::Or(hn::SaturatedSub(to_left, to_above), hn::SaturatedSub(to_above, to_left)));
  const V nearer = hn::Min(to_above, to_corner);
  const V of_two = hn::IfThenElse(hn::Eq(nearer, to_above), above, corner);
  return hn::IfThenElse(hn::Eq(hn::Min(to_left, nearer), to_left), left, of_two);
}

template <class Group>
Group load(const uint8_t* from) {
  Group value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// The masks of one vector's groups: which filter each of their rows has.
struct FilterMasks {
  V is_sub, is_up, is_average, is_paeth;
};

HWY_INLINE V predict(const FilterMasks& masks, V left, V above, V corner) {
  const Bytes d;
  // Rounded down, not up.
  const V uneven = hn::And(hn::Xor(left, above), hn::Set(d, 1));
  const V average = hn::Sub(hn::AverageRound(left, above), uneven);
  const V others = hn::Or(hn::Or(hn::And(left, masks.is_sub), hn::And(above, masks.is_up)),
                          hn::And(average, masks.is_average));
  return hn::IfThenElse(hn::MaskFromVec(masks.is_paeth), paeth(left, above, corner), others);
}

// Undoes as many rows as two vectors have groups: group g has a pixel of row first + g, one pixel
// to the left of that in group g - 1. So the pixels above are those of the step before, moved by
// one group. A group has room for a pixel. The two vectors hide each other's latency.
template <class Group>
void undo_groups(const PngRows& rows, int first, int count) {
  constexpr int kLanes = static_cast<int>(16 / sizeof(Group)), kGroups = 2 * kLanes;
  const hn::FixedTag<Group, kLanes> d;
  const Bytes d8;
  const uint8_t* from[kGroups];
  uint8_t* to[kGroups];
  alignas(16) Group is_filter[kFilters][kGroups] = {};
  const size_t pixel = rows.pixel_bytes;
  for (int g = 0; g < kGroups; ++g) {
    const int r = first + (g < count ? g : 0);  // groups without a row read the first, and are lost
    from[g] = rows.filtered + static_cast<size_t>(r) * rows.filtered_stride;
    to[g] = rows.first + static_cast<size_t>(r) * rows.stride;
    is_filter[*from[g]++][g] = ~Group{0};
    // Counted from here, all groups of a step are at one place.
    from[g] -= static_cast<size_t>(g < count ? g : 0) * pixel;
    to[g] -= static_cast<size_t>(g) * pixel;
  }
  const auto masks_of = [&](int lane) HWY_ATTR {
    const auto of = [&](PngFilter filter)
                        HWY_ATTR { return hn::BitCast(d8, hn::Load(d, is_filter[filter] + lane)); };
    return FilterMasks{of(kSub), of(kUp), of(kAverage), of(kPaeth)};
  };
  const FilterMasks masks = masks_of(0), more_masks = masks_of(kLanes);
  const auto first_group = hn::FirstN(d, 1);
  const uint8_t* const above_row = to[0] - rows.stride;
  const size_t end = rows.bytes + static_cast<size_t>(count - 1) * pixel;
  const size_t all_begun = static_cast<size_t>(kGroups - 1) * pixel;

  V out = hn::Zero(d8), above = hn::Zero(d8), more_out = hn::Zero(d8), more_above = hn::Zero(d8);
  for (size_t at = 0; at < end; at += pixel) {
    const V corner = above, more_corner = more_above;
    const auto moved = hn::ShiftLeftLanes<1>(d, hn::BitCast(d, out));
    const auto from_above = hn::Set(d, load<Group>(above_row + at));
    more_above = hn::CombineShiftRightBytes<16 - sizeof(Group)>(d8, more_out, out);
    above = hn::BitCast(d8, hn::Or(moved, hn::IfThenElseZero(first_group, from_above)));
    const auto filtered = [&](int lane) HWY_ATTR {
      const auto one = [&](int g) HWY_ATTR { return hn::Set(d, load<Group>(from[lane + g] + at)); };
      auto groups = hn::OddEven(one(1), one(0));
      if constexpr (kLanes == 4) {
        groups = hn::ConcatUpperLower(d, hn::OddEven(one(3), one(2)), groups);
      }
      return hn::BitCast(d8, groups);
    };
    out = hn::Add(predict(masks, out, above, corner), filtered(0));
    more_out = hn::Add(predict(more_masks, more_out, more_above, more_corner), filtered(kLanes));
    if (at < all_begun) {  // a row that has not begun has zeros, as there are to its left
      const size_t begun = at / pixel + 1;
      const auto keep = [&](V v, size_t groups) HWY_ATTR {
        return hn::BitCast(d8, hn::IfThenElseZero(hn::FirstN(d, groups), hn::BitCast(d, v)));
      };
      out = keep(out, std::min<size_t>(begun, kLanes));
      more_out = keep(more_out, begun - std::min<size_t>(begun, kLanes));
    }
    const auto put = [&](int g, Group value) HWY_ATTR {
      if (g < count) std::memcpy(to[g] + at, &value, sizeof value);
    };
    const auto put_all = [&](V v, int g) HWY_ATTR {
      const auto lanes = hn::BitCast(d, v);
      put(g, hn::ExtractLane(lanes, 0));
      put(g + 1, hn::ExtractLane(lanes, 1));
      if constexpr (kLanes == 4) {
        put(g + 2, hn::ExtractLane(lanes, 2));
        put(g + 3, hn::ExtractLane(lanes, 3));
      }
    };
    put_all(out, 0);
    put_all(more_out, kLanes);
  }
}

void UndoRows(const PngRows& rows) {
  for (int r = 0; r < rows.count;) {
    if (rows.pixel_bytes <= 4) {
      undo_groups<uint32_t>(rows, r, std::min(rows.count - r, 8));
      r += 8;
    } else {
      undo_groups<uint64_t>(rows, r, std::min(rows.count - r, 4));
      r += 4;
    }
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
HWY_EXPORT(UndoRows);

bool undo_png_filters(const PngRows& rows) {
  bool is_plain = true;
  for (int r = 0; r < rows.count; ++r) {
    const uint8_t filter = rows.filtered[static_cast<size_t>(r) * rows.filtered_stride];
    if (filter >= kFilters) return false;
    is_plain &= filter == kNone;
  }
  if (!is_plain) {
    HWY_DYNAMIC_DISPATCH(UndoRows)(rows);
    return true;
  }
  for (int r = 0; r < rows.count; ++r) {
    std::memcpy(rows.first + static_cast<size_t>(r) * rows.stride,
                rows.filtered + static_cast<size_t>(r) * rows.filtered_stride + 1, rows.bytes);
  }
  return true;
}

}  // namespace stoker
#endif
