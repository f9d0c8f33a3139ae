#include "decode/jpeg/progressive_reader.h"

#include <algorithm>
#include <limits>

#include "decode/jpeg/scan_reader.h"

namespace stoker {
namespace {

// Between two checks of the predictors (run() decodes at most a row at once) a predictor may grow
// by 4 * 8192 blocks of 2^15.
static_assert(int64_t{kMaxDc} + (int64_t{4} * 8192 << 15) < std::numeric_limits<int>::max());

}  // namespace

bool ProgressiveReader::open(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
  if (!headers_.open(bytes)) return false;
  const size_t behind = bytes.size() - headers_.scan().begin;
  // Every MCU takes at least one bit of the first scan; a header that promises more than the file
  // can hold is refused.
  const JpegFrame& frame = jpeg();
  return behind <= kMaxScanBytes &&
         int64_t{frame.mcus_across} * frame.mcus_down <= 8 * static_cast<int64_t>(behind);
}

bool ProgressiveReader::read(const Box& mcus, int64_t limit) {
  mcus_ = mcus;
  if (!coefficients_.begin(jpeg(), mcus, limit)) return false;
  do {
    if (!read_scan()) return false;
  } while (headers_.next(headers_.scan().begin + segments_.bytes_read()));
  return headers_.is_complete();
}

bool ProgressiveReader::read_scan() {
  const ScanHeader& scan = headers_.scan();
  const int interval = headers_.jpeg().restart_interval;
  if (!segments_.read(bytes_.subspan(scan.begin), interval > 0, 0) || !build_tables()) return false;
  state_ = {};
  state_.next = segments_.data();
  segment_ = 0;
  unit_ = 0;
  left_ = interval > 0 ? interval : std::numeric_limits<int>::max();
  return (scan.first == 0 ? read_dc() : read_ac()) && is_at_end();
}

bool ProgressiveReader::build_tables() {
  const ScanHeader& scan = headers_.scan();
  const ProgressiveJpeg& jpeg = headers_.jpeg();
  if (scan.first > 0) {
    const ScanSymbols kind = scan.high == 0 ? ScanSymbols::ac_first : ScanSymbols::ac_refine;
    return build_scan_table(jpeg.ac[scan.ac[0]], kind, scan.low, tables_[0]);
  }
  for (int i = 0; scan.high == 0 && i < scan.count; ++i) {
    const HuffmanSpec& spec = jpeg.dc[scan.dc[i]];
    if (!build_scan_table(spec, ScanSymbols::dc_first, scan.low, tables_[i])) return false;
  }
  return true;
}

// Returns the scan's blocks with the memory of row `row` of the crop's units.
DcScan ProgressiveReader::dc_scan(int row) {
  const ScanHeader& scan = headers_.scan();
  DcScan dc;
  dc.low = scan.low;
  for (int i = 0; i < scan.count; ++i) {
    const int c = scan.components[i];
    const int across = scan.count == 1 ? 1 : jpeg().components[c].across;
    const int down = scan.count == 1 ? 1 : jpeg().components[c].down;
    for (int b = 0; b < across * down; ++b) {
      dc.blocks[dc.block_count++] = {&tables_[i], i, static_cast<uint32_t>(across),
                                     static_cast<uint32_t>(b % across),
                                     coefficients_.row(c, row * down + b / across)};
    }
  }
  return dc;
}

bool ProgressiveReader::read_dc() {
  const ScanHeader& scan = headers_.scan();
  const int c = scan.components[0];
  const bool is_single = scan.count == 1;
  const Size units =
      is_single ? coefficients_.blocks(c) : Size{jpeg().mcus_across, jpeg().mcus_down};
  const Box& kept = is_single ? coefficients_.kept(c) : mcus_;
  DcScan dc = dc_scan(0);
  const bool is_first = scan.high == 0;
  units_across_ = units.width;
  const auto pass = [&](int, int count, const uint8_t* limit) {
    return is_first ? skip_first_dc(dc, count, limit, state_)
                    : skip_bits(static_cast<uint64_t>(count * dc.block_count), limit, state_);
  };
  const auto store = [&](int done, int count, const uint8_t* limit) {
    return (is_first ? first_dc : refine_dc)(dc, done, count, limit, state_);
  };
  for (int row = 0; row < kept.height; ++row) {
    if (!skip_to((kept.y + row) * units.width + kept.x, pass)) return false;
    dc = dc_scan(row);
    if (!run(kept.width, store)) return false;
  }
  return skip_to(units.width * units.height, pass);
}

bool ProgressiveReader::read_ac() {
  const ScanHeader& scan = headers_.scan();
  const int c = scan.components[0];
  const Size blocks = coefficients_.blocks(c);
  const Box& kept = coefficients_.kept(c);
  const AcScan ac{&tables_[0], scan.first, scan.last, scan.low};
  const auto decode = scan.high == 0 ? first_ac : refine_ac;
  units_across_ = blocks.width;
  const auto pass = [&](int, int count, const uint8_t* limit) {
    return decode(ac, {count, coefficients_.nonzero(c) + unit_, nullptr, 0}, limit, state_);
  };
  for (int row = 0; row < kept.height; ++row) {
    if (!skip_to((kept.y + row) * blocks.width + kept.x, pass)) return false;
    const auto store = [&](int done, int count, const uint8_t* limit) {
      const AcBlocks some{count, coefficients_.nonzero(c) + unit_, coefficients_.row(c, row), done};
      return decode(ac, some, limit, state_);
    };
    if (!run(kept.width, store)) return false;
  }
  return skip_to(blocks.width * blocks.height, pass);
}

int64_t ProgressiveReader::bits_used() const {
  return (state_.next - segments_.data()) * 8 - state_.count;
}

// Returns true if the current segment has whole bytes that were not read.
bool ProgressiveReader::has_unread_bytes() const {
  return bits_used() + 8 <= 8 * int64_t{segments_.end(segment_)};
}

bool ProgressiveReader::is_at_end() const {
  return !has_unread_bytes() && segment_ + 1 == segments_.count();
}

bool ProgressiveReader::next_segment() {
  if (has_unread_bytes() || segment_ + 1 == segments_.count()) return false;
  state_ = {};
  state_.next = segments_.data() + segments_.end(segment_++);
  left_ = headers_.jpeg().restart_interval;
  return true;
}

template <class Decode>
bool ProgressiveReader::run(int count, const Decode& decode) {
  for (int done = 0; done < count;) {
    if (left_ == 0 && !next_segment()) return false;
    const int now = std::min({left_, count - done, units_across_});
    const int64_t end = segments_.end(segment_);
    // The decoder reads up to 8 bytes ahead; the exact bit counts.
    const uint8_t* limit = segments_.data() + end + sizeof state_.bits;
    if (!decode(done, now, limit) || bits_used() > 8 * end) return false;
    left_ -= now;
    unit_ += now;
    done += now;
    if (std::any_of(state_.dc, state_.dc + 3, [](int dc) { return dc < -kMaxDc || dc > kMaxDc; })) {
      return false;
    }
  }
  return true;
}

template <class Decode>
bool ProgressiveReader::skip_to(int unit, const Decode& decode) {
  return run(unit - unit_, decode);
}

int64_t ProgressiveReader::scratch_bytes() const {
  return coefficients_.scratch_bytes() + segments_.scratch_bytes();
}

}  // namespace stoker
