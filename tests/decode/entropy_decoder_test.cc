// The entropy decoder against jpeg_read_coefficients, on every instruction set: all samplings,
// qualities, restart intervals and kinds of tables, and cases that real files rarely have.
#include "decode/jpeg/entropy_decoder.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "decode/aligned_buffer.h"
#include "decode/jpeg/scan_reader.h"
#include "decode/jpeg/stuffing.h"
#include "tests/decode/jpeg_maker.h"
#include "tests/decode/jpeg_recoder.h"

namespace stoker {
namespace {

constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}};

// The coefficients of one row of MCUs of every component.
class RowBuffer {
 public:
  RowBuffer(const BaselineJpeg& jpeg, int mcus) : jpeg_(jpeg) {
    for (int c = 0; c < jpeg.component_count; ++c) {
      const JpegComponent& component = jpeg.components[c];
      groups_[c] = (mcus * component.across + kBlockGroup - 1) / kBlockGroup;
      begins_[c] = size_;
      size_ += static_cast<size_t>(groups_[c]) * component.down * kBlockGroup * kBlockSize;
    }
    data_.grow(size_);
  }
  void attach(ScanReader& reader) {
    std::fill_n(data_.data(), size_, int16_t{0});
    for (int c = 0; c < jpeg_.component_count; ++c) {
      for (int r = 0; r < jpeg_.components[c].down; ++r) reader.set_coefficients(c, r, row(c, r));
    }
  }
  int16_t* row(int c, int r) {
    return data_.data() + begins_[c] +
           static_cast<size_t>(groups_[c]) * r * kBlockGroup * kBlockSize;
  }

 private:
  const BaselineJpeg& jpeg_;
  int groups_[3];
  size_t begins_[3];
  size_t size_ = 0;
  AlignedBuffer<int16_t> data_;
};

// Compares the MCUs [left, left + width) of a row.
void expect_row(const BaselineJpeg& jpeg, RowBuffer& buffer, const Coefficients& expected, int row,
                int left, int width) {
  for (int c = 0; c < jpeg.component_count; ++c) {
    const JpegComponent& component = jpeg.components[c];
    for (int r = 0; r < component.down; ++r) {
      const size_t y = static_cast<size_t>(row * component.down + r);
      if (y >= expected[c].size()) continue;  // padding, which libjpeg does not keep
      for (int b = 0; b < width * component.across; ++b) {
        const size_t x = static_cast<size_t>(left * component.across + b);
        if (x >= expected[c][y].size()) continue;
        const int16_t* block = buffer.row(c, r) + coefficient_offset(static_cast<size_t>(b));
        for (int i = 0; i < kBlockSize; ++i) {
          ASSERT_EQ(block[i / 8 * 8 * kBlockGroup + i % 8], expected[c][y][x][i])
              << "component " << c << " block " << x << "," << y << " coefficient " << i;
        }
      }
    }
  }
}

// Decodes the file, storing a window of MCUs and skipping the others.
void expect_same_coefficients(const std::vector<uint8_t>& file, uint32_t seed) {
  const Coefficients expected = read_coefficients(file);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  std::mt19937 random(seed);
  const int left = static_cast<int>(random() % jpeg.mcus_across);
  const int width = 1 + static_cast<int>(random() % (jpeg.mcus_across - left));
  const int top = static_cast<int>(random() % jpeg.mcus_down);
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  RowBuffer buffer(jpeg, width);
  for (int row = 0; row < jpeg.mcus_down; ++row) {
    if (row < top) {
      ASSERT_TRUE(reader.skip(jpeg.mcus_across)) << row;
      continue;
    }
    buffer.attach(reader);
    ASSERT_TRUE(reader.skip(left) && reader.store(0, width) &&
                reader.skip(jpeg.mcus_across - left - width))
        << row;
    expect_row(jpeg, buffer, expected, row, left, width);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// The same, two rows of MCUs at once, as if there was a seek index.
void expect_same_pairs_of_rows(const std::vector<uint8_t>& file, uint32_t seed) {
  const Coefficients expected = read_coefficients(file);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
  std::mt19937 random(seed);
  const int left = static_cast<int>(random() % jpeg.mcus_across);
  const int width = 1 + static_cast<int>(random() % (jpeg.mcus_across - left));
  const int right = jpeg.mcus_across - left - width;
  HuffmanCache tables;
  ScanReader upper, lower;
  ASSERT_TRUE(upper.open(file, jpeg, tables) && upper.begin());
  lower.open(upper);
  ASSERT_TRUE(lower.begin() && lower.skip(jpeg.mcus_across));
  RowBuffer of_upper(jpeg, width), of_lower(jpeg, width);
  for (int row = 0; row + 1 < jpeg.mcus_down; row += 2) {
    of_upper.attach(upper);
    of_lower.attach(lower);
    ASSERT_TRUE(upper.skip(left) && lower.skip(left)) << row;
    ASSERT_TRUE(ScanReader::store_both(upper, lower, 0, width)) << row;
    expect_row(jpeg, of_upper, expected, row, left, width);
    expect_row(jpeg, of_lower, expected, row + 1, left, width);
    if (testing::Test::HasFatalFailure() || row + 3 >= jpeg.mcus_down) return;
    ASSERT_TRUE(upper.skip(right + jpeg.mcus_across) && lower.skip(right + jpeg.mcus_across));
  }
}

class EntropyDecoder : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(EntropyDecoder, GivesLibjpegsCoefficients) {
  uint32_t seed = 0;
  for (const auto& sampling : kSamplings) {
    for (const int quality : {15, 75, 95, 100}) {
      JpegKind kind;
      kind.sampling_x = sampling[0];
      kind.sampling_y = sampling[1];
      kind.quality = quality;
      const Size size{40 + static_cast<int>(seed * 37 % 150),
                      24 + static_cast<int>(seed * 53 % 90)};
      const std::vector<uint8_t> file = make_jpeg(size, kind, ++seed);
      for (const int interval : {0, 1, 3, 100}) {
        SCOPED_TRACE(describe(kind) + " restart " + std::to_string(interval));
        const std::vector<uint8_t> recoded = recode_jpeg(file, {interval, seed % 2 == 0});
        expect_same_coefficients(recoded, seed);
        expect_same_pairs_of_rows(recoded, seed);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfGreyFiles) {
  JpegKind kind;
  kind.colours = JpegColours::gray;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    kind.quality = 20 + 7 * static_cast<int>(seed);
    const std::vector<uint8_t> file = make_jpeg({30 + 9 * static_cast<int>(seed), 41}, kind, seed);
    expect_same_coefficients(file, seed);
    expect_same_coefficients(recode_jpeg(file, {5, true}), seed);
    if (HasFatalFailure()) return;
  }
}

// Noise at quality 100: the last coefficient of many blocks is not zero, so blocks end without an
// end-of-block code, and values are long.
TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfNoise) {
  JpegKind kind;
  kind.quality = 100;
  std::vector<uint8_t> file = make_jpeg({120, 80}, kind, 3);
  Coefficients coefficients = read_coefficients(file);
  int full = 0;
  for (const auto& row : coefficients[0]) {
    for (const auto& block : row) full += block[63] != 0;
  }
  ASSERT_GT(full, 20);
  expect_same_coefficients(file, 5);
  expect_same_coefficients(recode_jpeg(file, {7, true}), 6);
  for (uint32_t seed = 0; seed < 20; ++seed) expect_same_pairs_of_rows(file, seed);
}

TEST_P(EntropyDecoder, GivesLibjpegsCoefficientsOfRealFiles) {
  const char* data = std::getenv("STOKER_DATA");
  if (data == nullptr) GTEST_SKIP() << "STOKER_DATA is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (!entry.is_regular_file() || files == 60) continue;
    const std::vector<uint8_t> file = read_file(entry.path());
    BaselineJpeg jpeg;
    if (!parse_baseline(file, jpeg)) continue;
    SCOPED_TRACE(entry.path());
    expect_same_coefficients(file, static_cast<uint32_t>(++files));
    expect_same_pairs_of_rows(file, static_cast<uint32_t>(files));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(files, 0) << data << " holds no baseline JPEG";
}

struct PlainBlock {
  std::vector<int16_t> coefficients;
  size_t end = 0;  // in bits of the data without stuffing
  int32_t dc = 0;
};

// The plain twin: grey files, code by code and bit by bit. Stops at the first invalid block;
// `blocks` has the blocks before it.
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

// Returns where the next MCU begins, in bits of the data without stuffing, as PlainBlock counts.
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

// Skips the blocks of a grey file in parts of random sizes.
void expect_same_skips(const std::vector<uint8_t>& file, const BaselineJpeg& jpeg,
                       const std::vector<PlainBlock>& expected, std::mt19937& random) {
  HuffmanCache tables;
  ScanReader reader;
  ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
  const size_t all = static_cast<size_t>(jpeg.mcus_across * jpeg.mcus_down);
  for (size_t done = 0; done < all;) {
    const size_t part = std::min(all - done, size_t{1} + random() % (2 * kSkipChunk + 9));
    done += part;
    ASSERT_EQ(reader.skip(static_cast<int>(part)), done <= expected.size()) << done << " " << part;
    if (done > expected.size()) return;
    int32_t dc = 0;
    ASSERT_EQ(plain_place(file, jpeg, reader, dc), expected[done - 1].end) << done;
    ASSERT_EQ(dc, expected[done - 1].dc) << done;
  }
}

// Makes random data with unusual tables of a grey file: runs past the end of a block (libjpeg
// accepts them, so it has to decide), codes that do not exist, data that end early, values of any
// length. `kind` chooses among four kinds of tables and data.
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

TEST_P(EntropyDecoder, AcceptsWhatThePlainTwinAccepts) {
  std::mt19937 random(9);
  JpegKind kind;
  kind.colours = JpegColours::gray;
  const std::vector<uint8_t> original = make_jpeg({120, 120}, kind);
  size_t sound_blocks = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<uint8_t> file = make_unusual(original, trial, random);
    BaselineJpeg jpeg;
    ASSERT_TRUE(parse_baseline(file, jpeg));
    std::vector<PlainBlock> expected;
    decode_plainly(file, jpeg, expected);
    sound_blocks += expected.size();
    SCOPED_TRACE(trial);
    expect_same_skips(file, jpeg, expected, random);
    if (HasFatalFailure()) return;
    for (const bool skip : {false, true}) {
      HuffmanCache tables;
      ScanReader reader;
      ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
      RowBuffer buffer(jpeg, 1);
      for (size_t b = 0; b < 225; ++b) {
        buffer.attach(reader);
        const bool sound = skip ? reader.skip(1) : reader.store(0, 1);
        ASSERT_EQ(sound, b < expected.size()) << "trial " << trial << " block " << b;
        if (!sound) break;
        for (int i = 0; !skip && i < kBlockSize; ++i) {
          ASSERT_EQ(buffer.row(0, 0)[i / 8 * 8 * kBlockGroup + i % 8], expected[b].coefficients[i])
              << "trial " << trial << " block " << b;
        }
      }
    }
  }
  EXPECT_GT(sound_blocks, 4000u);
}

// Two streams at once: sound together only if both are.
TEST_P(EntropyDecoder, StoresTwoStreamsAsEachAlone) {
  std::mt19937 random(11);
  JpegKind kind;
  kind.colours = JpegColours::gray;
  const std::vector<uint8_t> original = make_jpeg({120, 120}, kind);
  int sound = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<uint8_t> files[2];
    BaselineJpeg jpegs[2];
    std::vector<PlainBlock> expected[2];
    for (int f : {0, 1}) {
      files[f] = make_unusual(original, 1 + static_cast<int>(random() % 4), random);
      ASSERT_TRUE(parse_baseline(files[f], jpegs[f]));
      decode_plainly(files[f], jpegs[f], expected[f]);
      if (expected[f].size() < 60) continue;
      // Now the data end within the last byte of a block.
      const size_t bytes = expected[f][expected[f].size() - random() % 20 - 1].end / 8;
      files[f].erase(files[f].begin() + static_cast<ptrdiff_t>(jpegs[f].scan_begin + bytes),
                     files[f].end() - 2);
      expected[f].clear();
      ASSERT_TRUE(parse_baseline(files[f], jpegs[f]));
      decode_plainly(files[f], jpegs[f], expected[f]);
    }
    const size_t both = std::min(expected[0].size(), expected[1].size());
    const size_t count =
        std::min<size_t>(random() % 3 == 0 ? both + 1 : 1 + random() % (both + 1), 225);
    HuffmanCache tables;
    ScanReader readers[2];
    RowBuffer buffers[2] = {{jpegs[0], static_cast<int>(count)},
                            {jpegs[1], static_cast<int>(count)}};
    for (int f : {0, 1}) {
      ASSERT_TRUE(readers[f].open(files[f], jpegs[f], tables) && readers[f].begin());
      buffers[f].attach(readers[f]);
    }
    ASSERT_EQ(ScanReader::store_both(readers[0], readers[1], 0, static_cast<int>(count)),
              count <= both)
        << count << " of " << both;
    if (count > both) continue;
    ++sound;
    for (int f : {0, 1}) {
      for (size_t b = 0; b < count; ++b) {
        const int16_t* block = buffers[f].row(0, 0) + coefficient_offset(b);
        for (int i = 0; i < kBlockSize; ++i) {
          ASSERT_EQ(block[i / 8 * 8 * kBlockGroup + i % 8], expected[f][b].coefficients[i])
              << "stream " << f << " block " << b;
        }
      }
      int32_t dc = 0;
      EXPECT_EQ(plain_place(files[f], jpegs[f], readers[f], dc), expected[f][count - 1].end);
      EXPECT_EQ(dc, expected[f][count - 1].dc);
    }
  }
  EXPECT_GT(sound, 100);
}

// Blocks of the most bytes, and data that end where the decoder looks at its position and may still
// go on. The memory behind them is new, so it has zeros, too: the decoder goes on as far as it ever
// does. (AddressSanitizer sees where that is.)
TEST_P(EntropyDecoder, StopsWithinItsPadding) {
  JpegKind kind;
  kind.colours = JpegColours::gray;
  std::vector<uint8_t> file = make_jpeg({8 * 4 * kSkipChunk, 16}, kind);
  BaselineJpeg jpeg;
  ASSERT_TRUE(parse_baseline(file, jpeg));
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
  file.resize(file.size() + kSkipChunk * kMaxBlockBytes, 0);
  file.insert(file.end(), {0xFF, 0xD9});
  ASSERT_TRUE(parse_baseline(file, jpeg));
  for (const bool skip : {false, true}) {
    HuffmanCache tables;
    ScanReader reader;
    ASSERT_TRUE(reader.open(file, jpeg, tables) && reader.begin());
    RowBuffer buffer(jpeg, jpeg.mcus_across);
    buffer.attach(reader);
    EXPECT_FALSE(skip ? reader.skip(jpeg.mcus_across) : reader.store(0, jpeg.mcus_across));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, EntropyDecoder,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

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
  for (const Code& code : codes) {
    ASSERT_TRUE(build_ac_table(code.spec(), table));
    for (uint32_t i = 0; i < 1u << kSkipBits; ++i) {
      const int bits = table.skip[i] & 0xFF, advance = table.skip[i] >> 8;
      const HuffmanSymbol first = table.code.find(i << (16 - kSkipBits), 1);
      const bool fits = first.length > 0 && first.length <= kSkipBits;
      ASSERT_EQ(fits, advance != kNoSymbol) << i;
      ASSERT_TRUE(!fits || is_begin_of(table.code, i, kSkipBits, bits, advance)) << i;
    }
    for (uint32_t i = 0; i < 1u << kAcBits; ++i) {
      const int bits = table.pair[i] & 0xFF, advance = static_cast<int>(table.pair[i] >> 56);
      ASSERT_TRUE(advance == kNoSymbol || is_begin_of(table.code, i, kAcBits, bits, advance)) << i;
    }
  }
}

}  // namespace
}  // namespace stoker
