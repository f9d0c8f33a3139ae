#include "decode/scan_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace stoker {
namespace {

// No picture's DC predictor comes near; libjpeg gives up only at 2^31.
constexpr int32_t kMaxDc = 1 << 20;

// Between two looks at the predictors (skip() and store() get at most a row of MCUs) one may grow
// by 4 * 8192 blocks of 2^15.
static_assert(int64_t{kMaxDc} + (int64_t{4} * 8192 << 15) < std::numeric_limits<int32_t>::max());

}  // namespace

bool ScanReader::begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg,
                       HuffmanCache& tables) {
  if (bytes.size() - jpeg.scan_begin > kMaxScanBytes) return false;
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
  restart_interval_ = jpeg.restart_interval;
  if (!split(bytes.subspan(jpeg.scan_begin))) return false;
  segment_ = 0;
  state_ = {};
  state_.next = bytes_.data();
  left_ = restart_interval_ > 0 ? restart_interval_ : std::numeric_limits<int>::max();
  return true;
}

// Restart markers have to come in turn; the data end at anything else.
bool ScanReader::split(std::span<const uint8_t> scan) {
  const size_t need = scan.size() + kEntropyPadding;
  bytes_.grow(need);
  ends_.clear();
  const uint8_t* from = scan.data();
  const uint8_t* const end = from + scan.size();
  uint8_t* to = bytes_.data();
  for (;;) {
    from = copy_unstuffed(from, end, to);
    if (ends_.size() == kMaxScanSegments) return false;
    ends_.push_back(static_cast<uint32_t>(to - bytes_.data()));
    const uint8_t restart = static_cast<uint8_t>(0xD0 + (ends_.size() - 1) % 8);
    if (restart_interval_ == 0 || end - from < 2 || from[1] != restart) break;
    from += 2;
  }
  std::memset(to, 0, kEntropyPadding);
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

bool ScanReader::is_inside() {
  const int64_t used = (state_.next - bytes_.data()) * 8 - state_.count;
  return used <= 8 * static_cast<int64_t>(ends_[segment_]);
}

// All whole bytes of a segment must have been used, as libjpeg wants it.
bool ScanReader::next_segment() {
  const int64_t used = (state_.next - bytes_.data()) * 8 - state_.count;
  const size_t end = ends_[segment_];
  if (used + 8 <= 8 * static_cast<int64_t>(end) || ++segment_ >= ends_.size()) return false;
  state_ = {};
  state_.next = bytes_.data() + end;
  left_ = restart_interval_;
  return true;
}

template <class Decode>
bool ScanReader::run(int mcus, const Decode& decode) {
  for (int done = 0; done < mcus;) {
    if (left_ == 0 && !next_segment()) return false;
    const int count = std::min(left_, mcus - done);
    // The decoder reads up to 8 bytes ahead; is_inside() looks at the exact bit.
    const uint8_t* limit = bytes_.data() + ends_[segment_] + sizeof state_.bits;
    if (!decode(done, count, limit) || !is_inside()) return false;
    if (restart_interval_ > 0) left_ -= count;
    done += count;
  }
  return std::all_of(state_.dc, state_.dc + 3,
                     [](int32_t dc) { return dc >= -kMaxDc && dc <= kMaxDc; });
}

bool ScanReader::skip(int mcus) {
  return run(mcus, [&](int, int count, const uint8_t* limit) {
    return skip_mcus(layout_, count, limit, state_);
  });
}

bool ScanReader::store(int first, int mcus) {
  return run(mcus, [&](int done, int count, const uint8_t* limit) {
    return store_mcus(layout_, first + done, count, limit, state_);
  });
}

int64_t ScanReader::scratch_bytes() const {
  return bytes_.bytes() + static_cast<int64_t>(ends_.capacity() * sizeof(ends_[0]));
}

}  // namespace stoker
