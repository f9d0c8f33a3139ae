#include "decode/codec/inflate.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "decode/codec/checksums.h"

namespace stoker {
namespace {

constexpr size_t kWindow = 32768;  // how far back a match may begin
constexpr size_t kStep = 65536;    // bytes that are decoded at once, where so many are wanted
constexpr size_t kMaxMatch = 258;  // bytes of a match
constexpr size_t kMatchCopy = 16;  // bytes that are copied at once
constexpr size_t kWindowSpare = kMaxMatch + 4 * kMatchCopy;  // what may be written behind a limit
constexpr ptrdiff_t kFastInput = 32;  // bytes that the fast loop reads without looking, at most

// An entry of a table says what the next bits are.
//   bits 0-7    how many bits there are, extra bits included
//   bit 31      whether they are literals: bits 24-25 say how many, bits 8-15 and 16-23 have them
// and if they are no literals:
//   bits 8-11   how many of the bits are the code; the others are extra bits
//   bits 12-27  the least length or distance; of a link, where its subtable begins
//   bits 28-29  the kind; of a link, bits 8-11 say how many bits the subtable is looked up with
constexpr uint32_t kLiteral = 1u << 31, kOne = 1u << 24, kTwo = 2u << 24;
constexpr uint32_t kValue = 0u << 28, kLink = 1u << 28, kEndsBlock = 2u << 28, kBad = 3u << 28;
constexpr uint32_t kKind = 3u << 28;

constexpr bool is_literal(uint32_t entry) { return (entry & kLiteral) != 0; }
constexpr uint32_t bits_of(uint32_t entry) { return entry & 0xff; }
constexpr uint32_t literals_of(uint32_t entry) { return entry >> 24 & 3; }
constexpr uint32_t code_bits_of(uint32_t entry) { return entry >> 8 & 15; }
constexpr uint32_t base_of(uint32_t entry) { return entry >> 12 & 0xffff; }

constexpr uint64_t low_bits(uint64_t bits, uint32_t count) {
  return bits & ((uint64_t{1} << count) - 1);
}

uint64_t load64(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

// The meaning of a symbol, as an entry that lacks its code.
struct SymbolEntries {
  constexpr SymbolEntries() {
    for (uint32_t s = 0; s < 256; ++s) literals[s] = kLiteral | kOne | s << 8;
    literals[256] = kEndsBlock;
    uint32_t base = 3;
    for (uint32_t s = 257; s < 285; ++s) {
      const uint32_t extra = s < 265 ? 0 : (s - 261) / 4;
      literals[s] = kValue | base << 12 | extra;
      base += 1u << extra;
    }
    literals[285] = kValue | 258u << 12;
    literals[286] = literals[287] = kBad;
    base = 1;
    for (uint32_t s = 0; s < 30; ++s) {
      const uint32_t extra = s < 4 ? 0 : s / 2 - 1;
      distances[s] = kValue | base << 12 | extra;
      base += 1u << extra;
    }
    distances[30] = distances[31] = kBad;
  }
  uint32_t literals[288] = {};
  uint32_t distances[32] = {};
};
constexpr SymbolEntries kSymbols;

// The entry of a symbol whose code has `length` bits: literals do not say it apart.
constexpr uint32_t with_code(uint32_t symbol, uint32_t length) {
  return is_literal(symbol) ? symbol + length : symbol + (length << 8) + length;
}

// A code is read from its first bit on, which is the lowest of the stream; so canonical codes count
// upwards from their highest bit. Returns the code of `length` bits after this one.
constexpr uint32_t next_code(uint32_t code, int length) {
  uint32_t bit = 1u << (length - 1);
  while ((code & bit) != 0) bit >>= 1;
  return bit == 0 ? 0 : (code & (bit - 1)) | bit;
}

// Builds the lookup table of a Huffman code.
class TableBuilder {
 public:
  TableBuilder(std::span<const uint8_t> lengths, const uint32_t* symbols) : symbols_(symbols) {
    for (const uint8_t length : lengths) ++counts_[length];
    uint16_t places[kMax + 1];
    for (int length = 1, at = 0; length <= kMax; ++length) {
      places[length] = static_cast<uint16_t>(at);
      at += counts_[length];
    }
    for (size_t s = 0; s < lengths.size(); ++s) {
      if (lengths[s] != 0) sorted_[places[lengths[s]]++] = static_cast<uint16_t>(s);
    }
    codes_ = static_cast<int>(lengths.size()) - counts_[0];
  }

  // Returns false if the lengths are those of no code: too many short codes, or, as in zlib, too
  // few. A single code of one bit is allowed, and none at all; unused bits are then kBad.
  bool is_possible(bool may_be_single) const {
    int left = 1;
    for (int length = 1; length <= kMax; ++length) {
      left = 2 * left - counts_[length];
      if (left < 0) return false;
    }
    return left == 0 || (may_be_single && codes_ == counts_[1]);
  }

  // REQUIRES: is_possible(); the table has room for the subtables.
  void build(uint32_t* table, int table_bits) const {
    size_t filled = 2;  // the table is built for codes of one bit, then doubled for each longer one
    table[0] = table[1] = kBad;
    uint32_t code = 0;
    const uint16_t* symbol = sorted_;
    for (int length = 1; length <= table_bits; ++length) {
      for (int i = 0; i < counts_[length]; ++i) {
        table[code] = with_code(symbols_[*symbol++], static_cast<uint32_t>(length));
        code = next_code(code, length);
      }
      if (length == table_bits) break;
      std::memcpy(table + filled, table, filled * sizeof *table);
      filled *= 2;
    }
    build_subtables(symbol, code, table, table_bits);
  }

 private:
  static constexpr int kMax = 15;

  // Codes that are longer than the table's lookups stand in order, so those that begin with the
  // same bits are neighbours, and the last of them is the longest.
  void build_subtables(const uint16_t* symbol, uint32_t code, uint32_t* table,
                       int table_bits) const {
    const uint32_t mask = (1u << table_bits) - 1;
    uint32_t at = 1u << table_bits;
    const uint16_t* const end = sorted_ + codes_;
    int length = table_bits + 1;
    int used = 0;  // of the codes of this length
    const auto skip_empty = [&] {
      while (length <= kMax && used == counts_[length]) ++length, used = 0;
    };
    skip_empty();
    while (symbol < end) {
      const uint32_t prefix = code & mask;
      const int longest = longest_from(length, used, code, mask);
      const uint32_t sub_bits = static_cast<uint32_t>(longest - table_bits);
      table[prefix] = kLink | at << 12 | sub_bits << 8 | static_cast<uint32_t>(table_bits);
      while (symbol < end && (code & mask) == prefix) {
        const uint32_t entry = with_code(symbols_[*symbol++], static_cast<uint32_t>(length));
        const uint32_t step = 1u << (length - table_bits);
        for (uint32_t i = code >> table_bits; i < 1u << sub_bits; i += step) table[at + i] = entry;
        code = next_code(code, length);
        ++used;
        skip_empty();
      }
      at += 1u << sub_bits;
    }
  }

  // Returns the length of the last code that begins with the same bits as this one.
  int longest_from(int length, int used, uint32_t code, uint32_t mask) const {
    const uint32_t prefix = code & mask;
    int longest = length;
    while (length <= kMax) {
      if (used == counts_[length]) {
        ++length;
        used = 0;
        continue;
      }
      if ((code & mask) != prefix) break;
      longest = length;
      code = next_code(code, length);
      ++used;
    }
    return longest;
  }

  const uint32_t* const symbols_;
  int counts_[kMax + 1] = {};
  int codes_ = 0;
  uint16_t sorted_[288];  // the symbols that have codes, in the order of these
};

// Joins a literal with the literal that follows it, where the table has the bits of both.
void join_literals(uint32_t* table, int table_bits) {
  const uint32_t size = 1u << table_bits;
  // Later entries are looked up at lower indices, but for zeros; so this runs downwards.
  for (uint32_t i = size; i-- > 0;) {
    const uint32_t first = table[i];
    const uint32_t second = table[i >> bits_of(first)];
    const uint32_t bits = bits_of(first) + bits_of(second);
    const bool joins =
        (first & second & kLiteral) != 0 && bits <= static_cast<uint32_t>(table_bits);
    const uint32_t joined = bits | kLiteral | kTwo | (first & 0xff00) | (second & 0xff00) << 8;
    table[i] = joins ? joined : first;
  }
}

// Copies a match whose source may overlap it. May write 4 * kMatchCopy bytes behind its end.
inline void copy_bytes(uint8_t* to, uint32_t distance, uint32_t length) {
  const uint8_t* from = to - distance;
  uint8_t* const end = to + length;
  if (distance == 1) {
    std::memset(to, *from, length);
    return;
  }
  // A pattern that is shorter than a copy is doubled until it is not.
  while (distance < kMatchCopy) {
    uint8_t pattern[kMatchCopy];
    std::memcpy(pattern, from, kMatchCopy);
    std::memcpy(to, pattern, kMatchCopy);
    to += distance;
    distance *= 2;
    if (to >= end) return;
  }
  do {
    std::memcpy(to, from, kMatchCopy);
    to += kMatchCopy;
    from += kMatchCopy;
  } while (to < end);
}

}  // namespace

void Inflater::begin(InflateInput& input, const Plan& plan) {
  input_ = &input;
  in_ = in_end_ = nullptr;
  bits_ = 0;
  count_ = 0;
  plan_ = plan;
  decoded_ = 0;
  room_ = kWindow + plan.most_at_once + kStep;
  begin_ = read_at_ = out_ = window_.grow(room_ + kWindowSpare);
  part_ = Part::stream_header;
  is_last_block_ = false;
  stored_left_ = 0;
  fault_ = InflateFault::none;
  has_more_ = false;
  sum_ = 1;
}

const uint8_t* Inflater::read(size_t count) {
  while (static_cast<size_t>(out_ - read_at_) < count) {
    if (part_ == Part::end || fault_ != InflateFault::none) return nullptr;
    make_room(count);
    uint8_t* const from = out_;
    const auto room = static_cast<uint64_t>(begin_ + room_ - out_);
    // A reader that wants more than it planned for gets it, byte by byte.
    const uint64_t planned = plan_.total > decoded_ ? plan_.total - decoded_ : 1;
    run(out_ + std::min(room, planned));
    decoded_ += static_cast<uint64_t>(out_ - from);
  }
  const uint8_t* bytes = read_at_;
  read_at_ += count;
  if (plan_.sums) sum_ = adler32(sum_, {bytes, count});
  return bytes;
}

// Moves what is still needed to the front if there is little room behind it.
void Inflater::make_room(size_t count) {
  // The last match may have ended behind the room.
  const ptrdiff_t room = begin_ + room_ - out_;
  if (room >= static_cast<ptrdiff_t>(std::max(count, kStep / 4))) return;
  const uint8_t* keep = out_ - begin_ > static_cast<ptrdiff_t>(kWindow) ? out_ - kWindow : begin_;
  keep = std::min<const uint8_t*>(keep, read_at_);
  std::memmove(begin_, keep, static_cast<size_t>(out_ - keep));
  read_at_ -= keep - begin_;
  out_ -= keep - begin_;
}

bool Inflater::ends_well() {
  has_more_ = read_at_ != out_;
  while (part_ != Part::end && fault_ == InflateFault::none) {
    read_at_ = out_;
    make_room(1);
    run(out_ + 1);
    has_more_ |= read_at_ != out_;
  }
  if (part_ != Part::end) return false;
  uint32_t given = 0;
  bool is_there = take(count_ % 8, discarded_);
  for (int i = 0; i < 4; ++i) {
    uint32_t byte = 0;
    is_there = is_there && take(8, byte);
    given = given << 8 | byte;
  }
  return is_there && (has_more_ || given == sum_);
}

// Decodes until `limit` is reached, up to a match behind it; or to the end, or to a fault.
void Inflater::run(uint8_t* limit) {
  while (out_ < limit && part_ != Part::end && fault_ == InflateFault::none) {
    switch (part_) {
      case Part::stream_header:
        if (read_stream_header()) part_ = Part::block_header;
        break;
      case Part::block_header:
        if (is_last_block_) {
          part_ = Part::end;
        } else if (!read_block_header() && fault_ == InflateFault::none) {
          fault_ = InflateFault::broken;
        }
        break;
      case Part::stored:
        copy_stored(limit);
        break;
      case Part::codes:
        run_fast(limit);
        if (out_ < limit && part_ == Part::codes && fault_ == InflateFault::none) run_one();
        break;
      case Part::end:
        break;
    }
  }
}

// ---- Bits, one by one

// Makes `bits` bits valid. REQUIRES: bits <= 32.
bool Inflater::fill(int bits) {
  while (count_ < bits) {
    while (in_ == in_end_) {
      std::span<const uint8_t> piece;
      if (!input_->next(piece)) return fail(InflateFault::cut_short);
      in_ = piece.data();
      in_end_ = in_ + piece.size();
    }
    bits_ |= uint64_t{*in_++} << count_;
    count_ += 8;
  }
  return true;
}

bool Inflater::take(int bits, uint32_t& value) {
  if (!fill(bits)) return false;
  value = static_cast<uint32_t>(low_bits(bits_, static_cast<uint32_t>(bits)));
  bits_ >>= bits;
  count_ -= bits;
  return true;
}

bool Inflater::fail(InflateFault fault) {
  fault_ = fault;
  return false;
}

// ---- Headers

bool Inflater::read_stream_header() {
  constexpr uint32_t kDeflate = 8, kMaxWindow = 7, kDictionary = 32;
  uint32_t method = 0, flags = 0;
  if (!take(8, method) || !take(8, flags)) return false;
  const bool is_known = method % 16 == kDeflate && method / 16 <= kMaxWindow &&
                        (256 * method + flags) % 31 == 0 && (flags & kDictionary) == 0;
  return is_known || fail(InflateFault::broken);
}

// Returns false with or without a fault: a block that cannot be is broken.
bool Inflater::read_block_header() {
  uint32_t is_last = 0, kind = 0;
  if (!take(1, is_last) || !take(2, kind)) return false;
  is_last_block_ = is_last != 0;
  if (kind == 0) {
    uint32_t length = 0, inverse = 0;
    if (!take(count_ % 8, discarded_) || !take(16, length) || !take(16, inverse)) return false;
    if ((length ^ inverse) != 0xffff) return false;
    stored_left_ = length;
    part_ = Part::stored;
    return true;
  }
  part_ = Part::codes;
  if (kind == 1) return make_fixed_tables();
  return kind == 2 && read_code_lengths();
}

bool Inflater::make_fixed_tables() {
  std::fill_n(lengths_, 144, uint8_t{8});
  std::fill_n(lengths_ + 144, 112, uint8_t{9});
  std::fill_n(lengths_ + 256, 24, uint8_t{7});
  std::fill_n(lengths_ + 280, 8, uint8_t{8});
  std::fill_n(lengths_ + kLiterals, kDistances, uint8_t{5});
  return make_tables(kLiterals, kDistances);
}

bool Inflater::read_code_lengths() {
  constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  constexpr int kMaxLiterals = 286, kMaxDistances = 30, kLengthBits = 7;
  uint32_t literals = 0, distances = 0, given = 0;
  if (!take(5, literals) || !take(5, distances) || !take(4, given)) return false;
  literals += 257;
  distances += 1;
  if (literals > kMaxLiterals || distances > kMaxDistances) return false;
  uint8_t lengths[19] = {};
  for (uint32_t i = 0; i < given + 4; ++i) {
    uint32_t length = 0;
    if (!take(3, length)) return false;
    lengths[kOrder[i]] = static_cast<uint8_t>(length);
  }
  // A symbol as an entry: its number stands where a length's base would.
  uint32_t symbols[19], table[1 << kLengthBits];
  for (uint32_t s = 0; s < 19; ++s) symbols[s] = kValue | s << 12;
  const TableBuilder builder(lengths, symbols);
  if (!builder.is_possible(false)) return false;
  builder.build(table, kLengthBits);

  const uint32_t wanted = literals + distances;
  for (uint32_t at = 0; at < wanted;) {
    uint32_t entry = 0, more = 0;
    if (!take_symbol(table, kLengthBits, entry)) return false;
    const uint32_t symbol = base_of(entry);
    if (symbol < 16) {
      lengths_[at++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && at == 0) return false;
    if (!take(symbol == 16 ? 2 : symbol == 17 ? 3 : 7, more)) return false;
    const uint32_t repeats = (symbol == 18 ? 11 : 3) + more;
    if (repeats > wanted - at) return false;
    std::fill_n(lengths_ + at, repeats, symbol == 16 ? lengths_[at - 1] : uint8_t{0});
    at += repeats;
  }
  return make_tables(literals, distances);
}

// Makes the tables from lengths_, where the distances follow the literals.
bool Inflater::make_tables(size_t literals, size_t distances) {
  constexpr size_t kEnd = 256;
  if (lengths_[kEnd] == 0) return false;  // a block without an end
  const TableBuilder literal({lengths_, literals}, kSymbols.literals);
  const TableBuilder distance({lengths_ + literals, distances}, kSymbols.distances);
  if (!literal.is_possible(true) || !distance.is_possible(true)) return false;
  literal.build(literal_table_, kLiteralBits);
  join_literals(literal_table_, kLiteralBits);
  distance.build(distance_table_, kDistanceBits);
  return true;
}

// ---- Data

void Inflater::copy_stored(const uint8_t* limit) {
  if (stored_left_ == 0) {
    part_ = Part::block_header;
    return;
  }
  uint32_t byte = 0;
  if (count_ > 0 || in_ == in_end_) {  // through the bits, or to the next piece
    if (!take(8, byte)) return;
    *out_++ = static_cast<uint8_t>(byte);
    --stored_left_;
    return;
  }
  const auto count = static_cast<uint32_t>(
      std::min<int64_t>({limit - out_, in_end_ - in_, int64_t{stored_left_}}));
  std::memcpy(out_, in_, count);
  out_ += count;
  in_ += count;
  stored_left_ -= count;
}

// Takes one symbol of a code, without its extra bits.
bool Inflater::take_symbol(const uint32_t* table, int table_bits, uint32_t& entry) {
  // The end of the stream may be nearer than the longest code.
  for (int bits = 1;; ++bits) {
    if (!fill(bits)) return false;
    entry = table[low_bits(bits_, static_cast<uint32_t>(table_bits))];
    if ((entry & kKind) == kLink && !is_literal(entry)) {
      const uint64_t rest = bits_ >> table_bits;
      entry = table[base_of(entry) + low_bits(rest, code_bits_of(entry))];
    }
    int length = static_cast<int>(code_bits_of(entry));
    if (is_literal(entry)) length = lengths_[entry >> 8 & 0xff];
    if ((entry & kKind) == kBad && !is_literal(entry)) {
      if (bits < kMaxBits) continue;
      return fail(InflateFault::broken);
    }
    if (length > count_) continue;
    bits_ >>= length;
    count_ -= length;
    return true;
  }
}

// Decodes one literal, or one match, or the end of the block.
void Inflater::run_one() {
  uint32_t entry = 0, extra = 0;
  if (!take_symbol(literal_table_, kLiteralBits, entry)) return;
  if (is_literal(entry)) {
    *out_++ = static_cast<uint8_t>(entry >> 8);
    return;
  }
  if ((entry & kKind) == kEndsBlock) {
    part_ = Part::block_header;
    return;
  }
  if (!take(static_cast<int>(bits_of(entry) - code_bits_of(entry)), extra)) return;
  const uint32_t length = base_of(entry) + extra;
  if (!take_symbol(distance_table_, kDistanceBits, entry) ||
      !take(static_cast<int>(bits_of(entry) - code_bits_of(entry)), extra)) {
    return;
  }
  const uint32_t distance = base_of(entry) + extra;
  if (distance > out_ - begin_) {
    fail(InflateFault::broken);
    return;
  }
  copy_bytes(out_, distance, length);
  out_ += length;
}

// Decodes until the limit, the end of the block or of the piece, or a fault is near.
void Inflater::run_fast(const uint8_t* limit) {
  if (in_end_ - in_ < kFastInput) return;
  const uint8_t* in = in_;
  const uint8_t* const in_limit = in_end_ - kFastInput;
  uint8_t* out = out_;
  uint64_t bits = bits_;
  uint32_t count = static_cast<uint32_t>(count_);
  // Only the lowest six bits of `count` count: the others are what skip() leaves there.
  const auto refill = [&] {  // to 56 bits or more
    bits |= load64(in) << (count & 63);
    in += 7 - (count >> 3 & 7);
    count |= 56;
  };
  const auto skip = [&](uint32_t entry) {
    bits >>= entry & 63;
    count -= entry;
  };
  const auto put = [&](uint32_t entry) {
    skip(entry);
    const auto literals = static_cast<uint16_t>(entry >> 8);
    std::memcpy(out, &literals, sizeof literals);
    out += literals_of(entry);
  };
  const auto lookup = [&] { return literal_table_[low_bits(bits, kLiteralBits)]; };
  while (out < limit && in <= in_limit) {
    refill();
    uint32_t entry = lookup();
    // Four lookups take 44 bits at most.
    if (is_literal(entry)) {
      put(entry);
      entry = lookup();
      if (is_literal(entry)) {
        put(entry);
        entry = lookup();
        if (is_literal(entry)) {
          put(entry);
          entry = lookup();
          if (is_literal(entry)) {
            put(entry);
            continue;
          }
        }
      }
      refill();
    }
    if ((entry & kKind) != kValue) {
      if ((entry & kKind) == kLink) {
        entry =
            literal_table_[base_of(entry) + low_bits(bits >> kLiteralBits, code_bits_of(entry))];
        if (is_literal(entry)) {
          put(entry);
          continue;
        }
      }
      if ((entry & kKind) == kEndsBlock) {
        skip(entry);
        part_ = Part::block_header;
        break;
      }
      if ((entry & kKind) == kBad) {
        fail(InflateFault::broken);
        break;
      }
    }
    const uint32_t length =
        base_of(entry) + static_cast<uint32_t>(low_bits(bits, entry & 63) >> code_bits_of(entry));
    skip(entry);
    // A length takes 20 bits at most and a distance 28.
    entry = distance_table_[low_bits(bits, kDistanceBits)];
    if ((entry & kKind) == kLink) {
      entry =
          distance_table_[base_of(entry) + low_bits(bits >> kDistanceBits, code_bits_of(entry))];
    }
    const uint32_t distance =
        base_of(entry) + static_cast<uint32_t>(low_bits(bits, entry & 63) >> code_bits_of(entry));
    if ((entry & kKind) != kValue || distance > out - begin_) {
      fail(InflateFault::broken);
      break;
    }
    skip(entry);
    copy_bytes(out, distance, length);
    out += length;
  }
  // Bits above `count` are those of the bytes at `in`, which are read again.
  count_ = static_cast<int>(count & 63);
  bits_ = low_bits(bits, count & 63);
  in_ = in;
  out_ = out;
}

}  // namespace stoker
