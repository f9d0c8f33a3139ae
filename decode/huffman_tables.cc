#include "decode/huffman_tables.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

// Assigns the codes. As libjpeg: no code may be all ones.
bool build_code(const HuffmanSpec& spec, CanonicalCode& code) {
  uint32_t next = 0;
  int used = 0;
  for (int n = 1; n <= 16; ++n) {
    code.offset[n] = used - static_cast<int>(next);
    next += spec.counts[n - 1];
    used += spec.counts[n - 1];
    if (spec.counts[n - 1] != 0 && next >= (1u << n)) return false;
    code.end[n] = next << (16 - n);
    next <<= 1;
  }
  std::memcpy(code.values, spec.values, static_cast<size_t>(spec.value_count));
  return true;
}

// Calls fill(first entry, how many, bits of the code, symbol) for every code of at most `bits`
// bits.
template <class Fill>
void for_each_code(const HuffmanSpec& spec, int bits, const Fill& fill) {
  uint32_t at = 0;
  const uint8_t* value = spec.values;
  for (int n = 1; n <= bits; ++n) {
    const uint32_t span = 1u << (bits - n);
    for (int i = 0; i < spec.counts[n - 1]; ++i, at += span) fill(at, span, n, *value++);
  }
}

// One symbol, for every value of the next 11 bits. Numbers of bits that a sum of bits shall never
// fit with are kNever.
struct alignas(8) Single {
  uint8_t code_end = kNever;  // bits of the code
  uint8_t sign_end = kNever;  // with the first bit of the value, if it has any
  uint8_t bits = 0;           // with all of the value, which may lie behind the window
  uint8_t next = kNever;      // where another symbol begins: `bits`, or kNever after end-of-block
  uint8_t advance = kNoSymbol;
  uint16_t value = 0;  // as if unknown bits were 0

  static constexpr uint8_t kNever = 64;
};

constexpr uint32_t kWindow = 1u << kAcBits;
constexpr uint32_t kNoPair = kNoSymbol << 8 | kNoSymbol << 16;
static_assert(kSkipBits == kAcBits, "both tables are made from the same single symbols");

// REQUIRES: `single` is as constructed.
void fill_singles(const HuffmanSpec& spec, Single* single) {
  for_each_code(spec, kAcBits, [&](uint32_t at, uint32_t span, int code_bits, uint8_t symbol) {
    const int size = symbol & 15;
    const int known = std::min(size, kAcBits - code_bits);
    Single entry;
    entry.code_end = static_cast<uint8_t>(code_bits);
    entry.sign_end = static_cast<uint8_t>(code_bits + (size > 0 ? 1 : 0));
    entry.bits = static_cast<uint8_t>(code_bits + size);
    entry.advance = static_cast<uint8_t>(ac_advance(symbol));
    entry.next = entry.advance < kEndOfBlock ? entry.bits : Single::kNever;
    // The entries of a code are cut into runs by what is known of the value.
    const uint32_t run = span >> known;
    for (uint32_t raw = 0; raw < 1u << known; ++raw, at += run) {
      const uint32_t below = known > 0 && raw >> (known - 1) == 0 ? (1u << size) - 1 : 0;
      entry.value = static_cast<uint16_t>((raw << (size - known)) - below);
      std::fill_n(single + at, run, entry);
    }
  });
}

// All ones if a <= b. No branches below: which symbols fit is as good as random.
uint32_t mask_if_at_most(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(static_cast<int32_t>(a - b - 1) >> 31);
}

// Both tables in one go, from up to three symbols in a row.
void fill_lookups(const Single* single, AcTable& table) {
  for (uint32_t i = 0; i < kWindow; ++i) {
    const Single& a = single[i];
    const Single& b = single[(i << a.bits) & (kWindow - 1)];
    const uint32_t has_b = mask_if_at_most(uint32_t{a.next} + b.sign_end, kAcBits) &
                           mask_if_at_most(uint32_t{a.bits} + b.bits, kMaxPairBits);
    const uint32_t bits = a.bits + (b.bits & has_b);
    const uint32_t advance = a.advance + (b.advance & has_b);
    const uint32_t value_b = a.value ^ ((a.value ^ b.value) & has_b);
    const uint32_t behind = (bits - kAcBits) & ~mask_if_at_most(bits, kAcBits);
    const uint32_t where = bits | uint32_t{a.advance} << 8 | advance << 16 | (63 - behind) << 24;
    const uint32_t values = a.value | value_b << 16;
    const uint32_t has_a =
        mask_if_at_most(a.sign_end, kAcBits) & mask_if_at_most(a.bits, kMaxPairBits);
    table.pair[i] = (where & has_a) | (kNoPair & ~has_a) | uint64_t{values & has_a} << 32;

    const uint32_t skips_b = mask_if_at_most(uint32_t{a.next} + b.code_end, kSkipBits);
    const uint32_t skip_bits = a.bits + (b.bits & skips_b);
    const uint32_t next = a.next + (b.next & skips_b);
    const Single& c = single[(i << skip_bits) & (kWindow - 1)];
    const uint32_t skips_c = skips_b & mask_if_at_most(next + c.code_end, kSkipBits);
    const uint32_t skip_advance = a.advance + (b.advance & skips_b) + (c.advance & skips_c);
    table.skip[i] = static_cast<uint16_t>(skip_advance << 8 | (skip_bits + (c.bits & skips_c)));
  }
}

}  // namespace

bool build_dc_table(const HuffmanSpec& spec, DcTable& table) {
  if (!build_code(spec, table.code)) return false;
  for (int i = 0; i < spec.value_count; ++i) {
    if (spec.values[i] > 15) return false;
  }
  std::memset(table.entry, 0, sizeof table.entry);
  for_each_code(spec, kDcBits, [&](uint32_t at, uint32_t span, int code_bits, uint8_t value_bits) {
    std::fill_n(table.entry + at, span, static_cast<uint16_t>(code_bits << 8 | value_bits));
  });
  return true;
}

bool build_ac_table(const HuffmanSpec& spec, AcTable& table) {
  if (!build_code(spec, table.code)) return false;
  Single single[kWindow];
  fill_singles(spec, single);
  fill_lookups(single, table);
  return true;
}

template <class Table>
struct HuffmanCache::Slots {
  static constexpr int kSlots = 8;  // an image needs up to three; data sets share a few
  struct Slot {
    int value_count = -1;  // -1: empty
    int64_t used = 0;
    uint8_t counts[16];
    uint8_t values[256];
    std::unique_ptr<Table> table;

    bool holds(const HuffmanSpec& spec) const {
      return value_count == spec.value_count &&
             std::memcmp(counts, spec.counts, sizeof counts) == 0 &&
             std::memcmp(values, spec.values, static_cast<size_t>(value_count)) == 0;
    }
  };
  Slot slots[kSlots];
  int64_t clock = 0;
};

HuffmanCache::HuffmanCache()
    : dc_(std::make_unique<Slots<DcTable>>()), ac_(std::make_unique<Slots<AcTable>>()) {}
HuffmanCache::~HuffmanCache() = default;

template <class Table, class Build>
const Table* HuffmanCache::find(Slots<Table>& all, const HuffmanSpec& spec, const Build& build) {
  auto* oldest = &all.slots[0];
  for (auto& slot : all.slots) {
    if (slot.holds(spec)) {
      slot.used = ++all.clock;
      return slot.table.get();
    }
    if (slot.used < oldest->used) oldest = &slot;
  }
  if (oldest->table == nullptr) oldest->table = std::make_unique<Table>();
  oldest->value_count = -1;
  ++builds_;
  if (!build(spec, *oldest->table)) return nullptr;
  oldest->value_count = spec.value_count;
  oldest->used = ++all.clock;
  std::memcpy(oldest->counts, spec.counts, sizeof oldest->counts);
  std::memcpy(oldest->values, spec.values, static_cast<size_t>(spec.value_count));
  return oldest->table.get();
}

const DcTable* HuffmanCache::dc(const HuffmanSpec& spec) {
  return find(*dc_, spec, build_dc_table);
}

const AcTable* HuffmanCache::ac(const HuffmanSpec& spec) {
  return find(*ac_, spec, build_ac_table);
}

int64_t HuffmanCache::scratch_bytes() const {
  int64_t bytes = sizeof *dc_ + sizeof *ac_;
  for (const auto& slot : dc_->slots) bytes += slot.table != nullptr ? sizeof(DcTable) : 0;
  for (const auto& slot : ac_->slots) bytes += slot.table != nullptr ? sizeof(AcTable) : 0;
  return bytes;
}

}  // namespace stoker
