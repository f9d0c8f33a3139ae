#include "decode/jpeg/huffman_tables.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace stoker {

int best_ac_bits() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  constexpr long kRoomyCache = 48 << 10;
  static const bool is_roomy = sysconf(_SC_LEVEL1_DCACHE_SIZE) >= kRoomyCache;
  return is_roomy ? kMaxAcBits : kAcBits;
#else
  return kAcBits;
#endif
}

// As in libjpeg, no code may be all ones.
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

bool build_dc_table(const HuffmanSpec& spec, DcTable& table) {
  if (!build_code(spec, table.code)) return false;
  for (int i = 0; i < spec.value_count; ++i) {
    if (spec.values[i] > 15) return false;
  }
  fill_dc_lookup(spec, table);
  return true;
}

bool build_ac_table(const HuffmanSpec& spec, AcTable& table) {
  if (!build_code(spec, table.code)) return false;
  fill_ac_lookups(spec, table);
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

HuffmanCache::HuffmanCache(int ac_bits)
    : ac_bits_(ac_bits),
      dc_(std::make_unique<Slots<DcTable>>()),
      ac_(std::make_unique<Slots<AcTable>>()) {}
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
  return find(*ac_, spec, [this](const HuffmanSpec& code, AcTable& table) {
    table.pair_bits = ac_bits_;
    return build_ac_table(code, table);
  });
}

int64_t HuffmanCache::scratch_bytes() const {
  int64_t bytes = sizeof *dc_ + sizeof *ac_;
  for (const auto& slot : dc_->slots) bytes += slot.table != nullptr ? sizeof(DcTable) : 0;
  for (const auto& slot : ac_->slots) bytes += slot.table != nullptr ? sizeof(AcTable) : 0;
  return bytes;
}

}  // namespace stoker
