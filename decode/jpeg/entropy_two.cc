// Stores two runs of MCUs at once. Their lookups take turns, so that one run's chain of lookups
// goes on while the other one waits for its own.
#include "decode/jpeg/entropy_decoder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/entropy_two.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_block_inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// The place of a stream of MCUs among its blocks.
struct Stream {
  BlockReader reader;
  int block, mcu;  // of the layout
};

enum class Progress { damaged, goes_on, finished };

HWY_INLINE Progress begin_stream(const McuRun& run, int first, Stream& s) {
  s.reader.in = {run.state->next, run.state->bits, static_cast<uint64_t>(run.state->count)};
  s.reader.in.refill();
  s.block = 0;
  s.mcu = first;
  return begin_block(run.layout->blocks[0], first, run.state->dc, s.reader) ? Progress::goes_on
                                                                            : Progress::damaged;
}

// Goes on after a lookup that led to a block's end or past it.
HWY_INLINE Progress pass_end(const McuRun& run, int end, Stream& s) {
  const Rest rest = end_block(s.reader);
  if (rest == Rest::damaged) return Progress::damaged;
  // A lookup that refills comes next.
  if (rest == Rest::in_block) return Progress::goes_on;
  const McuLayout& layout = *run.layout;
  s.reader.out[0] = static_cast<int16_t>(run.state->dc[layout.blocks[s.block].component]);
  if (++s.block == layout.block_count) {
    if (HWY_UNLIKELY(s.reader.in.next > run.limit)) return Progress::damaged;
    s.block = 0;
    if (++s.mcu == end) return Progress::finished;
  }
  return begin_block(layout.blocks[s.block], s.mcu, run.state->dc, s.reader) ? Progress::goes_on
                                                                             : Progress::damaged;
}

template <int kWindow>
HWY_INLINE bool finish_stream(const McuRun& run, int end, Stream& s, Progress progress) {
  while (progress == Progress::goes_on) {
    while (!store_pair<kWindow>(s.reader, true) && !store_pair<kWindow>(s.reader, false) &&
           !store_pair<kWindow>(s.reader, false)) {
    }
    progress = pass_end(run, end, s);
  }
  run.state->next = s.reader.in.next;
  run.state->bits = s.reader.in.bits;
  run.state->count = static_cast<int>(s.reader.in.count & 63);
  return progress == Progress::finished;
}

// The lookups of the two streams take turns, so that neither waits for its own last one alone.
template <int kWindow>
HWY_NOINLINE bool store_two_by(const McuRun& run_a, const McuRun& run_b, int first, int count) {
  const int end = first + count;
  Stream a, b;
  prefetch_tables(*run_a.layout, count, [](const McuBlock& block) HWY_ATTR {
    prefetch<1 << kDcBits>(block.dc->lookup);
    prefetch<1 << kWindow>(block.ac->pair);
  });
  Progress at_a = begin_stream(run_a, first, a), at_b = begin_stream(run_b, first, b);
  while (at_a == Progress::goes_on && at_b == Progress::goes_on) {
    bool a_ends = false, b_ends = false;
    do {
      (a_ends = store_pair<kWindow>(a.reader, true)) ||
          (b_ends = store_pair<kWindow>(b.reader, true)) ||
          (a_ends = store_pair<kWindow>(a.reader, false)) ||
          (b_ends = store_pair<kWindow>(b.reader, false)) ||
          (a_ends = store_pair<kWindow>(a.reader, false)) ||
          (b_ends = store_pair<kWindow>(b.reader, false));
    } while (!a_ends && !b_ends);
    if (a_ends) {
      at_a = pass_end(run_a, end, a);
    } else {
      at_b = pass_end(run_b, end, b);
    }
  }
  return finish_stream<kWindow>(run_a, end, a, at_a) && finish_stream<kWindow>(run_b, end, b, at_b);
}

bool store_two(const McuRun& a, const McuRun& b, int first, int count) {
  return pair_bits(*a.layout) == kAcBits ? store_two_by<kAcBits>(a, b, first, count)
                                         : store_two_by<kMaxAcBits>(a, b, first, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(store_two);

bool store_two_runs(const McuRun& a, const McuRun& b, int first, int count) {
  return HWY_DYNAMIC_DISPATCH(store_two)(a, b, first, count);
}

}  // namespace stoker
#endif
