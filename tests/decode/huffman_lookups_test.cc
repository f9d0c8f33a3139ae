// Compares each entry of the Huffman lookups with the definition in their headers, read bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {
namespace {

struct RandomCode {
  uint8_t counts[16] = {};
  uint8_t values[256];
  int value_count = 0;

  HuffmanSpec spec() const { return {counts, values, value_count}; }
};

// Makes a code that libjpeg accepts, with values below `most`. Real ones have few short codes;
// others have none at all, or only long ones.
RandomCode draw_code(std::mt19937& random, int most) {
  RandomCode code;
  const int greed = 1 + static_cast<int>(random() % 8);
  int free = 1;  // codes of this length; all ones is not allowed
  for (int n = 0; n < 16; ++n) {
    free = std::min(2 * free, 1 << 12);
    const int count = std::min(
        {static_cast<int>(random() % (free / greed + 1)), free - 1, 256 - code.value_count, 255});
    code.counts[n] = static_cast<uint8_t>(count);
    code.value_count += count;
    free -= count;
  }
  for (uint8_t& value : code.values) value = static_cast<uint8_t>(random() % most);
  for (int i = 0; i < 6; ++i)
    code.values[random() % 24] = static_cast<uint8_t>(random() % most & 15);
  return code;
}

// The next bits of a stream of which the first `left` are known; the others are 0.
struct Window {
  uint32_t bits;
  int left;

  Window behind(int count) const {
    const int rest = std::max(left - count, 0);
    return {bits & ((1u << rest) - 1), rest};
  }
  int value(int size) const {  // extended as in F.1.2.1 of the JPEG standard
    const int known = std::min(size, left);
    const int raw = static_cast<int>(bits >> (left - known)) << (size - known);
    return size > 0 && raw < 1 << (size - 1) ? raw - (1 << size) + 1 : raw;
  }
};

// Returns the symbol whose code starts the window; length 0 if the code ends after the window.
HuffmanSymbol first_symbol(const HuffmanSpec& spec, Window window) {
  const uint8_t* value = spec.values;
  uint32_t code = 0;
  for (int n = 1; n <= std::min(window.left, 16); ++n, code <<= 1) {
    for (int i = 0; i < spec.counts[n - 1]; ++i, ++code, ++value) {
      if (window.bits >> (window.left - n) == code) return {n, *value};
    }
  }
  return {};
}

struct Step {
  int bits = 0, advance = 0, value = 0;
};

// Returns one symbol with its value, if its code and sign are in the window and it has at most
// `most` bits.
Step step(const HuffmanSpec& spec, Window window, int most) {
  const HuffmanSymbol symbol = first_symbol(spec, window);
  const int size = symbol.value & 15;
  if (symbol.length == 0 || symbol.length + std::min(size, 1) > window.left ||
      symbol.length + size > most) {
    return {};
  }
  return {symbol.length + size, ac_advance(symbol.value), window.behind(symbol.length).value(size)};
}

// Returns the length of the code that begins the window, or the least that it can have.
int least_length(const HuffmanSpec& spec, Window window) {
  const HuffmanSymbol symbol = first_symbol(spec, window);
  return symbol.length == 0 ? window.left + 1 : symbol.length;
}

uint64_t pair_entry(const HuffmanSpec& spec, Window window) {
  const auto pack = [](int bits, Step first, Step second) {
    const uint64_t shift = static_cast<uint64_t>(64 - bits) % 64;
    return static_cast<uint64_t>(bits) | static_cast<uint64_t>(first.advance) << 8 |
           uint64_t{static_cast<uint16_t>(first.value)} << 16 |
           uint64_t{static_cast<uint16_t>(second.value)} << 32 | shift << 48 |
           static_cast<uint64_t>(second.advance) << 56;
  };
  const Step first = step(spec, window, kMaxPairBits);
  if (first.bits == 0) {
    return pack(0, {0, kNoSymbol, least_length(spec, window)}, {0, kNoSymbol, 0});
  }
  Step second;
  if (first.advance < kEndOfBlock) {
    second = step(spec, window.behind(first.bits), kMaxPairBits - first.bits);
  }
  if (second.bits == 0) return pack(first.bits, first, first);
  second.advance += first.advance;
  return pack(first.bits + second.bits, first, second);
}

// Returns all symbols that begin in the window, unless they advance too far.
Step skip(const HuffmanSpec& spec, Window window) {
  const HuffmanSymbol symbol = first_symbol(spec, window);
  if (symbol.length == 0) return {};
  Step all{symbol.length + (symbol.value & 15), ac_advance(symbol.value)};
  if (all.advance >= kEndOfBlock) return all;
  const Step next = skip(spec, window.behind(all.bits));
  if (all.advance + next.advance % kEndOfBlock < kNoSymbol - kEndOfBlock) {
    all.bits += next.bits;
    all.advance += next.advance;
  }
  return all;
}

TEST(HuffmanLookups, OfAcAreWhatTheWindowHolds) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const RandomCode code = draw_code(random, 256);
    AcTable table;
    table.pair_bits = trial % 2 == 0 ? kAcBits : kMaxAcBits;
    ASSERT_TRUE(build_ac_table(code.spec(), table));
    for (uint32_t w = 0; w < 1u << table.pair_bits; ++w) {
      ASSERT_EQ(table.pair[w], pair_entry(code.spec(), {w, table.pair_bits}))
          << trial << " window " << w;
    }
    for (uint32_t w = 0; w < 1u << kSkipBits; ++w) {
      const Step all = skip(code.spec(), {w, kSkipBits});
      const int advance = all.bits == 0 ? kNoSymbol : all.advance;
      ASSERT_EQ(table.skip[w], advance << 8 | all.bits) << trial << " window " << w;
    }
  }
}

TEST(HuffmanLookups, OfDcAreWhatTheWindowHolds) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomCode code = draw_code(random, 16);
    DcTable table;
    ASSERT_TRUE(build_dc_table(code.spec(), table));
    for (uint32_t w = 0; w < 1u << kDcBits; ++w) {
      const Step one = step(code.spec(), {w, kDcBits}, kMaxPairBits);
      const uint64_t value = static_cast<uint16_t>(one.value);
      const uint64_t expected = one.bits == 0
                                    ? 0
                                    : static_cast<uint64_t>(one.bits) | value << 16 | value << 32 |
                                          static_cast<uint64_t>(64 - one.bits) << 48;
      ASSERT_EQ(table.lookup[w], expected) << trial << " window " << w;
    }
  }
}

}  // namespace
}  // namespace stoker
