#include "decode/jpeg/scan_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "decode/jpeg/stuffing.h"

namespace stoker {
namespace {

// The most MCUs of a row, and between two checks of the predictors. A predictor may grow by 4
// blocks of 2^15 in each.
constexpr int kMaxUnchecked = 8192;
static_assert(int64_t{kMaxDc} + (int64_t{4} * kMaxUnchecked << 15) <
              std::numeric_limits<int32_t>::max());

// JpegDecoder also looks further back; files that end otherwise are left to it.
bool ends_with_end_marker(std::span<const uint8_t> scan) {
  const size_t size = scan.size();
  return size >= 2 && scan[size - 2] == 0xFF && scan[size - 1] == 0xD9;
}

}  // namespace

// Nothing has to be known about the end of a file that is not there: an index is made of files that
// were read.
bool ScanReader::open(const FilePieces& file, const BaselineJpeg& jpeg, HuffmanCache& tables) {
  scan_bytes_ = file.file_bytes - jpeg.scan_begin;
  const size_t headers = jpeg.scan_begin - std::min(jpeg.scan_begin, file.body_at);
  data_at_ = file.body_at + headers - jpeg.scan_begin;
  data_ = file.body.subspan(std::min(headers, file.body.size()));
  if (scan_bytes_ > kMaxScanBytes || (file.is_whole() && !ends_with_end_marker(data_))) {
    return false;
  }
  // Every MCU takes at least one bit; a header that promises more than the file can hold is
  // refused.
  if (int64_t{jpeg.mcus_across} * jpeg.mcus_down > 8 * static_cast<int64_t>(scan_bytes_)) {
    return false;
  }
  layout_.block_count = 0;
  for (int c = 0; c < jpeg.component_count; ++c) {
    const JpegComponent& component = jpeg.components[c];
    const DcTable* dc = tables.dc(jpeg.dc[component.dc]);
    const AcTable* ac = tables.ac(jpeg.ac[component.ac]);
    if (dc == nullptr || ac == nullptr) return false;
    for (int i = 0; i < component.across * component.down; ++i) {
      layout_.blocks[layout_.block_count++] = {dc,
                                               ac,
                                               c,
                                               static_cast<uint32_t>(component.across),
                                               static_cast<uint32_t>(i % component.across),
                                               nullptr};
    }
  }
  has_skip_plan_ = false;
  restart_interval_ = jpeg.restart_interval;
  return true;
}

void ScanReader::open(const ScanReader& other) {
  scan_bytes_ = other.scan_bytes_;
  data_at_ = other.data_at_;
  data_ = other.data_;
  layout_ = other.layout_;
  has_skip_plan_ = other.has_skip_plan_;
  restart_interval_ = other.restart_interval_;
}

bool ScanReader::begin() { return enter({}, 0, scan_bytes_); }

bool ScanReader::enter(const ScanPoint& point, int mcu, size_t end) {
  // The byte at `end` may hold this part's last bits, and a stuffing byte may follow it.
  end = std::min(scan_bytes_, end + 2);
  if (point.byte >= end || point.bit > 7) return false;
  if (point.byte < data_at_ || end > data_at_ + data_.size()) return false;
  const int interval = restart_interval_ > 0 ? restart_interval_ : std::numeric_limits<int>::max();
  if (!segments_.read(data_.subspan(point.byte - data_at_, end - point.byte), restart_interval_ > 0,
                      mcu / interval)) {
    return false;
  }
  segment_ = 0;
  entered_ = point.byte;
  counted_ = 0;
  stuffing_ = 0;
  left_ = interval - mcu % interval;
  state_ = {};
  std::copy_n(point.dc, 3, state_.dc);
  state_.next = segments_.data();
  if (point.bit > 0) {
    state_.bits = uint64_t{*state_.next++} << (56 + point.bit);
    state_.count = 8 - static_cast<int>(point.bit);
  }
  return true;
}

int64_t ScanReader::bits_used() const {
  return (state_.next - segments_.data()) * 8 - state_.count;
}

// In the file, a byte of stuffing follows each FF, and two bytes of a marker each segment.
bool ScanReader::here(ScanPoint& place) {
  if (left_ == 0 && !next_segment()) return false;
  const auto bits = static_cast<size_t>(bits_used());
  stuffing_ += count_ff(segments_.data() + counted_, bits / 8 - counted_);
  counted_ = bits / 8;
  place.byte = entered_ + static_cast<uint32_t>(counted_ + stuffing_ + 2 * segment_);
  place.bit = bits % 8;
  std::copy_n(state_.dc, 3, place.dc);
  return true;
}

void ScanReader::set_coefficients(int component, int row, int16_t* coefficients) {
  int seen = 0;
  for (int b = 0; b < layout_.block_count; ++b) {
    McuBlock& block = layout_.blocks[b];
    if (block.component == component && seen++ / static_cast<int>(block.across) == row) {
      block.coefficients = coefficients;
    }
  }
}

bool ScanReader::is_inside() const {
  return bits_used() <= 8 * static_cast<int64_t>(segments_.end(segment_));
}

// All whole bytes of a segment must have been used, as libjpeg requires.
bool ScanReader::next_segment() {
  const size_t end = segments_.end(segment_);
  if (bits_used() + 8 <= 8 * static_cast<int64_t>(end) || ++segment_ >= segments_.count())
    return false;
  state_ = {};
  state_.next = segments_.data() + end;
  left_ = restart_interval_;
  return true;
}

// The decoder reads up to 8 bytes ahead; is_inside() looks at the exact bit.
const uint8_t* ScanReader::limit() const {
  return segments_.data() + segments_.end(segment_) + sizeof state_.bits;
}

template <class Decode>
bool ScanReader::run(int mcus, const Decode& decode) {
  for (int done = 0; done < mcus;) {
    if (left_ == 0 && !next_segment()) return false;
    const int count = std::min(left_, mcus - done);
    if (!decode(done, count, limit()) || !is_inside()) return false;
    if (restart_interval_ > 0) left_ -= count;
    done += count;
  }
  return has_sane_predictors();
}

bool ScanReader::has_sane_predictors() const {
  return std::all_of(state_.dc, state_.dc + 3,
                     [](int32_t dc) { return dc >= -kMaxDc && dc <= kMaxDc; });
}

bool ScanReader::skip(int mcus) {
  // Small images are stored as a whole.
  if (mcus > 0 && !std::exchange(has_skip_plan_, true)) plan_skips(layout_);
  while (mcus > 0) {
    const int part = std::min(mcus, kMaxUnchecked);
    const bool is_good = run(part, [&](int, int count, const uint8_t* limit) {
      return skip_far(layout_, count, limit, state_, met_);
    });
    if (!is_good) return false;
    mcus -= part;
  }
  return true;
}

bool ScanReader::store(int first, int mcus) {
  return run(mcus, [&](int done, int count, const uint8_t* limit) {
    return store_mcus(layout_, first + done, count, limit, state_);
  });
}

bool ScanReader::store_both(ScanReader& a, ScanReader& b, int first, int mcus) {
  if (a.left_ < mcus || b.left_ < mcus) return a.store(first, mcus) && b.store(first, mcus);
  if (!store_two_runs({&a.layout_, a.limit(), &a.state_}, {&b.layout_, b.limit(), &b.state_}, first,
                      mcus)) {
    return false;
  }
  for (ScanReader* reader : {&a, &b}) {
    if (!reader->is_inside() || !reader->has_sane_predictors()) return false;
    if (reader->restart_interval_ > 0) reader->left_ -= mcus;
  }
  return true;
}

}  // namespace stoker
