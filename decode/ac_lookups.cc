#include "decode/ac_lookups.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr int kWindowBits = std::max(kAcBits, kSkipBits);
constexpr uint32_t kPairs = 1u << kAcBits, kSkips = 1u << kSkipBits;
constexpr uint64_t kBothAdvances = 1u << 8 | uint64_t{1} << 56;
constexpr uint64_t kFirstValue = uint64_t{0xFFFF} << 16, kSecondValue = uint64_t{0xFFFF} << 32;
constexpr uint64_t kBothValues = uint64_t{0x00010001} << 16;
// What a skip entry advances by without an end-of-block: so little that one behind it can be told
// from it, and from no symbol.
constexpr uint32_t kMostSkipped = kNoSymbol - kEndOfBlock - 1;
static_assert(kBlockEnd - 1 + kMostSkipped < kEndOfBlock);

// The symbol whose code begins a window, for every value of the window.
struct Symbol {
  uint8_t code_bits = 64;  // such a symbol fits nowhere
  uint8_t size = 0;        // bits of the value
  uint8_t advance = 0;

  uint32_t bits() const { return uint32_t{code_bits} + size; }
  uint32_t sign_end() const { return uint32_t{code_bits} + (size > 0 ? 1 : 0); }
  bool is_end() const { return advance >= kEndOfBlock; }
};

// A value whose first `known` bits of `size` are `raw`, as if the others were 0.
uint16_t value_of(uint32_t raw, int known, int size) {
  const uint32_t below = known > 0 && raw >> (known - 1) == 0 ? (1u << size) - 1 : 0;
  return static_cast<uint16_t>((raw << (size - known)) - below);
}

// An entry of AcTable::pair, but for the advances and values.
uint64_t pair_bits(uint32_t bits) { return bits | uint64_t{(64 - bits) % 64} << 48; }

// Makes both lookups of a table. What follows a symbol in its window depends only on how many bits
// are left. So it is found once for each number of bits, and put behind every symbol that leaves so
// many: a fifth of the work of looking at every entry.
class LookupBuilder {
 public:
  LookupBuilder(const HuffmanSpec& spec, AcTable& table) : spec_(spec), table_(table) {
    for_each_code(spec, kWindowBits, [&](uint32_t at, uint32_t span, int bits, uint8_t symbol) {
      std::fill_n(symbols_ + at, span,
                  Symbol{static_cast<uint8_t>(bits), static_cast<uint8_t>(symbol & 15),
                         static_cast<uint8_t>(ac_advance(symbol))});
    });
  }

  void fill_pairs() {
    std::fill_n(table_.pair, kPairs, kNoSymbol * kBothAdvances);
    for_each_code(spec_, kAcBits, [&](uint32_t at, uint32_t span, int, uint8_t) {
      const Symbol& first = symbols_[at << (kWindowBits - kAcBits)];
      if (first.sign_end() <= kAcBits && first.bits() <= kMaxPairBits) {
        fill_pairs_of(first, table_.pair + at, span);
      }
    });
  }

  void fill_skips() {
    uint32_t most = 0;
    for_each_code(spec_, kSkipBits, [&](uint32_t at, uint32_t, int, uint8_t) {
      most = std::max(most, left_behind(symbols_[at << (kWindowBits - kSkipBits)], kSkipBits));
    });
    for (uint32_t left = 1; left <= most; ++left) find_skips(left);
    std::fill_n(table_.skip, kSkips, static_cast<uint16_t>(kNoSymbol << 8));
    for_each_code(spec_, kSkipBits, [&](uint32_t at, uint32_t span, int, uint8_t) {
      const Symbol& first = symbols_[at << (kWindowBits - kSkipBits)];
      const uint32_t run = 1u << left_behind(first, kSkipBits);
      uint16_t* const to = table_.skip + at;
      if (run == 1) {
        std::fill_n(to, span, skip_with(first, 0));
        return;
      }
      for (uint32_t j = 0; j < run; ++j) to[j] = skip_with(first, next_skips_[run + j]);
      for (uint32_t i = run; i < span; i += run) std::copy_n(to, run, to + i);
    });
  }

 private:
  // How many bits of a window a symbol leaves to others of its block.
  static uint32_t left_behind(const Symbol& symbol, uint32_t window) {
    return !symbol.is_end() && symbol.bits() < window ? window - symbol.bits() : 0;
  }

  void fill_pairs_of(const Symbol& first, uint64_t* to, uint32_t span) {
    const int known = std::min<int>(first.size, kAcBits - first.code_bits);
    const uint64_t alone = pair_bits(first.bits()) + first.advance * kBothAdvances;
    if (first.is_end()) {
      std::fill_n(to, span, alone);
      return;
    }
    const uint32_t run = span >> known;
    if (run > 1 && !has_pairs_[first.bits()]) find_pairs(first.bits());
    for (uint32_t raw = 0; raw < 1u << known; ++raw, to += run) {
      const uint64_t value = value_of(raw, known, first.size) * kBothValues;
      if (run == 1) {
        *to = alone | value;
        continue;
      }
      for (uint32_t j = 0; j < run; ++j) {
        to[j] = (next_pairs_[run + j] + first.advance * kBothAdvances) |
                (value & first_values_[run + j]);
      }
    }
  }

  // What stands behind a first symbol of `bits` bits: another one, or nothing that fits.
  void find_pairs(uint32_t bits) {
    const int left = kAcBits - static_cast<int>(bits);
    const uint32_t run = 1u << left;
    has_pairs_[bits] = true;
    for (uint32_t j = 0; j < run; ++j) {
      const Symbol& second = symbols_[j << (kWindowBits - left)];
      const bool fits =
          second.sign_end() <= static_cast<uint32_t>(left) && bits + second.bits() <= kMaxPairBits;
      first_values_[run + j] = fits ? kFirstValue : kFirstValue | kSecondValue;
      next_pairs_[run + j] = pair_bits(bits);
      if (!fits) continue;
      const int known = std::min<int>(second.size, left - second.code_bits);
      const uint32_t raw = j >> (left - second.code_bits - known) & ((1u << known) - 1);
      next_pairs_[run + j] = pair_bits(bits + second.bits()) | uint64_t{second.advance} << 56 |
                             uint64_t{value_of(raw, known, second.size)} << 32;
    }
  }

  static uint16_t skip_with(const Symbol& first, uint32_t next) {
    const bool fits = first.advance + (next >> 8 & (kEndOfBlock - 1)) <= kMostSkipped;
    return static_cast<uint16_t>((uint32_t{first.advance} << 8 | first.bits()) + (fits ? next : 0));
  }

  // As many symbols as begin in the next `left` bits. REQUIRES: all smaller numbers were found.
  void find_skips(uint32_t left) {
    const uint32_t run = 1u << left;
    for (uint32_t j = 0; j < run; ++j) {
      const Symbol& symbol = symbols_[j << (kWindowBits - left)];
      if (symbol.code_bits > left) continue;
      const uint32_t rest = 1u << left_behind(symbol, left);
      next_skips_[run + j] = skip_with(symbol, next_skips_[rest + (j & (rest - 1))]);
    }
  }

  const HuffmanSpec& spec_;
  AcTable& table_;
  Symbol symbols_[1 << kWindowBits];
  // What follows when n bits are left lies at [2^n, 2^(n + 1)).
  uint64_t next_pairs_[kPairs];
  uint64_t first_values_[kPairs];  // which values are the first symbol's
  uint16_t next_skips_[kSkips] = {};
  bool has_pairs_[kAcBits] = {};
};

}  // namespace

void fill_dc_lookup(const HuffmanSpec& spec, DcTable& table) {
  std::fill_n(table.lookup, 1 << kDcBits, 0);
  for_each_code(spec, kDcBits, [&](uint32_t at, uint32_t span, int code_bits, uint8_t size) {
    const uint32_t bits = static_cast<uint32_t>(code_bits) + size;
    if (bits > kMaxPairBits || (size > 0 && code_bits == kDcBits)) return;
    const int known = std::min<int>(size, kDcBits - code_bits);
    const uint32_t run = span >> known;
    for (uint32_t raw = 0; raw < 1u << known; ++raw) {
      const uint64_t value = value_of(raw, known, size) * kBothValues;
      std::fill_n(table.lookup + at + raw * run, run, pair_bits(bits) | value);
    }
  });
}

void fill_ac_lookups(const HuffmanSpec& spec, AcTable& table) {
  LookupBuilder builder(spec, table);
  builder.fill_pairs();
  builder.fill_skips();
}

}  // namespace stoker
