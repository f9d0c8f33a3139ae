#include "decode/jpeg/seek_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker {
namespace {

constexpr size_t kHeaderBytes = 6;
constexpr size_t kSealBytes = 8;  // also the bytes that take() may read after the bits
constexpr size_t kFirstBit = 8 * kHeaderBytes;
constexpr int kMaxScanBits = 28, kMaxDcBits = 22;
static_assert(8 * kMaxScanBytes < size_t{1} << kMaxScanBits && kMaxDc < 1 << (kMaxDcBits - 1));

uint64_t load(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

uint64_t seal_of(std::span<const uint8_t> index, std::span<const uint8_t> bytes) {
  return XXH3_64bits_withSeed(index.data(), index.size(), XXH3_64bits(bytes.data(), bytes.size()));
}

int sum(const int* bits) { return bits[0] + bits[1] + bits[2]; }

size_t index_bytes(int rows, int groups, int scan_bits, int row_bits, const int* dc_bits) {
  const size_t row = static_cast<size_t>(scan_bits + sum(dc_bits)) +
                     static_cast<size_t>(groups - 1) * (row_bits + sum(dc_bits));
  return kHeaderBytes + (static_cast<size_t>(rows) * row + 7) / 8 + kSealBytes;
}

// Returns the number of bits that hold `value` in two's complement.
int signed_bits(int32_t value) {
  return std::bit_width(static_cast<uint32_t>(value < 0 ? ~value : value)) + 1;
}

uint32_t position(const ScanPoint& point) { return 8 * point.byte + point.bit; }

class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& out) : out_(out) {}
  void put(uint32_t value, int count) {
    bits_ |= (value & ((uint64_t{1} << count) - 1)) << used_;
    for (used_ += count; used_ >= 8; used_ -= 8, bits_ >>= 8) {
      out_.push_back(static_cast<uint8_t>(bits_));
    }
  }
  void finish() {
    if (used_ > 0) put(0, 8 - used_);
  }

 private:
  std::vector<uint8_t>& out_;
  uint64_t bits_ = 0;
  int used_ = 0;
};

// Converts places in the data without stuffing and markers to places in the file. Call it with
// increasing places.
class FileOffsets {
 public:
  explicit FileOffsets(std::span<const uint8_t> scan) : scan_(scan) {}

  // behind_marker: the place begins a segment, so it comes after a restart marker.
  uint32_t find(size_t plain, bool behind_marker) {
    for (;;) {
      const size_t special = next_ff();
      if (plain < plain_ + (special - at_)) return static_cast<uint32_t>(at_ + (plain - plain_));
      const bool is_stuffed = special + 1 < scan_.size() && scan_[special + 1] == 0;
      const bool is_here = plain == plain_ + (special - at_);
      if (is_here && (is_stuffed || !behind_marker)) return static_cast<uint32_t>(special);
      if (special >= scan_.size()) return static_cast<uint32_t>(scan_.size());
      plain_ += special - at_ + (is_stuffed ? 1 : 0);
      at_ = std::min(special + 2, scan_.size());
      if (is_here) behind_marker = false;
    }
  }

 private:
  size_t next_ff() {
    if (ff_ < at_ || ff_ == kNone) {
      const void* found = std::memchr(scan_.data() + at_, 0xFF, scan_.size() - at_);
      ff_ = found == nullptr ? scan_.size()
                             : static_cast<size_t>(static_cast<const uint8_t*>(found) - &scan_[0]);
    }
    return ff_;
  }

  static constexpr size_t kNone = ~size_t{0};
  const std::span<const uint8_t> scan_;
  size_t at_ = 0;      // in the file
  size_t plain_ = 0;   // the same place without stuffing and markers
  size_t ff_ = kNone;  // the next FF at or after at_
};

}  // namespace

bool SeekIndex::open(std::span<const uint8_t> encoded, std::span<const uint8_t> bytes,
                     const BaselineJpeg& jpeg) {
  if (encoded.size() < kHeaderBytes + kSealBytes) return false;
  encoded_ = encoded;
  rows_ = jpeg.mcus_down;
  step_ = encoded[0] == 0 ? jpeg.mcus_across : encoded[0];
  groups_ = (jpeg.mcus_across + step_ - 1) / step_;
  scan_bits_ = encoded[1];
  row_bits_ = encoded[2];
  scan_bytes_ = bytes.size() - jpeg.scan_begin;
  if (int64_t{groups_} * rows_ > kMaxSeekPlaces) return false;
  for (int c = 0; c < 3; ++c) {
    dc_bits_[c] = encoded[3 + static_cast<size_t>(c)];
    if (dc_bits_[c] > kMaxDcBits) return false;
  }
  if (scan_bits_ > kMaxScanBits || row_bits_ > kMaxScanBits ||
      encoded.size() != index_bytes(rows_, groups_, scan_bits_, row_bits_, dc_bits_)) {
    return false;
  }
  const auto sealed = encoded.first(encoded.size() - kSealBytes);
  return load(sealed.data() + sealed.size()) == seal_of(sealed, bytes);
}

// REQUIRES: count <= kMaxScanBits; the bits come before the seal.
uint32_t SeekIndex::take(size_t& bit, int count) const {
  const uint64_t value = load(encoded_.data() + bit / 8) >> (bit % 8);
  bit += static_cast<size_t>(count);
  return static_cast<uint32_t>(value & ((uint64_t{1} << count) - 1));
}

bool SeekIndex::find(int row, int group, ScanPoint& point) const {
  if (group == groups_) {
    ++row;
    group = 0;
  }
  if (row < 0 || row >= rows_ || group < 0) return false;
  const size_t first = static_cast<size_t>(scan_bits_ + sum(dc_bits_));
  const size_t other = static_cast<size_t>(row_bits_ + sum(dc_bits_));
  size_t bit = kFirstBit + static_cast<size_t>(row) * (first + (groups_ - 1) * other);
  size_t at = bit;
  uint32_t place = take(at, scan_bits_);
  if (group > 0) {
    at = bit + first + (group - 1) * other;
    place += take(at, row_bits_);
  }
  for (int c = 0; c < 3; ++c) {
    const int unused = 32 - dc_bits_[c];
    const uint32_t raw = take(at, dc_bits_[c]);
    point.dc[c] = unused == 32 ? 0 : static_cast<int32_t>(raw << unused) >> unused;
  }
  point.byte = place / 8;
  point.bit = place % 8;
  return point.byte < scan_bytes_;
}

// Fills points_, row by row, group by group. It is as strict as CropDecoder with a whole image.
bool SeekIndexBuilder::walk(std::span<const uint8_t> bytes, int step) {
  if (!parse_baseline(bytes, jpeg_) || !reader_.open(bytes, jpeg_, tables_) || !reader_.begin()) {
    return false;
  }
  if (step == 0) step = jpeg_.mcus_across;
  const int groups = (jpeg_.mcus_across + step - 1) / step;
  if (int64_t{groups} * jpeg_.mcus_down > kMaxSeekPlaces) return false;
  points_.clear();
  FileOffsets offsets(bytes.subspan(jpeg_.scan_begin));
  const int interval = jpeg_.restart_interval;
  for (int row = 0, mcu = 0; row < jpeg_.mcus_down; ++row) {
    for (int x = 0; x < jpeg_.mcus_across;) {
      ScanPoint point = reader_.here();
      point.byte = offsets.find(point.byte, interval > 0 && mcu > 0 && mcu % interval == 0);
      points_.push_back(point);
      const int count = std::min(step, jpeg_.mcus_across - x);
      if (!reader_.skip(count)) return false;
      x += count;
      mcu += count;
    }
  }
  return true;
}

// Writes the header and the bits.
void SeekIndexBuilder::write(SeekStep step, std::vector<uint8_t>& encoded) const {
  const size_t groups = points_.size() / static_cast<size_t>(jpeg_.mcus_down);
  uint32_t most_scan = 0, most_row = 0;
  int dc_bits[3] = {};
  for (size_t i = 0; i < points_.size(); ++i) {
    const uint32_t row_begin = position(points_[i - i % groups]);
    most_scan = std::max(most_scan, row_begin);
    most_row = std::max(most_row, position(points_[i]) - row_begin);
    for (int c = 0; c < jpeg_.component_count; ++c) {
      dc_bits[c] = std::max(dc_bits[c], signed_bits(points_[i].dc[c]));
    }
  }
  const int scan_bits = std::bit_width(most_scan), row_bits = std::bit_width(most_row);
  encoded.push_back(static_cast<uint8_t>(step));
  for (const int bits : {scan_bits, row_bits, dc_bits[0], dc_bits[1], dc_bits[2]}) {
    encoded.push_back(static_cast<uint8_t>(bits));
  }
  BitWriter writer(encoded);
  for (size_t i = 0; i < points_.size(); ++i) {
    const uint32_t place = position(points_[i]);
    if (i % groups == 0) {
      writer.put(place, scan_bits);
    } else {
      writer.put(place - position(points_[i - i % groups]), row_bits);
    }
    for (int c = 0; c < 3; ++c) writer.put(static_cast<uint32_t>(points_[i].dc[c]), dc_bits[c]);
  }
  writer.finish();
}

bool SeekIndexBuilder::build(std::span<const uint8_t> bytes, SeekStep step,
                             std::vector<uint8_t>& encoded) {
  encoded.clear();
  if (!walk(bytes, static_cast<int>(step))) return false;
  write(step, encoded);
  const uint64_t seal = seal_of(encoded, bytes);
  for (int i = 0; i < 64; i += 8) encoded.push_back(static_cast<uint8_t>(seal >> i));
  return true;
}

}  // namespace stoker
