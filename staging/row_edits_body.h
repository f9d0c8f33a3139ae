// The work of one thread of the kernel of row_edits.h, for both compilers: nvcc makes the kernel
// from it, the host's twin calls it in a loop. A thread edits the same few values of both rows of a
// pair, so that it needs no copy of them. Internal.
#pragma once

#include <cstdint>

#include "staging/row_edits.h"

namespace stoker {

// A draw of 64 bits has the bits of so many values.
inline constexpr int kNoiseValues = 64 / kNoiseBits;

// The place of a value in its row.
struct ValuePlace {
  int x = 0, y = 0;  // of the pixel
  int channel = 0;
};

constexpr ValuePlace place_of(int value_of_line, int line) {
  return {value_of_line / 3, line, value_of_line % 3};
}

constexpr bool contains(const EditBox& box, ValuePlace at) {
  return at.x >= box.x && at.x < box.x + box.width && at.y >= box.y && at.y < box.y + box.height;
}

constexpr bool is_erased(const RowEdit& edit, ValuePlace at) {
  return edit.erasing != RowErasing::none && contains(edit.erased, at);
}

constexpr bool is_mixed(const RowEdit& edit, ValuePlace at) {
  return edit.mixing == RowMixing::mean ||
         (edit.mixing == RowMixing::box && contains(edit.taken, at));
}

constexpr uint8_t erased_value(const RowEdit& edit, ValuePlace at, uint8_t value,
                               const NoiseBytes* noise) {
  if (!is_erased(edit, at)) return value;
  if (edit.erasing == RowErasing::colour) {
    // Not by a variable index, for which a kernel would keep the edit in memory.
    const auto& [red, green, blue] = edit.colour;
    return at.channel == 0 ? red : at.channel == 1 ? green : blue;
  }
  const EditBox& box = edit.erased;
  const int64_t number = (int64_t{at.y - box.y} * box.width + (at.x - box.x)) * 3 + at.channel;
  const uint64_t bits = edit.noise.bits(static_cast<uint32_t>(number / kNoiseValues));
  const int shift = static_cast<int>(number % kNoiseValues) * kNoiseBits;
  return (*noise)[static_cast<size_t>(at.channel)][(bits >> shift) % (1U << kNoiseBits)];
}

// `own` and `partner` are erased where they have to be.
constexpr uint8_t mixed_value(const RowEdit& edit, ValuePlace at, uint8_t own, uint8_t partner) {
  if (!is_mixed(edit, at)) return own;
  if (edit.mixing == RowMixing::box) return partner;
  // The half rounds; the shift rounds down, also below zero.
  constexpr int kHalf = 1 << (kShareBits - 1);
  return static_cast<uint8_t>(partner + ((edit.share * (own - partner) + kHalf) >> kShareBits));
}

// Two rows that are each other's partners. The last row of an odd batch has none: `second` is null.
struct EditPair {
  uint8_t* first = nullptr;
  uint8_t* second = nullptr;
  RowEdit first_edit{}, second_edit{};
};

constexpr EditPair pair_of(const RowEditArgs& args, int64_t number) {
  const int64_t row_bytes = int64_t{3} * args.width * args.height;
  EditPair pair{.first = args.images + 2 * number * row_bytes,
                .first_edit = args.edits[2 * number]};
  if (2 * number + 1 == args.rows) return pair;
  pair.second = pair.first + row_bytes;
  pair.second_edit = args.edits[2 * number + 1];
  return pair;
}

// Neighbouring values, read and written at once.
template <int kCount>
struct alignas(kCount) ValueGroup {
  uint8_t value[kCount];
};

// Returns how many values a thread edits at once: groups are aligned, and in one line.
inline int values_at_once(const RowEditArgs& args) {
  const bool aligned = reinterpret_cast<uintptr_t>(args.images) % 4 == 0;
  return aligned && args.width % 4 == 0 ? 4 : 1;
}

// Edits values [group * kCount, (group + 1) * kCount) of a line of both rows.
template <int kCount>
constexpr void edit_values(const EditPair& pair, int width, int line, int group,
                           const NoiseBytes* noise) {
  bool first_changes = false, second_changes = false;
  for (int i = 0; i < kCount; ++i) {
    const ValuePlace at = place_of(group * kCount + i, line);
    first_changes |= is_erased(pair.first_edit, at) || is_mixed(pair.first_edit, at);
    second_changes |= is_erased(pair.second_edit, at) || is_mixed(pair.second_edit, at);
  }
  if (!first_changes && !second_changes) return;
  using Group = ValueGroup<kCount>;
  const int64_t offset = int64_t{3} * width * line + int64_t{group} * kCount;
  auto* const first = reinterpret_cast<Group*>(pair.first + offset);
  auto* const second = pair.second ? reinterpret_cast<Group*>(pair.second + offset) : nullptr;
  Group one = *first, two = second ? *second : Group{};
  for (int i = 0; i < kCount; ++i) {
    const ValuePlace at = place_of(group * kCount + i, line);
    const uint8_t a = erased_value(pair.first_edit, at, one.value[i], noise);
    const uint8_t b = erased_value(pair.second_edit, at, two.value[i], noise);
    one.value[i] = mixed_value(pair.first_edit, at, a, b);
    two.value[i] = mixed_value(pair.second_edit, at, b, a);
  }
  if (first_changes) *first = one;
  if (second_changes) *second = two;
}

}  // namespace stoker
