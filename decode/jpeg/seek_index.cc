#include "decode/jpeg/seek_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include <algorithm>
#include <bit>

#include "decode/orientation.h"

namespace stoker {
namespace {

constexpr size_t kRowsAt = 6;
constexpr size_t kFileAt = 8;
constexpr size_t kSeekHeaderBytes = 24;
constexpr size_t kSumBytes = 4;
constexpr size_t kSealBytes = 8;  // also the bytes that take() may read after the bits
constexpr size_t kFirstBit = 8 * kSeekHeaderBytes;
constexpr int kMaxScanBits = 28, kMaxDcBits = 22;
static_assert(8 * kMaxScanBytes < size_t{1} << kMaxScanBits && kMaxDc < 1 << (kMaxDcBits - 1));
static_assert((8192 * (kMaxScanBits + 3 * kMaxDcBits) + 7) / 8 + kSeekHeaderBytes + kSealBytes +
                  kSumBytes * (kMaxIndexedFile / kSeekBlock) ==
              kMaxRowIndexBytes);
static_assert(kMaxIndexedFile <= UINT32_MAX);

template <class T>
T load(const uint8_t* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  return value;
}

void append(std::vector<uint8_t>& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

uint32_t sum_of(std::span<const uint8_t> block) {
  return static_cast<uint32_t>(XXH3_64bits(block.data(), block.size()));
}

size_t blocks_of(size_t bytes) { return (bytes + kSeekBlock - 1) / kSeekBlock; }

uint64_t seal_of(std::span<const uint8_t> index) { return XXH3_64bits(index.data(), index.size()); }

IndexedFile describe(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg) {
  return {.bytes = bytes.size(),
          .scan_begin = jpeg.scan_begin,
          .size = jpeg.size,
          .mcu = {jpeg.mcu_width(), jpeg.mcu_height()},
          .orientation = jpeg_orientation(bytes)};
}

void append(std::vector<uint8_t>& out, const IndexedFile& file) {
  append(out, file.bytes, 4);
  append(out, file.scan_begin, 4);
  append(out, static_cast<uint64_t>(file.size.width), 2);
  append(out, static_cast<uint64_t>(file.size.height), 2);
  append(out, static_cast<uint64_t>(file.mcu.width), 1);
  append(out, static_cast<uint64_t>(file.mcu.height), 1);
  append(out, static_cast<uint64_t>(file.orientation), 2);
}

IndexedFile described(const uint8_t* from) {
  return {.bytes = load<uint32_t>(from),
          .scan_begin = load<uint32_t>(from + 4),
          .size = {load<uint16_t>(from + 8), load<uint16_t>(from + 10)},
          .mcu = {from[12], from[13]},
          .orientation = load<uint16_t>(from + 14)};
}

bool is_sane(const IndexedFile& file) {
  return file.bytes <= kMaxIndexedFile && file.scan_begin < file.bytes && file.size.width > 0 &&
         file.size.height > 0 && file.mcu.width >= 8 && file.mcu.height >= 8;
}

int sum(const int* bits) { return bits[0] + bits[1] + bits[2]; }

size_t place_bytes(int rows, int groups, int scan_bits, int row_bits, const int* dc_bits) {
  const size_t row = static_cast<size_t>(scan_bits + sum(dc_bits)) +
                     static_cast<size_t>(groups - 1) * (row_bits + sum(dc_bits));
  return (static_cast<size_t>(rows) * row + 7) / 8;
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

// Returns for how many rows there are places.
int places_down(int rows, int mcus_down) { return std::min(rows + 1, mcus_down); }

}  // namespace

int claimed_seek_rows(std::span<const uint8_t> encoded) {
  return encoded.size() < kSeekHeaderBytes + kSealBytes ? 0
                                                        : load<uint16_t>(encoded.data() + kRowsAt);
}

bool SeekIndex::open(std::span<const uint8_t> encoded) {
  if (encoded.size() < kSeekHeaderBytes + kSealBytes) return false;
  encoded_ = encoded;
  rows_ = claimed_seek_rows(encoded);
  file_ = described(encoded.data() + kFileAt);
  if (!is_sane(file_) || rows_ > file_.mcus_down()) return false;
  places_down_ = places_down(rows_, file_.mcus_down());
  step_ = encoded[0] == 0 ? file_.mcus_across() : encoded[0];
  groups_ = (file_.mcus_across() + step_ - 1) / step_;
  scan_bits_ = encoded[1];
  row_bits_ = encoded[2];
  if (rows_ < file_.mcus_down() && groups_ > 1) return false;
  if (int64_t{groups_} * places_down_ > kMaxSeekPlaces) return false;
  for (int c = 0; c < 3; ++c) {
    dc_bits_[c] = encoded[3 + static_cast<size_t>(c)];
    if (dc_bits_[c] > kMaxDcBits) return false;
  }
  if (scan_bits_ > kMaxScanBits || row_bits_ > kMaxScanBits) return false;
  sums_at_ = kSeekHeaderBytes + place_bytes(places_down_, groups_, scan_bits_, row_bits_, dc_bits_);
  if (encoded.size() != sums_at_ + kSumBytes * blocks_of(file_.bytes) + kSealBytes) return false;
  const auto sealed = encoded.first(encoded.size() - kSealBytes);
  return load<uint64_t>(sealed.data() + sealed.size()) == seal_of(sealed);
}

bool SeekIndex::is_of(const FilePieces& file, const BaselineJpeg& jpeg) const {
  if (file.file_bytes != file_.bytes || jpeg.scan_begin != file_.scan_begin ||
      jpeg.size != file_.size || Size{jpeg.mcu_width(), jpeg.mcu_height()} != file_.mcu) {
    return false;
  }
  return has_sums_of(file.body, file.body_at) && (file.is_one_run() || has_sums_of(file.head, 0));
}

// A part of a block has not the sum of the block.
bool SeekIndex::has_sums_of(std::span<const uint8_t> run, size_t at) const {
  if (at % kSeekBlock != 0 || at > file_.bytes || run.size() > file_.bytes - at) return false;
  for (const uint8_t* sum = encoded_.data() + sums_at_ + kSumBytes * (at / kSeekBlock);
       !run.empty(); sum += kSumBytes) {
    const size_t bytes = std::min(kSeekBlock, run.size());
    if (load<uint32_t>(sum) != sum_of(run.first(bytes))) return false;
    run = run.subspan(bytes);
  }
  return true;
}

// REQUIRES: count <= kMaxScanBits; the bits come before the seal.
uint32_t SeekIndex::take(size_t& bit, int count) const {
  const uint64_t value = load<uint64_t>(encoded_.data() + bit / 8) >> (bit % 8);
  bit += static_cast<size_t>(count);
  return static_cast<uint32_t>(value & ((uint64_t{1} << count) - 1));
}

bool SeekIndex::find(int row, int group, ScanPoint& point) const {
  if (group == groups_) {
    ++row;
    group = 0;
  }
  if (row < 0 || row >= places_down_ || group < 0) return false;
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
  return point.byte < file_.bytes - file_.scan_begin;
}

bool SeekRecorder::begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg, SeekStep step) {
  jpeg_ = &jpeg;
  bytes_ = bytes;
  step_ = step;
  groups_ = step == SeekStep::row
                ? 1
                : (jpeg.mcus_across + static_cast<int>(step) - 1) / static_cast<int>(step);
  points_.clear();
  return bytes.size() <= kMaxIndexedFile && int64_t{groups_} * jpeg.mcus_down <= kMaxSeekPlaces;
}

bool SeekRecorder::begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg,
                         const SeekIndex& index) {
  if (!begin(bytes, jpeg, SeekStep::row)) return false;
  points_.resize(static_cast<size_t>(places_down(index.rows(), jpeg.mcus_down)));
  for (size_t row = 0; row < points_.size(); ++row) {
    if (!index.find(static_cast<int>(row), 0, points_[row])) return false;
  }
  return true;
}

void SeekRecorder::finish(int rows, std::vector<uint8_t>& encoded) {
  encoded.clear();
  const auto groups = static_cast<size_t>(groups_);
  uint32_t most_scan = 0, most_row = 0;
  int dc_bits[3] = {};
  for (size_t i = 0; i < points_.size(); ++i) {
    const uint32_t row_begin = position(points_[i - i % groups]);
    most_scan = std::max(most_scan, row_begin);
    most_row = std::max(most_row, position(points_[i]) - row_begin);
    for (int c = 0; c < jpeg_->component_count; ++c) {
      dc_bits[c] = std::max(dc_bits[c], signed_bits(points_[i].dc[c]));
    }
  }
  const int scan_bits = std::bit_width(most_scan), row_bits = std::bit_width(most_row);
  for (const int value : {static_cast<int>(step_), scan_bits, row_bits, dc_bits[0], dc_bits[1],
                          dc_bits[2], rows & 0xff, rows >> 8}) {
    encoded.push_back(static_cast<uint8_t>(value));
  }
  append(encoded, describe(bytes_, *jpeg_));
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
  for (size_t at = 0; at < bytes_.size(); at += kSeekBlock) {
    append(encoded, sum_of(bytes_.subspan(at, std::min(kSeekBlock, bytes_.size() - at))),
           kSumBytes);
  }
  append(encoded, seal_of(encoded), kSealBytes);
}

// It is as strict as CropDecoder with a whole image.
bool SeekIndexBuilder::build(std::span<const uint8_t> bytes, SeekStep step,
                             std::vector<uint8_t>& encoded) {
  encoded.clear();
  if (!parse_baseline(bytes, jpeg_) || !recorder_.begin(bytes, jpeg_, step) ||
      !reader_.open(bytes, jpeg_, tables_) || !reader_.begin()) {
    return false;
  }
  const int across = jpeg_.mcus_across;
  const int most = step == SeekStep::row ? across : static_cast<int>(step);
  for (int row = 0; row < jpeg_.mcus_down; ++row) {
    for (int x = 0; x < across; x += most) {
      ScanPoint place;
      if (!reader_.here(place)) return false;
      recorder_.add(place);
      if (!reader_.skip(std::min(most, across - x))) return false;
    }
  }
  recorder_.finish(jpeg_.mcus_down, encoded);
  return true;
}

}  // namespace stoker
