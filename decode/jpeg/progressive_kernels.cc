#include "decode/jpeg/progressive_kernels.h"

#include <algorithm>
#include <array>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/jpeg/progressive_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "decode/jpeg/entropy_bits_inl.h"

#ifndef STOKER_PROGRESSIVE_KERNELS_ONCE
#define STOKER_PROGRESSIVE_KERNELS_ONCE
namespace stoker {

// Maps the k-th coefficient of a file to its place in a group of blocks.
inline constexpr auto kPlaces = [] {
  std::array<uint8_t, kBlockSize> places{};
  for (size_t k = 0; k < kBlockSize; ++k) {
    places[k] = static_cast<uint8_t>(kZigzag[k] / 8 * 8 * kBlockGroup + kZigzag[k] % 8);
  }
  return places;
}();

// The bits that are there after a refill, at least.
inline constexpr int kRefilled = 56;

inline uint64_t mask_bit(int k) { return uint64_t{1} << (kBlockSize - 1 - k); }
inline int coefficient_of(uint64_t bit) { return std::countl_zero(bit); }

}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {

// The next bits of the data.
struct BitSource {
  const uint8_t* next;
  uint64_t bits;
  uint64_t count;

  explicit BitSource(const ProgressiveState& state)
      : next(state.next), bits(state.bits), count(static_cast<uint64_t>(state.count)) {}
  HWY_INLINE void save(ProgressiveState& state) const {
    state.next = next;
    state.bits = bits;
    state.count = static_cast<int>(count);
  }

  // Afterwards at least kRefilled bits are counted. The bits below `count` may have been loaded
  // before: they are the same ones.
  HWY_INLINE void refill() {
    bits |= load_big_endian(next) >> count;
    next += (63 - count) >> 3;
    count |= kRefilled;
  }
  // REQUIRES: n <= count, n < 64.
  HWY_INLINE void drop(uint64_t n) {
    bits <<= n;
    count -= n;
  }
  HWY_INLINE uint64_t take(int n) {
    const uint64_t value = bits >> 1 >> (63 - n);
    drop(static_cast<uint64_t>(n));
    return value;
  }
  // Takes any number of bits below 64.
  HWY_INLINE uint64_t take_refilled(int n) {
    refill();
    if (HWY_LIKELY(n <= kRefilled)) return take(n);
    const uint64_t upper = take(32);
    refill();
    return upper << (n - 32) | take(n - 32);
  }
  // Returns false, and does not move, if that leads past `limit`.
  HWY_INLINE bool skip(uint64_t n, const uint8_t* limit) {
    if (n > count) {
      n -= count;
      if (next > limit || n >> 3 > static_cast<uint64_t>(limit - next)) return false;
      next += n >> 3;
      n &= 7;
      bits = count = 0;
      refill();
    }
    drop(n);
    return true;
  }
};

// Puts the lowest bits of `bits` at the places of the ones of `mask`, from the lowest up.
HWY_INLINE uint64_t deposit(uint64_t bits, uint64_t mask) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
  return _pdep_u64(bits, mask);
#else
  uint64_t result = 0;
  for (; bits != 0 && mask != 0; bits >>= 1, mask &= mask - 1) {
    if ((bits & 1) != 0) result |= mask & (0 - mask);
  }
  return result;
#endif
}

HWY_INLINE uint32_t lookup(const ScanTable& table, uint64_t bits) {
  return table.lookup[bits >> (64 - kScanBits)];
}
HWY_INLINE uint32_t advance_of(uint32_t entry) { return entry >> 24; }
HWY_INLINE uint32_t code_bits_of(uint32_t entry) { return entry >> 8 & 0xff; }
HWY_INLINE uint32_t bits_of(uint32_t entry) { return entry & 0xff; }
HWY_INLINE uint64_t is_coefficient(uint32_t entry) { return entry >> 16 & 1; }
HWY_INLINE int value_of(uint32_t entry, uint64_t bits) {
  return extend(bits << code_bits_of(entry),
                static_cast<int>(bits_of(entry) - code_bits_of(entry)));
}

// Takes an end-of-blocks code. Returns the number of blocks that end, or 0 if the entry is another.
HWY_INLINE uint32_t take_end(BitSource& in, uint32_t entry) {
  const uint32_t n = advance_of(entry) - kEndOfBlock;
  if (n > 14) return 0;
  in.drop(bits_of(entry));
  return (1u << n) + static_cast<uint32_t>(in.take(static_cast<int>(n)));
}

// Reads the AC coefficients of one block up to its end. Returns false as first_ac does.
template <bool kStore>
HWY_INLINE bool first_block(BitSource& in, const AcScan& scan, uint64_t& nonzero, int16_t* out,
                            uint32_t& ended) {
  const uint32_t last = static_cast<uint32_t>(scan.last);
  uint32_t k = static_cast<uint32_t>(scan.first) - 1;
  uint64_t found = 0;
  uint32_t entry;
  do {
    in.refill();
    entry = lookup(*scan.table, in.bits);
    if (HWY_UNLIKELY(advance_of(entry) == kNoSymbol)) {
      entry = find_scan_symbol(*scan.table, in.bits);
    }
    k += advance_of(entry);
    if (k > last) {
      ended = take_end(in, entry);
      if (ended == 0) return false;
      --ended;
      break;
    }
    found |= is_coefficient(entry) << (63 - k);
    if (kStore) out[kPlaces[k]] = static_cast<int16_t>(value_of(entry, in.bits) << scan.low);
    in.drop(bits_of(entry));
  } while (k != last);
  nonzero |= found;
  return true;
}

template <bool kStore>
HWY_INLINE bool first_blocks(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
                             ProgressiveState& state) {
  BitSource in(state);
  uint32_t ended = state.ended;
  const uint32_t count = static_cast<uint32_t>(blocks.count);
  for (uint32_t b = 0;; ++b) {
    const uint32_t without = std::min(ended, count - b);
    ended -= without;
    b += without;
    if (b == count) break;
    int16_t* out = nullptr;
    if (kStore) {
      out = blocks.coefficients + coefficient_offset(static_cast<uint32_t>(blocks.first) + b);
    }
    if (!first_block<kStore>(in, scan, blocks.nonzero[b], out, ended)) return false;
    if (HWY_UNLIKELY(in.next > limit)) return false;
  }
  in.save(state);
  state.ended = ended;
  return true;
}

// Adds one to the magnitudes of some coefficients, in units of the scan's bit.
HWY_INLINE void correct(uint64_t which, int16_t one, int16_t* out) {
  for (; which != 0; which &= which - 1) {
    int16_t& value = out[kPlaces[63 - std::countr_zero(which)]];
    value = static_cast<int16_t>(value < 0 ? value - one : value + one);
  }
}

// Refines a block up to its end. Returns false as refine_ac does.
template <bool kStore>
HWY_INLINE bool refine_block(BitSource& in, const AcScan& scan, uint64_t band, uint64_t& nonzero,
                             int16_t* out, uint32_t& ended) {
  // The most bits that a symbol and its correction take, so that the next lookup is filled.
  constexpr uint64_t kMaxBits = kRefilled - 16;
  const int16_t one = static_cast<int16_t>(1 << scan.low);
  const uint64_t end = mask_bit(scan.last);
  const uint64_t corrected = band & nonzero;
  const uint64_t zeros = band & ~nonzero;
  uint64_t ahead = corrected;  // coefficients whose bits of correction come later
  uint64_t corrections = 0;    // the bits of the others, the last one lowest
  int zeros_left = std::popcount(zeros);
  uint64_t target;
  in.refill();
  do {
    uint32_t entry = lookup(*scan.table, in.bits);
    in.refill();
    if (HWY_UNLIKELY(advance_of(entry) == kNoSymbol)) {
      entry = find_scan_symbol(*scan.table, in.bits);
    }
    if (advance_of(entry) >= kEndOfBlock) {
      ended = take_end(in, entry);
      if (ended == 0) return false;
      --ended;
      const int count = std::popcount(ahead);
      corrections = corrections << count | in.take_refilled(count);
      break;
    }
    zeros_left -= static_cast<int>(advance_of(entry));
    if (zeros_left < 0) return false;
    target = deposit(uint64_t{1} << zeros_left, zeros);
    const int count = std::popcount(ahead & (0 - target));
    ahead &= target - 1;
    if (HWY_LIKELY(is_coefficient(entry))) {
      nonzero |= target;
      if (kStore) {
        out[kPlaces[coefficient_of(target)]] = static_cast<int16_t>(value_of(entry, in.bits) * one);
      }
    }
    in.drop(bits_of(entry));
    if (HWY_UNLIKELY(bits_of(entry) + static_cast<uint64_t>(count) > kMaxBits)) {
      corrections = corrections << count | in.take_refilled(count);
      in.refill();
    } else {
      corrections = corrections << count | in.take(count);
    }
  } while (target != end);
  if (kStore) correct(deposit(corrections, corrected), one, out);
  return true;
}

// Takes the bits of correction of a block that has nothing else.
HWY_INLINE void correct_block(BitSource& in, uint64_t which, int16_t one, int16_t* out) {
  correct(deposit(in.take_refilled(std::popcount(which)), which), one, out);
}

// Reads past those of several such blocks.
HWY_INLINE bool skip_corrections(BitSource& in, uint64_t band, const uint64_t* nonzero,
                                 uint32_t count, const uint8_t* limit) {
  uint64_t bits = 0;
  for (uint32_t b = 0; b < count; ++b) {
    bits += static_cast<uint64_t>(std::popcount(nonzero[b] & band));
  }
  return in.skip(bits, limit);
}

template <bool kStore>
HWY_INLINE bool refine_blocks(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
                              ProgressiveState& state) {
  BitSource in(state);
  uint32_t ended = state.ended;
  const uint64_t band = (mask_bit(scan.first) << 1) - mask_bit(scan.last);
  const int16_t one = static_cast<int16_t>(1 << scan.low);
  const uint32_t count = static_cast<uint32_t>(blocks.count);
  for (uint32_t b = 0; b < count; ++b) {
    if (!kStore && ended > 0) {
      const uint32_t without = std::min(ended, count - b);
      if (!skip_corrections(in, band, blocks.nonzero + b, without, limit)) return false;
      ended -= without;
      b += without - 1;
      continue;
    }
    int16_t* out = nullptr;
    if (kStore) {
      out = blocks.coefficients + coefficient_offset(static_cast<uint32_t>(blocks.first) + b);
    }
    if (kStore && ended > 0) {
      --ended;
      correct_block(in, blocks.nonzero[b] & band, one, out);
    } else if (!refine_block<kStore>(in, scan, band, blocks.nonzero[b], out, ended)) {
      return false;
    }
    if (HWY_UNLIKELY(in.next > limit)) return false;
  }
  in.save(state);
  state.ended = ended;
  return true;
}

template <bool kStore>
HWY_INLINE bool first_dcs(const DcScan& scan, int first, int count, const uint8_t* limit,
                          ProgressiveState& state) {
  BitSource in(state);
  for (int m = first; m < first + count; ++m) {
    for (int b = 0; b < scan.block_count; ++b) {
      const DcBlock& block = scan.blocks[b];
      in.refill();
      uint32_t entry = lookup(*block.table, in.bits);
      if (HWY_UNLIKELY(advance_of(entry) == kNoSymbol)) {
        entry = find_scan_symbol(*block.table, in.bits);
        if (advance_of(entry) == kBadSymbol) return false;
      }
      int& dc = state.dc[block.component];
      dc += value_of(entry, in.bits);
      in.drop(bits_of(entry));
      if (!kStore) continue;
      int16_t* out = block.coefficients +
                     coefficient_offset(static_cast<uint32_t>(m) * block.across + block.column);
      // As in libjpeg, bits beyond 16 are lost.
      out[0] = static_cast<int16_t>(static_cast<uint32_t>(dc) << scan.low);
    }
    if (HWY_UNLIKELY(in.next > limit)) return false;
  }
  in.save(state);
  return true;
}

bool store_first_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
                    ProgressiveState& state) {
  return blocks.coefficients != nullptr ? first_blocks<true>(scan, blocks, limit, state)
                                        : first_blocks<false>(scan, blocks, limit, state);
}

bool store_refined_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
                      ProgressiveState& state) {
  return blocks.coefficients != nullptr ? refine_blocks<true>(scan, blocks, limit, state)
                                        : refine_blocks<false>(scan, blocks, limit, state);
}

bool store_first_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
                    ProgressiveState& state) {
  return first_dcs<true>(scan, first, count, limit, state);
}

bool pass_first_dc(const DcScan& scan, int count, const uint8_t* limit, ProgressiveState& state) {
  return first_dcs<false>(scan, 0, count, limit, state);
}

bool store_refined_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
                      ProgressiveState& state) {
  BitSource in(state);
  for (int m = first; m < first + count; ++m) {
    // An MCU has a few blocks, of one bit each.
    in.refill();
    for (int b = 0; b < scan.block_count; ++b) {
      const DcBlock& block = scan.blocks[b];
      const size_t at = coefficient_offset(static_cast<uint32_t>(m) * block.across + block.column);
      block.coefficients[at] |= static_cast<int16_t>(in.take(1) << scan.low);
    }
    if (HWY_UNLIKELY(in.next > limit)) return false;
  }
  in.save(state);
  return true;
}

bool pass_bits(uint64_t bits, const uint8_t* limit, ProgressiveState& state) {
  BitSource in(state);
  if (!in.skip(bits, limit)) return false;
  in.save(state);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(store_first_ac);
HWY_EXPORT(store_refined_ac);
HWY_EXPORT(store_first_dc);
HWY_EXPORT(pass_first_dc);
HWY_EXPORT(store_refined_dc);
HWY_EXPORT(pass_bits);

bool first_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
              ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(store_first_ac)(scan, blocks, limit, state);
}

bool refine_ac(const AcScan& scan, const AcBlocks& blocks, const uint8_t* limit,
               ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(store_refined_ac)(scan, blocks, limit, state);
}

bool first_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
              ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(store_first_dc)(scan, first, count, limit, state);
}

bool skip_first_dc(const DcScan& scan, int count, const uint8_t* limit, ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(pass_first_dc)(scan, count, limit, state);
}

bool refine_dc(const DcScan& scan, int first, int count, const uint8_t* limit,
               ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(store_refined_dc)(scan, first, count, limit, state);
}

bool skip_bits(uint64_t bits, const uint8_t* limit, ProgressiveState& state) {
  return HWY_DYNAMIC_DISPATCH(pass_bits)(bits, limit, state);
}

}  // namespace stoker
#endif
