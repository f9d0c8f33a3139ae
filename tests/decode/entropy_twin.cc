#include "tests/decode/entropy_twin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/stuffing.h"
#include "tests/decode/jpeg_maker.h"

namespace stoker {

void decode_plainly(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                    std::vector<PlainBlock>& blocks) {
  const std::span<const uint8_t> scan = std::span(file).subspan(jpeg.scan_begin);
  std::vector<uint8_t> bytes(scan.size() + kEntropyPadding);
  uint8_t* end = bytes.data();
  copy_unstuffed(scan.data(), scan.data() + scan.size(), end);
  const size_t bits = 8 * static_cast<size_t>(end - bytes.data());
  std::fill(end, bytes.data() + bytes.size(), uint8_t{0});
  size_t at = 0;
  const auto take = [&](int count) {
    uint32_t value = 0;
    for (; count > 0; --count, ++at) value = value << 1 | (bytes[at / 8] >> (7 - at % 8) & 1u);
    return value;
  };
  const auto symbol = [&](const CanonicalCode& code) {
    const uint32_t next = take(16);
    at -= 16;
    const HuffmanSymbol found = code.find(next, 1);
    at += static_cast<size_t>(found.length);
    return found.length == 0 ? -1 : int{found.value};
  };
  const auto value = [&](int size) {
    const int raw = static_cast<int>(take(size));
    return size == 0 || raw >> (size - 1) != 0 ? raw : raw + 1 - (1 << size);
  };
  HuffmanCache tables;
  const DcTable* dc_table = tables.dc(jpeg.dc[jpeg.components[0].dc]);
  const AcTable* ac_table = tables.ac(jpeg.ac[jpeg.components[0].ac]);
  int dc = 0;
  for (int b = 0; b < jpeg.mcus_across * jpeg.mcus_down; ++b) {
    std::vector<int16_t> block(kBlockSize);
    const int size = symbol(dc_table->code);
    if (size < 0) return;
    dc += value(size);
    block[0] = static_cast<int16_t>(dc);
    for (int k = 0; k < kBlockEnd;) {
      const int ac = symbol(ac_table->code);
      if (ac < 0) return;
      k += ac_advance(static_cast<uint8_t>(ac));
      if (k >= kEndOfBlock) break;
      if (k > kBlockEnd) return;
      block[kZigzag[k]] = static_cast<int16_t>(value(ac & 15));
    }
    if (at > bits) return;
    blocks.push_back({std::move(block), at, dc});
  }
}

size_t plain_place(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg, ScanReader& reader,
                   int32_t& dc) {
  ScanPoint place;
  EXPECT_TRUE(reader.here(place));
  size_t stuffing = 0;
  for (size_t i = 1; i < place.byte; ++i) {
    stuffing += file[jpeg.scan_begin + i - 1] == 0xFF && file[jpeg.scan_begin + i] == 0;
  }
  dc = place.dc[0];
  return 8 * (place.byte - stuffing) + place.bit;
}

std::vector<uint8_t> make_unusual(std::vector<uint8_t> file, int kind, std::mt19937& random) {
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg)) return {};
  const HuffmanSpec& spec = jpeg.ac[jpeg.components[0].ac];
  // With runs past the end rarely, so that many blocks are sound.
  const bool is_gentle = kind % 2 != 0;
  for (int i = 0; i < spec.value_count; ++i) {
    constexpr uint8_t kChoices[] = {0x00, 0xF0, 0xF1, 0x81, 0x31, 0x01, 0x02, 0x0A};
    constexpr uint8_t kGentle[] = {0x00, 0x01, 0x02, 0x11, 0x00, 0x01, 0x0A, 0x0F};
    file[static_cast<size_t>(spec.values - file.data() + i)] = is_gentle ? kGentle[random() % 8]
                                                               : random() % 4 != 0
                                                                   ? kChoices[random() % 8]
                                                                   : static_cast<uint8_t>(random());
  }
  // DC codes of up to 16 bits with values of 15, and data of mostly ones: long codes.
  const bool has_long_codes = kind % 4 == 3;
  if (has_long_codes) {
    const HuffmanSpec& dc = jpeg.dc[jpeg.components[0].dc];
    uint8_t* const counts = file.data() + (dc.counts - file.data());
    std::fill_n(counts, 16, uint8_t{0});
    for (int i = 0; i < dc.value_count; ++i) counts[i < 8 ? i : i + 4] = 1;
    std::fill_n(file.data() + (dc.values - file.data()) + 8, dc.value_count - 8, uint8_t{15});
  }
  for (size_t i = jpeg.scan_begin; i + 2 < file.size(); ++i) {
    const bool is_ones = has_long_codes && random() % 4 != 0;
    const uint8_t ones = random() % 2 == 0 ? 0xFE : 0x7F;
    file[i] = is_ones ? ones : static_cast<uint8_t>(random() % 255);
  }
  if (random() % 2 == 0) {
    const size_t bytes = file.size() - jpeg.scan_begin;
    file.erase(file.end() - 2 - static_cast<ptrdiff_t>(random() % (bytes - 40)), file.end() - 2);
  }
  return file;
}

void for_each_unusual(const UnusualCheck& check) {
  std::mt19937 random(9);
  JpegKind kind{.colours = JpegColours::gray};
  const std::vector<uint8_t> original = make_jpeg({120, 120}, kind);
  size_t sound_blocks = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    const std::vector<uint8_t> file = make_unusual(original, trial, random);
    BaselineJpeg jpeg;
    ASSERT_TRUE(parse_baseline(file, jpeg));
    std::vector<PlainBlock> expected;
    decode_plainly(file, jpeg, expected);
    sound_blocks += expected.size();
    check(file, jpeg, expected, random);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(sound_blocks, 4000u);
}

std::vector<uint8_t> make_longest(int blocks) {
  JpegKind kind{.colours = JpegColours::gray};
  std::vector<uint8_t> file = make_jpeg({8 * 4 * kSkipChunk, 16}, kind);
  BaselineJpeg jpeg;
  if (!parse_baseline(file, jpeg)) return {};
  // All codes have 16 bits, the first one is 0, and all values have 15.
  const auto lengthen = [&](const HuffmanSpec& spec) {
    uint8_t* const counts = file.data() + (spec.counts - file.data());
    std::fill_n(counts, 15, uint8_t{0});
    counts[15] = static_cast<uint8_t>(spec.value_count);
    std::fill_n(file.data() + (spec.values - file.data()), spec.value_count, uint8_t{0x0F});
  };
  lengthen(jpeg.dc[jpeg.components[0].dc]);
  lengthen(jpeg.ac[jpeg.components[0].ac]);
  file.resize(jpeg.scan_begin);
  file.resize(file.size() + static_cast<size_t>(blocks) * kMaxBlockBytes, 0);
  file.insert(file.end(), {0xFF, 0xD9});
  return file;
}

}  // namespace stoker
