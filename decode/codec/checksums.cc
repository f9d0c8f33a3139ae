// CRC-32 folds 64 bytes at once by carry-less multiplication (Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009); the last 16 bytes that are
// left of that, and processors without the instruction, use tables. Adler-32 sums vectors.
#include "decode/codec/checksums.h"

#include <algorithm>
#include <array>
#include <cstddef>

// See decode/resize/resize_kernels.cc: scalable vectors are left out.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decode/codec/checksums.cc"
#endif
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef STOKER_CODEC_CHECKSUMS_COMMON
#define STOKER_CODEC_CHECKSUMS_COMMON
namespace stoker {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;  // the lowest bit is the highest power

constexpr uint32_t times_x(uint32_t value) {
  return value & 1 ? kPolynomial ^ value >> 1 : value >> 1;
}

using CrcTable = std::array<std::array<uint32_t, 256>, 4>;  // four bytes at a time

constexpr CrcTable make_crc_table() {
  CrcTable table{};
  for (uint32_t i = 0; i < 256; ++i) {
    table[0][i] = i;
    for (int bit = 0; bit < 8; ++bit) table[0][i] = times_x(table[0][i]);
  }
  for (size_t k = 1; k < 4; ++k) {
    for (size_t i = 0; i < 256; ++i) {
      table[k][i] = table[0][table[k - 1][i] & 0xff] ^ table[k - 1][i] >> 8;
    }
  }
  return table;
}

// Continues a CRC without the inversions at its begin and end.
inline uint32_t crc_by_table(uint32_t crc, const uint8_t* bytes, size_t count) {
  static constexpr CrcTable kTable = make_crc_table();
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    crc ^= bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 | uint32_t{bytes[i + 3]} << 24;
    crc = kTable[3][crc & 0xff] ^ kTable[2][crc >> 8 & 0xff] ^ kTable[1][crc >> 16 & 0xff] ^
          kTable[0][crc >> 24];
  }
  for (; i < count; ++i) crc = kTable[0][(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
  return crc;
}

// The factors that move 64 bits over `bits` bits: for the first half of 16 bytes, and the second.
struct Fold {
  explicit constexpr Fold(int bits) : first(power(bits + 32)), second(power(bits - 32)) {}
  static constexpr uint64_t power(int exponent) {
    uint32_t value = 0x80000000u;  // one
    for (int i = 0; i < exponent; ++i) value = times_x(value);
    return uint64_t{value} << 1;
  }
  uint64_t first, second;
};

constexpr uint32_t kAdlerBase = 65521;
constexpr size_t kAdlerPiece = 4096;  // bytes until the remainders are taken

}  // namespace
}  // namespace stoker
#endif

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_RVV

uint32_t CrcOf(const uint8_t* bytes, size_t count) {
  return ~crc_by_table(0xffffffffu, bytes, count);
}

uint32_t AdlerOf(uint32_t sum, const uint8_t* bytes, size_t count) {
  uint32_t low = sum & 0xffff, high = sum >> 16;
  while (count > 0) {
    const size_t piece = std::min(count, kAdlerPiece);
    for (size_t i = 0; i < piece; ++i) high += low += bytes[i];
    low %= kAdlerBase;
    high %= kAdlerBase;
    bytes += piece;
    count -= piece;
  }
  return high << 16 | low;
}

#else

// Whether the instruction is there; Highway would imitate it otherwise.
#if HWY_ARCH_X86
constexpr bool kMultiplies = HWY_TARGET <= HWY_SSE4;
#elif HWY_ARCH_ARM_A64 && defined(__ARM_FEATURE_AES)
constexpr bool kMultiplies = true;
#else
constexpr bool kMultiplies = false;
#endif

uint32_t CrcOf(const uint8_t* bytes, size_t count) {
  constexpr size_t kBlock = 16, kAtOnce = 4 * kBlock;
  uint32_t crc = 0xffffffffu;
  if (kMultiplies && count >= 2 * kAtOnce) {
    const hn::FixedTag<uint64_t, 2> d;
    const hn::Repartition<uint8_t, decltype(d)> d8;
    const auto load = [&](size_t at) { return hn::BitCast(d, hn::LoadU(d8, bytes + at)); };
    const auto factors = [&](const Fold& fold) {
      alignas(16) const uint64_t both[2] = {fold.first, fold.second};
      return hn::Load(d, both);
    };
    constexpr Fold kFar(8 * kAtOnce), kNear(8 * kBlock);
    const auto far = factors(kFar), near = factors(kNear);
    const auto fold = [](auto value, auto by, auto more) {
      return hn::Xor(hn::Xor(hn::CLMulLower(value, by), hn::CLMulUpper(value, by)), more);
    };
    alignas(16) const uint64_t begin[2] = {crc, 0};
    auto a = hn::Xor(load(0), hn::Load(d, begin));
    auto b = load(kBlock), c = load(2 * kBlock), e = load(3 * kBlock);
    size_t at = kAtOnce;
    for (; at + kAtOnce <= count; at += kAtOnce) {
      a = fold(a, far, load(at));
      b = fold(b, far, load(at + kBlock));
      c = fold(c, far, load(at + 2 * kBlock));
      e = fold(e, far, load(at + 3 * kBlock));
    }
    a = fold(fold(fold(a, near, b), near, c), near, e);
    alignas(16) uint8_t rest[kBlock];
    hn::Store(hn::BitCast(d8, a), d8, rest);
    crc = crc_by_table(0, rest, kBlock);
    bytes += at;
    count -= at;
  }
  return ~crc_by_table(crc, bytes, count);
}

// Among a vector's n bytes, the first counts n times in the second sum, and the last once.
uint32_t AdlerOf(uint32_t sum, const uint8_t* bytes, size_t count) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const hn::Repartition<int16_t, decltype(d)> d16;
  const hn::Half<decltype(d)> half;
  const hn::Repartition<int32_t, decltype(d)> d32;
  const size_t n = hn::Lanes(d);
  uint64_t low = sum & 0xffff, high = sum >> 16;
  const auto falling = hn::Sub(hn::Set(d16, static_cast<int16_t>(n)), hn::Iota(d16, 0));
  const auto falling_on = hn::Sub(falling, hn::Set(d16, static_cast<int16_t>(n / 2)));
  while (count > 0) {
    const size_t piece = std::min(count, kAdlerPiece);
    auto sums = hn::Zero(d64), before = hn::Zero(d64);
    auto weighted = hn::Zero(d32), weighted_too = hn::Zero(d32);
    size_t i = 0;
    for (; i + n <= piece; i += n) {
      const auto v = hn::LoadU(d, bytes + i);
      before = hn::Add(before, sums);
      sums = hn::Add(sums, hn::SumsOf8(v));
      const auto first = hn::PromoteTo(d16, hn::LowerHalf(half, v));
      const auto second = hn::PromoteTo(d16, hn::UpperHalf(half, v));
      weighted = hn::ReorderWidenMulAccumulate(d32, first, falling, weighted, weighted_too);
      weighted = hn::ReorderWidenMulAccumulate(d32, second, falling_on, weighted, weighted_too);
    }
    const auto all = hn::SumOfLanes(d32, hn::Add(weighted, weighted_too));
    high += low * i + n * hn::GetLane(hn::SumOfLanes(d64, before)) +
            static_cast<uint64_t>(hn::GetLane(all));
    low += hn::GetLane(hn::SumOfLanes(d64, sums));
    for (; i < piece; ++i) high += low += bytes[i];
    low %= kAdlerBase;
    high %= kAdlerBase;
    bytes += piece;
    count -= piece;
  }
  return static_cast<uint32_t>(high << 16 | low);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {
HWY_EXPORT(CrcOf);
HWY_EXPORT(AdlerOf);

uint32_t crc32(std::span<const uint8_t> bytes) {
  return HWY_DYNAMIC_DISPATCH(CrcOf)(bytes.data(), bytes.size());
}

uint32_t adler32(uint32_t sum, std::span<const uint8_t> bytes) {
  return HWY_DYNAMIC_DISPATCH(AdlerOf)(sum, bytes.data(), bytes.size());
}

}  // namespace stoker
#endif
