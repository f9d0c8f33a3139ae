#include "decode/philox_draws.h"

#include <algorithm>

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/philox_draws.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Draw64 = hn::ScalableTag<uint64_t>;
using Lanes64 = hn::Vec<Draw64>;

HWY_INLINE Lanes64 word(uint32_t value) { return hn::Set(Draw64(), value); }

// The products of the low halves of the lanes.
HWY_INLINE Lanes64 product(Lanes64 a, Lanes64 b) {
#if HWY_TARGET == HWY_SCALAR
  const auto low_half = word(0xFFFFFFFF);
  return hn::Mul(hn::And(a, low_half), hn::And(b, low_half));
#else
  const hn::Repartition<uint32_t, Draw64> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
#endif
}

// A lane has one word of one block in its low half. Its high half may have anything, as only low
// halves are multiplied, and only the last words are read.
HWY_INLINE Lanes64 blocks(const std::array<uint32_t, 2>& key,
                          const std::array<uint32_t, 3>& counter, Lanes64 draw) {
  const auto multiplier0 = word(0xD2511F53), multiplier1 = word(0xCD9E8D57);
  auto word0 = word(counter[0]), word1 = word(counter[1]), word2 = word(counter[2]), word3 = draw;
  uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const auto product0 = product(multiplier0, word0), product1 = product(multiplier1, word2);
    word0 = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(word1, word(key0)));
    word1 = product1;
    word2 = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(word3, word(key1)));
    word3 = product0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return hn::Or(hn::ShiftLeft<32>(word0), hn::And(word1, word(0xFFFFFFFF)));
}

void fill(const std::array<uint32_t, 2>& key, const std::array<uint32_t, 3>& counter,
          uint32_t first, std::span<uint64_t> draws) {
  const Draw64 tag;
  const size_t lanes = hn::Lanes(tag);
  auto draw = hn::Iota(tag, first);
  const auto step = hn::Set(tag, lanes);
  size_t i = 0;
  for (; i + lanes <= draws.size(); i += lanes, draw = hn::Add(draw, step)) {
    hn::StoreU(blocks(key, counter, draw), tag, draws.data() + i);
  }
  if (i == draws.size()) return;
  HWY_ALIGN uint64_t last[hn::MaxLanes(Draw64())];
  hn::Store(blocks(key, counter, draw), tag, last);
  std::copy_n(last, draws.size() - i, draws.data() + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(fill);

void fill_philox_draws(const std::array<uint32_t, 2>& key, const std::array<uint32_t, 3>& counter,
                       uint32_t first, std::span<uint64_t> draws) {
  HWY_DYNAMIC_DISPATCH(fill)(key, counter, first, draws);
}

}  // namespace stoker
#endif
