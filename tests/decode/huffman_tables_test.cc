// The tables of a Huffman code and their cache. huffman_lookups_test.cc has random codes.
#include "decode/jpeg/huffman_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "decode/jpeg/scan_reader.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

TEST(HuffmanTables, AreBuiltOncePerDefinition) {
  const std::vector<uint8_t> first = make_jpeg({32, 32}, {}, 1);
  const std::vector<uint8_t> second = make_jpeg({48, 40}, {}, 2);
  const std::vector<uint8_t> own = recode_jpeg(second, {0, true});
  HuffmanCache tables;
  ScanReader reader;
  BaselineJpeg jpeg;
  const auto begin = [&](const std::vector<uint8_t>& file) {
    ASSERT_TRUE(parse_baseline(file, jpeg) && reader.open(file, jpeg, tables) && reader.begin());
  };
  begin(first);
  EXPECT_EQ(tables.builds(), 4);
  begin(second);
  EXPECT_EQ(tables.builds(), 4);
  begin(own);
  EXPECT_GT(tables.builds(), 4);
  const int64_t builds = tables.builds();
  begin(first);
  begin(own);
  EXPECT_EQ(tables.builds(), builds);
}

TEST(HuffmanTables, RefuseWhatIsNoCode) {
  uint8_t counts[16] = {0, 3};  // 00 01 10
  const uint8_t values[] = {1, 2, 3, 4};
  AcTable ac;
  EXPECT_TRUE(build_ac_table({counts, values, 3}, ac));
  counts[1] = 4;  // 11 is all ones
  EXPECT_FALSE(build_ac_table({counts, values, 4}, ac));
  counts[1] = 1;
  const uint8_t too_long[] = {16};
  DcTable dc;
  EXPECT_FALSE(build_dc_table({counts, too_long, 1}, dc));
}

// A code with one value per length, from `shortest` on: values[n] is n bits longer.
struct Code {
  uint8_t counts[16] = {};
  std::vector<uint8_t> values;
  HuffmanSpec spec() const { return {counts, values.data(), static_cast<int>(values.size())}; }
};

Code code_of(size_t shortest, std::vector<uint8_t> values) {
  Code code;
  for (size_t i = 0; i < values.size(); ++i) code.counts[shortest - 1 + i] = 1;
  code.values = std::move(values);
  return code;
}

// Returns true if bits and advance are those of the first symbols of `window`, at least one. Runs
// before an end-of-block are short enough that both can be told apart.
bool is_begin_of(const CanonicalCode& code, uint32_t window, int window_bits, int bits,
                 int advance) {
  int at = 0, sum = 0;
  do {
    const HuffmanSymbol symbol = code.find(window << (16 - window_bits + at) & 0xFFFF, 1);
    if (symbol.length == 0 || at + symbol.length > window_bits || sum >= kEndOfBlock) return false;
    at += symbol.length + (symbol.value & 15);
    sum += ac_advance(symbol.value);
    if (at == bits && sum == advance) return sum % kEndOfBlock < kNoSymbol - kEndOfBlock;
  } while (at < window_bits);
  return false;
}

// Every size of a difference after every length of a code: the content of each entry, and which
// ones are left out.
TEST(HuffmanTables, DcLookupsAreWhatTheirSymbolsAre) {
  DcTable table;
  for (const uint8_t first_size : {0, 1, 4, 11, 15}) {
    Code code = code_of(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    std::rotate(code.values.begin(), code.values.begin() + first_size % 11, code.values.end());
    code.values[0] = first_size;
    ASSERT_TRUE(build_dc_table(code.spec(), table));
    for (uint32_t i = 0; i < 1u << kDcBits; ++i) {
      const HuffmanSymbol symbol = table.code.find(i << (16 - kDcBits), 1);
      const int size = symbol.value, bits = symbol.length + size;
      const bool fits = symbol.length > 0 && symbol.length + (size > 0 ? 1 : 0) <= kDcBits &&
                        bits <= kMaxPairBits;
      ASSERT_EQ(fits, table.lookup[i] != 0) << i;
      if (!fits) continue;
      EXPECT_EQ(table.lookup[i] & 0xFF, static_cast<uint64_t>(bits));
      EXPECT_EQ(table.lookup[i] >> 48, static_cast<uint64_t>(64 - bits));
      const int raw = static_cast<int>((i << 24 << symbol.length) >> 16 >> (16 - size));
      const int value = size > 0 && raw >> (size - 1) == 0 ? raw - (1 << size) + 1 : raw;
      EXPECT_EQ(static_cast<int16_t>(table.lookup[i] >> 32), static_cast<int16_t>(value)) << i;
    }
    for (uint32_t i = 0; i < 1u << kSkipBits; ++i) {
      const HuffmanSymbol symbol = table.code.find(i << (16 - kSkipBits), 1);
      const bool fits = symbol.length > 0 && symbol.length <= kSkipBits;
      const int entry = fits ? kEndOfBlock << 8 | (symbol.length + symbol.value) : kNoSymbol << 8;
      EXPECT_EQ(table.skip[i], entry) << i;
    }
  }
}

// Includes the shortest possible codes: eleven runs of 16 zeros in a lookup would look like an end
// of block, or exceed it.
TEST(HuffmanTables, LookupsAreWhatTheirSymbolsAre) {
  const Code codes[] = {code_of(1, {0xF0, 0x00, 0x01, 0x12, 0x05}), code_of(1, {0x01, 0x00, 0xF0}),
                        code_of(2, {0x01, 0x02, 0x00, 0x11, 0x03, 0x21, 0x04, 0xF0, 0x0A, 0x31}),
                        code_of(1, {0x00, 0xF0, 0xF1}), code_of(9, {0x01, 0x00, 0x02, 0x0F})};
  AcTable table;
  for (size_t c = 0; c < 2 * std::size(codes); ++c) {
    const Code& code = codes[c / 2];
    table.pair_bits = c % 2 == 0 ? kAcBits : kMaxAcBits;
    ASSERT_TRUE(build_ac_table(code.spec(), table));
    for (uint32_t i = 0; i < 1u << kSkipBits; ++i) {
      const int bits = table.skip[i] & 0xFF, advance = table.skip[i] >> 8;
      const HuffmanSymbol first = table.code.find(i << (16 - kSkipBits), 1);
      const bool fits = first.length > 0 && first.length <= kSkipBits;
      ASSERT_EQ(fits, advance != kNoSymbol) << i;
      ASSERT_TRUE(!fits || is_begin_of(table.code, i, kSkipBits, bits, advance)) << i;
    }
    for (uint32_t i = 0; i < 1u << table.pair_bits; ++i) {
      const int bits = table.pair[i] & 0xFF, advance = static_cast<int>(table.pair[i] >> 56);
      ASSERT_TRUE(advance == kNoSymbol ||
                  is_begin_of(table.code, i, table.pair_bits, bits, advance))
          << i;
    }
  }
}

}  // namespace
}  // namespace stoker
