// Reads the entropy-coded data of a baseline scan, MCU by MCU: restart markers, DC predictors and
// the end of the data. Does not handle pixels. Reads from the first MCU on (begin), or from places
// that a seek index gives (open, then enter as often as needed).
//
// Owner: CropDecoder, reused for every image; keeps its memory (that of the largest scan). Threads:
// one at a time. Errors: returns false as soon as libjpeg could see damage; libjpeg then decides.
// After false only begin() or open() may be called.
#pragma once

#include <cstdint>
#include <span>

#include "decode/file_pieces.h"
#include "decode/jpeg/entropy_decoder.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/scan_segments.h"

namespace stoker {

// A place between two MCUs from which a scan can be read.
struct ScanPoint {
  uint32_t byte = 0;  // counted from the scan's first byte
  uint32_t bit = 0;   // of that byte, 0..7, from the top
  int32_t dc[3] = {};
};

// No picture's DC predictor comes near this; libjpeg fails only at 2^31.
inline constexpr int32_t kMaxDc = 1 << 20;

class ScanReader {
 public:
  // Prepares for `jpeg`, whose data are the rest of `file`. Both must live as long as the scan is
  // read. Of a file in pieces, the data are those of its body.
  bool open(const FilePieces& file, const BaselineJpeg& jpeg, HuffmanCache& tables);
  bool open(std::span<const uint8_t> bytes, const BaselineJpeg& jpeg, HuffmanCache& tables) {
    return open(FilePieces(bytes), jpeg, tables);
  }
  // Prepares for the scan of `other`, too, so that two places of it can be read at once.
  void open(const ScanReader& other);
  // Starts at the first MCU. REQUIRES: open() with a whole file.
  bool begin();
  // Starts at MCU number `mcu`, which is at `point`; its byte counts stuffing and markers. Only
  // data up to the byte `end`, where a later MCU begins, can be read. Returns false if not all of
  // them are there. REQUIRES: open().
  bool enter(const ScanPoint& point, int mcu, size_t end);

  // Finds where the next MCU begins: a place for enter(). Goes over a restart marker that comes
  // first. Counts the stuffing since the last call. REQUIRES: begin() or enter().
  bool here(ScanPoint& place);

  // Sets the memory for the coefficients of row `row` of the component's block rows in the current
  // MCU row.
  void set_coefficients(int component, int row, int16_t* coefficients);

  bool skip(int mcus);              // decodes the next `mcus`, in file order
  bool store(int first, int mcus);  // stores them as MCUs [first, first + mcus) of the block rows

  // Does a.store() and b.store(), at once if it can.
  static bool store_both(ScanReader& a, ScanReader& b, int first, int mcus);

  // Returns how often a long skip was done in two places at once, since the object was made.
  int places_met() const { return met_; }

  void release() { segments_.release(); }
  int64_t scratch_bytes() const { return segments_.scratch_bytes(); }

 private:
  template <class Decode>
  bool run(int mcus, const Decode& decode);
  const uint8_t* limit() const;
  bool has_sane_predictors() const;
  bool next_segment();
  bool is_inside() const;  // every bit that was used lies before the end of the segment
  int64_t bits_used() const;

  size_t scan_bytes_ = 0;
  size_t data_at_ = 0;             // where the data begin in the scan
  std::span<const uint8_t> data_;  // as in the file
  McuLayout layout_;
  bool has_skip_plan_ = false;  // in layout_
  EntropyState state_;
  int restart_interval_ = 0;  // MCUs; 0 = none
  int left_ = 0;              // MCUs until the next restart marker
  ScanSegments segments_;
  size_t segment_ = 0;     // the current one
  uint32_t entered_ = 0;   // where the segments begin in the scan
  size_t counted_ = 0;     // bytes of the segments whose stuffing has been counted
  uint32_t stuffing_ = 0;  // bytes of stuffing in front of these
  int met_ = 0;            // see places_met()
};

}  // namespace stoker
