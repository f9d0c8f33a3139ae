// The entropy-coded data of a baseline scan, MCU by MCU: restart markers, DC predictors and the
// end of the data. Knows nothing of pixels.
//
// Owner: CropDecoder, reused for every image; keeps its memory (that of the largest scan). Threads:
// one at a time. Errors: false as soon as libjpeg could see damage; it has the last word. After
// false only begin() may be called.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/aligned_buffer.h"
#include "decode/entropy_decoder.h"
#include "decode/jpeg_headers.h"

namespace stoker {

// Longer scans are not for this reader, which keeps a copy.
inline constexpr size_t kMaxScanBytes = size_t{15} << 20;
inline constexpr size_t kMaxScanSegments = size_t{1} << 20;  // between restart markers

class ScanReader {
 public:
  // Starts at the first MCU of `jpeg`, whose data are the rest of `bytes`.
  bool begin(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg, HuffmanCache& tables);

  // Where row `row` of component's block rows in the current MCU row keeps its coefficients.
  void set_coefficients(int component, int row, int16_t* coefficients);

  bool skip(int mcus);              // the next `mcus`, in file order
  bool store(int first, int mcus);  // the same into MCUs [first, first + mcus) of the block rows

  int64_t scratch_bytes() const;

 private:
  template <class Decode>
  bool run(int mcus, const Decode& decode);
  bool next_segment();
  bool is_inside();  // no bit was taken from behind the segment's end
  bool split(std::span<const uint8_t> scan);

  McuLayout layout_;
  EntropyState state_;
  int restart_interval_ = 0;      // MCUs; 0 = none
  int left_ = 0;                  // MCUs until the next restart marker
  size_t segment_ = 0;            // the current one's number
  AlignedBuffer<uint8_t> bytes_;  // the scan without stuffing, then kEntropyPadding bytes
  std::vector<uint32_t> ends_;    // of the segments between restart markers, in bytes_
};

}  // namespace stoker
