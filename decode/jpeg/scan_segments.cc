#include "decode/jpeg/scan_segments.h"

#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/stuffing.h"

namespace stoker {

static_assert(kUnstuffedPadding <= kEntropyPadding);

bool ScanSegments::read(std::span<const uint8_t> scan, bool has_restarts, int first) {
  bytes_.grow(scan.size() + kEntropyPadding);
  ends_.clear();
  const uint8_t* from = scan.data();
  const uint8_t* const end = from + scan.size();
  uint8_t* to = bytes_.data();
  for (size_t segment = static_cast<size_t>(first);; ++segment) {
    from = copy_unstuffed(from, end, to);
    if (ends_.size() == kMaxScanSegments) return false;
    ends_.push_back(static_cast<uint32_t>(to - bytes_.data()));
    const uint8_t restart = static_cast<uint8_t>(0xD0 + segment % 8);
    if (!has_restarts || end - from < 2 || from[1] != restart) break;
    from += 2;
  }
  bytes_read_ = static_cast<size_t>(from - scan.data());
  return true;
}

void ScanSegments::release() {
  bytes_.release();
  ends_ = {};
}

int64_t ScanSegments::scratch_bytes() const {
  return bytes_.bytes() + static_cast<int64_t>(ends_.capacity() * sizeof(ends_[0]));
}

}  // namespace stoker
