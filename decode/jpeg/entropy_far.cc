// Skips a long run of MCUs in two places at once, although the second place is only a guess.
//
// Two chains of lookups wait less than one (entropy_two.cc has them where an index knows the
// places). Huffman codes synchronise themselves: a decoder that starts anywhere soon finds the same
// ends of blocks as one that started at the beginning (T. J. Ferguson and J. H. Rabinowitz,
// "Self-synchronizing Huffman codes", IEEE Transactions on Information Theory 30, 1984; S. T. Klein
// and Y. Wiseman, "Parallel Huffman decoding with applications to JPEG files", The Computer Journal
// 46, 2003). In photographs it takes a few blocks.
//
// So a second stream starts at a guess of the run's middle, and marks where some of its MCUs end.
// Where the first stream ends an MCU at a mark, all that the second has decoded behind it is what
// the first would decode there: the same bits by the same tables. If it meets no mark, it goes on
// alone. The guess decides on nothing but the time.
#include <algorithm>
#include <utility>

#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_far.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_skip_inl.h"

#ifndef STOKER_ENTROPY_FAR_ONCE
#define STOKER_ENTROPY_FAR_ONCE
namespace stoker {

inline constexpr int kMaxMarks = 64;

// The MCUs that are skipped between two checks of the position.
inline int chunk_of(const McuLayout& layout) { return kSkipChunk / layout.block_count; }

// Shorter runs are not worth a second stream.
inline constexpr int kMinFarBlocks = 256;

// Where the second stream begins, and how many MCUs it is to skip.
struct FarGuess {
  const uint8_t* next = nullptr;
  int mcus = 0;
};

struct FarSkip {
  int mcus = 0;
  bool has_met = false;  // the second stream
};

// Where an MCU of the second stream ends, and the sums of the DC differences up to it.
struct SkipMark {
  int64_t bit = 0;
  int mcus = 0;  // of the second stream
  int32_t dc[3] = {};
};

inline EntropyState state_at(const uint8_t* origin, int64_t bit) {
  EntropyState state;
  state.next = origin + bit / 8;
  if (bit % 8 != 0) {
    state.bits = uint64_t{*state.next++} << (56 + bit % 8);
    state.count = static_cast<int>(8 - bit % 8);
  }
  return state;
}

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// One of the two streams, which skips chunks of MCUs.
struct SkipStream {
  McuLayout& layout;
  const uint8_t* origin;  // of the places in bits
  const uint8_t* limit;
  SkipPlace at;
  int mcus = 0;  // skipped so far
  int32_t dc[3] = {};
  int chunk = 0;                           // MCUs that are being skipped
  SkipStep* end = nullptr;                 // behind their steps
  const uint16_t* table_of_end = nullptr;  // while that has none

  int64_t bit() const { return 8 * (at.in.next - origin) - static_cast<int64_t>(at.in.count & 63); }
};

HWY_INLINE SkipStream stream_at(McuLayout& layout, const uint8_t* origin, const uint8_t* limit,
                                const EntropyState& state) {
  SkipStream s{layout, origin, limit, {}};
  s.at.in = {state.next, state.bits, static_cast<uint64_t>(state.count)};
  // `state` may hold only a few bits.
  s.at.in.refill();
  std::copy_n(state.dc, 3, s.dc);
  return s;
}

HWY_INLINE void begin_chunk(int mcus, SkipStream& s) {
  s.chunk = mcus;
  s.end = &s.layout.steps[2 * mcus * s.layout.block_count];
  s.table_of_end = std::exchange(s.end->table, kNoSymbols.data());
  s.at = {s.at.in, s.layout.steps, s.layout.steps->table, kFirst};
}

HWY_INLINE void drop_chunk(SkipStream& s) { s.end->table = s.table_of_end; }

// Ends a chunk whose lookups have stopped. Returns false if that was not at its end.
HWY_INLINE bool end_chunk(SkipStream& s) {
  drop_chunk(s);
  if (s.at.step != s.end || s.at.in.next > s.limit) return false;
  add_differences(s.layout, s.chunk, s.dc);
  s.mcus += s.chunk;
  return true;
}

// Goes on after a lookup that stopped at `at`. Returns false at the chunk's end, and at damage.
HWY_INLINE bool goes_on(uint32_t entry, const SkipPlace& at, SkipStream& s) {
  s.at = at;
  return at.step != s.end && skip_unusual(s.layout, entry, s.at);
}

HWY_INLINE void run_chunk(SkipStream& s) {
  uint32_t entry;
  SkipPlace at;
  do {
    at = s.at;
    while (!look_up(at, true, entry) && !look_up(at, false, entry)) {
    }
  } while (goes_on(entry, at, s));
}

// The lookups of both take turns until one has stopped. Returns true if that is `a`.
HWY_INLINE bool run_two_chunks(SkipStream& a, SkipStream& b) {
  uint32_t entry_a, entry_b;
  for (;;) {
    SkipPlace at_a = a.at, at_b = b.at;
    bool a_stops = false, b_stops = false;
    do {
      (a_stops = look_up(at_a, true, entry_a)) || (b_stops = look_up(at_b, true, entry_b)) ||
          (a_stops = look_up(at_a, false, entry_a)) || (b_stops = look_up(at_b, false, entry_b));
    } while (!a_stops && !b_stops);
    a.at = at_a;
    b.at = at_b;
    if (!(a_stops ? goes_on(entry_a, at_a, a) : goes_on(entry_b, at_b, b))) return a_stops;
  }
}

HWY_INLINE bool skip_chunk(int mcus, SkipStream& s) {
  begin_chunk(mcus, s);
  run_chunk(s);
  return end_chunk(s);
}

// The marks of the second stream.
struct SkipMarks {
  SkipMark marks[kMaxMarks];
  int count = 0;

  void add(const SkipStream& s) {
    SkipMark& mark = marks[count++];
    mark = {s.bit(), s.mcus, {}};
    std::copy_n(s.dc, 3, mark.dc);
  }
};

// Lets `b` mark about `half` MCUs, while `a` skips at most `mcus`, up to where `b` began. Returns
// false if the data of `a` are damaged. REQUIRES: the marks have room for `half`.
HWY_INLINE bool run_two(int mcus, int half, SkipStream& a, SkipStream& b, SkipMarks& marks) {
  const int64_t begin = b.bit();
  const int most = chunk_of(a.layout), most_of_b = std::max(1, most / 2);
  begin_chunk(std::min(mcus, most), a);
  begin_chunk(most_of_b, b);
  for (;;) {
    if (run_two_chunks(a, b)) {
      if (!end_chunk(a)) return false;
      if (a.bit() >= begin || a.mcus == mcus) return true;
      begin_chunk(std::min(mcus - a.mcus, most), a);
      continue;
    }
    // Damage of `b` says nothing of the data: it may have begun within a code.
    const bool goes_on = end_chunk(b);
    if (goes_on) marks.add(b);
    if (!goes_on || b.mcus >= half) break;
    begin_chunk(most_of_b, b);
  }
  run_chunk(a);
  return end_chunk(a);
}

// Takes `a` to the first place from `begin` on where it and `b` end an MCU. Returns the place's
// mark, or the number of marks if there is none.
HWY_INLINE int meet(int mcus, int64_t begin, const SkipMarks& marks, SkipStream& a,
                    bool& is_sound) {
  constexpr int kMaxMissed = 4;
  while (is_sound && a.bit() < begin && a.mcus < mcus) {
    is_sound = skip_chunk(std::min(mcus - a.mcus, chunk_of(a.layout)), a);
  }
  for (int m = 0, missed = 0; m < marks.count && missed < kMaxMissed; ++m) {
    const int64_t bit = marks.marks[m].bit;
    if (bit < a.bit()) continue;
    while (is_sound && a.bit() < bit && a.mcus < mcus) is_sound = skip_chunk(1, a);
    if (a.bit() == bit) return m;
    ++missed;
  }
  return marks.count;
}

// Skips at most `mcus` MCUs, and writes how many. Returns false if the data are damaged.
bool skip_in_two(McuLayout& layout, int mcus, const FarGuess& guess, const uint8_t* limit,
                 EntropyState& state, FarSkip& result) {
  McuLayout other = layout;
  const uint8_t* const origin = state.next;
  SkipStream a = stream_at(layout, origin, limit, state);
  EntropyState from;
  from.next = guess.next;
  SkipStream b = stream_at(other, origin, limit, from);
  const int64_t begin = b.bit();
  SkipMarks marks;
  bool is_sound = run_two(mcus, guess.mcus, a, b, marks);
  const int met = is_sound ? meet(mcus, begin, marks, a, is_sound) : marks.count;
  if (!is_sound) return false;
  if (met == marks.count) {
    result = {a.mcus, false};
    state.next = a.at.in.next;
    state.bits = a.at.in.bits;
    state.count = static_cast<int>(a.at.in.count & 63);
    std::copy_n(a.dc, 3, state.dc);
    return true;
  }
  const SkipMark& first = marks.marks[met];
  const SkipMark* last = marks.marks + marks.count - 1;
  while (a.mcus + last->mcus - first.mcus > mcus) --last;
  result = {a.mcus + last->mcus - first.mcus, true};
  state = state_at(origin, last->bit);
  for (int c = 0; c < 3; ++c) state.dc[c] = a.dc[c] + last->dc[c] - first.dc[c];
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(skip_in_two);

bool skip_far(McuLayout& layout, int mcus, const uint8_t* limit, EntropyState& state, int& met) {
  const int few = chunk_of(layout), least = kMinFarBlocks / layout.block_count;
  const int most_marked = kMaxMarks * std::max(1, chunk_of(layout) / 2);
  int last = mcus < few + least ? mcus : few;
  EntropyState before = state;
  if (!skip_mcus(layout, last, limit, state)) return false;
  // The MCUs that were skipped last say how many bits those behind them take.
  for (mcus -= last; mcus >= least; mcus -= last) {
    const int64_t bits = 8 * (state.next - before.next) - (state.count - before.count);
    const int half = std::min(mcus / 2, most_marked);
    const int64_t bytes = bits * half / last / 8;
    if (bytes >= limit - state.next) break;
    before = state;
    FarSkip skip;
    if (!HWY_DYNAMIC_DISPATCH(skip_in_two)(layout, mcus, {state.next + bytes, half}, limit, state,
                                           skip)) {
      return false;
    }
    last = skip.mcus;
    met += skip.has_met;
  }
  return skip_mcus(layout, mcus, limit, state);
}

}  // namespace stoker
#endif
