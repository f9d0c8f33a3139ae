#include <algorithm>
#include <cstring>

#include "decode/jpeg/huffman_tables.h"

namespace stoker {
namespace {

constexpr int kWindowBits = std::max(kMaxAcBits, kSkipBits);
constexpr uint32_t kMaxPairs = 1u << kMaxAcBits, kSkips = 1u << kSkipBits;
constexpr uint64_t kBothAdvances = 1u << 8 | uint64_t{1} << 56;
constexpr uint64_t kFirstValue = uint64_t{0xFFFF} << 16, kSecondValue = uint64_t{0xFFFF} << 32;
constexpr uint64_t kOneInFirst = uint64_t{1} << 16, kOneInSecond = uint64_t{1} << 32;
constexpr uint64_t kOneInBoth = kOneInFirst | kOneInSecond;
// The most that a skip entry without an end-of-block may advance. With this limit, the end position
// shows whether an end-of-block followed, and whether a symbol was found at all.
constexpr int kMaxSkipped = kNoSymbol - kEndOfBlock - 1;
static_assert(kBlockEnd - 1 + kMaxSkipped < kEndOfBlock);

// Skip entries are written eight at once, as two words of four: compilers make one vector of them.
constexpr uint32_t kChunk = 8;
constexpr uint64_t kFour = 0x0001000100010001;
constexpr uint64_t kAdvances = ((kEndOfBlock - 1) << 8) * kFour;  // except at ends of blocks

struct Symbol {
  uint8_t code_bits;
  uint8_t size;  // bits of the value
  uint8_t advance;
  uint64_t skip;  // the skip entry of this symbol alone, in all four places of a word

  uint32_t bits() const { return uint32_t{code_bits} + size; }
  uint32_t sign_end() const { return uint32_t{code_bits} + (size > 0 ? 1 : 0); }
  bool is_end() const { return advance >= kEndOfBlock; }
};

// The values that the first `known` of their `size` bits can have, with the other bits 0. Half of
// them go up from the smallest value, half from the smallest positive one, with the same step.
struct Values {
  Values(int known, int size)
      : halves(known > 0 ? 2 : 1),
        count(known > 0 ? 1u << (known - 1) : 1),
        step(1u << (size - known)) {
    if (known == 0) return;
    first[0] = static_cast<uint16_t>(1 - (1 << size));
    first[1] = static_cast<uint16_t>(1 << (size - 1));
  }
  int halves;
  uint32_t count;  // of a half
  uint64_t step;
  uint64_t first[2] = {};
};

// Returns an entry of AcTable::pair without the advances and values.
uint64_t pair_bits(uint32_t bits) { return bits | uint64_t{(64 - bits) % 64} << 48; }

// Returns an entry for windows whose code has at least `shortest` bits and does not fit.
uint64_t no_symbol(uint32_t shortest) {
  return kNoSymbol * kBothAdvances | uint64_t{shortest} << 16;
}

// Writes `count` entries for each of `values`, which are added to `entry` in units of `unit`.
void fill_values(uint64_t entry, const Values& values, uint64_t unit, uint32_t count,
                 uint64_t* to) {
  for (int half = 0; half < values.halves; ++half) {
    uint64_t next = entry + values.first[half] * unit;
    const uint64_t step = values.step * unit;
    if (count == 1) {
      for (uint32_t i = 0; i < values.count; ++i) to[i] = next + i * step;
      to += values.count;
      continue;
    }
    for (uint32_t i = 0; i < values.count; ++i, next += step) {
      for (uint32_t j = 0; j < count; j += 2) to[j] = to[j + 1] = next;
      to += count;
    }
  }
}

// Makes both lookups of a table. What follows a symbol in its window depends only on how many bits
// are left. So it is computed once for each number of bits, and copied to every symbol that leaves
// so many. Symbols come in the order of their codes, so their entries are adjacent, and values
// written past the end of one symbol's entries are overwritten by the next one's.
class LookupBuilder {
 public:
  LookupBuilder(const HuffmanSpec& spec, int pair_bits)
      : pair_bits_(static_cast<uint32_t>(pair_bits)) {
    const uint8_t* value = spec.values;
    Symbol* symbol = symbols_;
    for (int n = 1; n <= kWindowBits; ++n) {
      for (int i = 0; i < spec.counts[n - 1]; ++i, ++value) {
        *symbol = {static_cast<uint8_t>(n), static_cast<uint8_t>(*value & 15),
                   static_cast<uint8_t>(ac_advance(*value)), 0};
        symbol->skip = (uint64_t{symbol->advance} << 8 | symbol->bits()) * kFour;
        ++symbol;
      }
      upto_[n] = symbol;
    }
  }

  void fill_pairs(uint64_t* to) {
    uint64_t* const end = to + (1u << pair_bits_);
    for (const Symbol* first = symbols_; first < upto_[pair_bits_]; ++first) {
      const uint32_t span = 1u << (pair_bits_ - first->code_bits);
      if (first->sign_end() <= pair_bits_ && first->bits() <= kMaxPairBits) {
        fill_pairs_of(*first, to, span);
      } else {
        std::fill_n(to, span, no_symbol(first->code_bits));
      }
      to += span;
    }
    std::fill(to, end, no_symbol(pair_bits_ + 1));
  }

  void fill_skips(uint16_t* to) {
    std::fill_n(skips_ + level_of(0), kChunk, uint16_t{0});
    uint32_t most = 0;
    for (const Symbol* symbol = symbols_; symbol < upto_[kSkipBits]; ++symbol) {
      most = std::max(most, left_behind(*symbol, kSkipBits));
    }
    for (uint32_t left = 1; left <= most; ++left) {
      uint16_t* const level = skips_ + level_of(left);
      find_skips(left, 0);
      for (uint32_t i = 1u << left; i < kChunk; ++i) level[i] = level[i - (1u << left)];
    }
    find_skips(kSkipBits, kNoSymbol << 8);
    std::memcpy(to, skips_ + level_of(kSkipBits), kSkips * sizeof *to);
  }

 private:
  // The start of the entries for `left` remaining bits; they are repeated to at least a chunk.
  static constexpr uint32_t level_of(uint32_t left) {
    static_assert(kChunk == 8);
    return left < 3 ? left * kChunk : (1u << left) + 2 * kChunk;
  }

  // Returns how many bits of a window are left for other symbols of the block.
  static uint32_t left_behind(const Symbol& symbol, uint32_t window) {
    return !symbol.is_end() && symbol.bits() < window ? window - symbol.bits() : 0;
  }

  void fill_pairs_of(const Symbol& first, uint64_t* to, uint32_t span) {
    const uint64_t alone = pair_bits(first.bits()) + first.advance * kBothAdvances;
    if (first.is_end()) {
      std::fill_n(to, span, alone);
      return;
    }
    const int known = std::min<int>(first.size, static_cast<int>(pair_bits_) - first.code_bits);
    const Values values(known, first.size);
    const uint32_t run = span >> known;
    if (run == 1) {
      fill_values(alone, values, kOneInBoth, 1, to);
      return;
    }
    if (!has_pairs_[first.bits()]) find_pairs(first.bits());
    for (int half = 0; half < values.halves; ++half) {
      uint64_t value = values.first[half] * kOneInBoth;
      for (uint32_t i = 0; i < values.count; ++i, to += run, value += values.step * kOneInBoth) {
        put_pairs(first.advance * kBothAdvances, value, next_pairs_ + run, first_values_ + run, run,
                  to);
      }
    }
  }

  static void put_pairs(uint64_t advances, uint64_t value, const uint64_t* __restrict next,
                        const uint64_t* __restrict mask, uint32_t run, uint64_t* __restrict to) {
    for (uint32_t j = 0; j < run; j += 2) {
      to[j] = (next[j] + advances) | (value & mask[j]);
      to[j + 1] = (next[j + 1] + advances) | (value & mask[j + 1]);
    }
  }

  // Finds what can follow a first symbol of `bits` bits: another symbol, or none that fits.
  void find_pairs(uint32_t bits) {
    const uint32_t left = pair_bits_ - bits, run = 1u << left;
    has_pairs_[bits] = true;
    uint64_t* to = next_pairs_ + run;
    uint64_t* mask = first_values_ + run;
    uint64_t *const end = to + run, *const mask_end = mask + run;
    for (const Symbol* second = symbols_; second < upto_[left]; ++second) {
      const uint32_t span = 1u << (left - second->code_bits);
      const bool fits = second->sign_end() <= left && bits + second->bits() <= kMaxPairBits;
      std::fill_n(mask, span, fits ? kFirstValue : kFirstValue | kSecondValue);
      if (fits) {
        const int known = std::min<int>(second->size, static_cast<int>(left) - second->code_bits);
        fill_values(pair_bits(bits + second->bits()) | uint64_t{second->advance} << 56,
                    Values(known, second->size), kOneInSecond, span >> known, to);
      } else {
        std::fill_n(to, span, pair_bits(bits));
      }
      to += span;
      mask += span;
    }
    std::fill(to, end, pair_bits(bits));
    std::fill(mask, mask_end, kFirstValue | kSecondValue);
  }

  // Finds the entries with as many symbols as begin in the next `left` bits. REQUIRES: the entries
  // of all smaller numbers were found.
  void find_skips(uint32_t left, uint16_t nothing) {
    uint16_t* to = skips_ + level_of(left);
    uint16_t* const end = to + (1u << left);
    for (const Symbol* symbol = symbols_; symbol < upto_[left]; ++symbol) {
      const uint32_t span = 1u << (left - symbol->code_bits);
      const uint32_t behind = left_behind(*symbol, left);
      const uint16_t* from = skips_ + level_of(behind);
      const uint32_t mask = std::max(1u << behind, kChunk) - 1;
      const uint64_t skip = symbol->skip;
      const uint64_t more = (skip & kAdvances) + ((127 - kMaxSkipped) << 8) * kFour;
      for (uint32_t i = 0; i < span; i += kChunk) put_skips(skip, more, from + (i & mask), to + i);
      to += span;
    }
    std::fill(to, end, nothing);
  }

  // Puts a symbol before the entries of a chunk, four in each word. Where both together advance too
  // far, the second is left out: its advance and 64 + the first's then reach the top bit.
  static void put_skips(uint64_t skip, uint64_t more, const uint16_t* next, uint16_t* to) {
    uint64_t words[kChunk / 4];
    std::memcpy(words, next, sizeof words);
    for (uint64_t& word : words) {
      const uint64_t top = ((word & kAdvances) + more) >> 15 & kFour;
      word = skip + (word & ~((top << 16) - top));
    }
    std::memcpy(to, words, sizeof words);
  }

  Symbol symbols_[256];
  const Symbol* upto_[kWindowBits + 1];
  uint64_t next_pairs_[kMaxPairs];
  uint64_t first_values_[kMaxPairs];  // masks: which values belong to the first symbol
  uint16_t skips_[2 * kSkips + 3 * kChunk];
  bool has_pairs_[kMaxAcBits] = {};
  const uint32_t pair_bits_;
};

}  // namespace

void fill_dc_lookup(const HuffmanSpec& spec, DcTable& table) {
  std::fill_n(table.lookup, 1 << kDcBits, 0);
  for_each_code(spec, kDcBits, [&](uint32_t at, uint32_t span, int code_bits, uint8_t size) {
    const uint32_t bits = static_cast<uint32_t>(code_bits) + size;
    if (bits > kMaxPairBits || (size > 0 && code_bits == kDcBits)) return;
    const int known = std::min<int>(size, kDcBits - code_bits);
    fill_values(pair_bits(bits), Values(known, size), kOneInBoth, span >> known, table.lookup + at);
  });
  uint16_t* skip = table.skip;
  for_each_code(spec, kSkipBits, [&](uint32_t, uint32_t span, int code_bits, uint8_t size) {
    skip = std::fill_n(skip, span, static_cast<uint16_t>(kEndOfBlock << 8 | (code_bits + size)));
  });
  std::fill(skip, table.skip + kSkips, uint16_t{kNoSymbol << 8});
}

void fill_ac_lookups(const HuffmanSpec& spec, AcTable& table) {
  LookupBuilder builder(spec, table.pair_bits);
  builder.fill_pairs(table.pair);
  builder.fill_skips(table.skip);
}

}  // namespace stoker
