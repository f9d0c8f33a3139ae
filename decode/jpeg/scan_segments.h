// The entropy-coded data of a scan without stuffing bytes, in the segments between its restart
// markers.
//
// Owner: a reader of scans, reused for every scan; keeps its memory (that of the largest scan).
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/aligned_buffer.h"

namespace stoker {

// This is a copy of the scan, so longer ones are refused.
inline constexpr size_t kMaxScanBytes = size_t{15} << 20;
inline constexpr size_t kMaxScanSegments = size_t{1} << 19;

class ScanSegments {
 public:
  // Copies `scan` up to the first marker that does not belong to it. Restart markers must come in
  // order; `first` is the number of the first segment. Returns false if there are too many
  // segments. REQUIRES: at most kMaxScanBytes.
  bool read(std::span<const uint8_t> scan, bool has_restarts, int first);

  // All segments, one behind the other, then kEntropyPadding arbitrary bytes.
  const uint8_t* data() const { return bytes_.data(); }
  size_t count() const { return ends_.size(); }
  uint32_t end(size_t segment) const { return ends_[segment]; }  // offset in data()
  // Returns how many bytes of the scan were read: where the marker behind the data begins.
  size_t bytes_read() const { return bytes_read_; }

  void release();
  int64_t scratch_bytes() const;

 private:
  AlignedBuffer<uint8_t> bytes_;
  std::vector<uint32_t> ends_;
  size_t bytes_read_ = 0;
};

}  // namespace stoker
