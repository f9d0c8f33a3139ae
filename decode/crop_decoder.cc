#include "decode/crop_decoder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "decode/jpeg/exact_pixels.h"
#include "decode/jpeg/fast_pixels.h"
#include "decode/jpeg/progressive_reader.h"
#include "decode/jpeg/seek_index.h"
#include "decode/resize/row_resizer.h"

namespace stoker {
namespace {

// Places of 8,192 rows, twice as many bytes while a vector grows, and their index.
constexpr int64_t kRecording = 2 * 8192 * int64_t{sizeof(ScanPoint)} + 2 * kMaxRowIndexBytes;
constexpr int64_t kAxesAndTables = (int64_t{12} << 20) - kRecording;
// The most bytes of a row of MCUs that is read together with the one before it; and a bound of what
// that takes: a copy, the ends of segments of two bytes each, coefficients.
constexpr size_t kMaxSecondPiece = size_t{256} << 10;
constexpr int64_t kSecondReader = int64_t{3} << 20;
static_assert(int64_t{kMaxSecondPiece + kEntropyPadding} + int64_t{4 * kMaxSecondPiece} +
                  kMaxSecondRow <=
              kSecondReader);
// The scratch that the unused one of FastPixels and ExactPixels, and of the two readers, may keep
// for its next crop.
constexpr int64_t kMaxIdleScratch = int64_t{1} << 20;
constexpr int64_t kMaxKeptCoefficients = int64_t{2} << 20;
static_assert(kMaxPlaneScratch + 2 * kMaxIdleScratch + int64_t{kMaxScanBytes} +
                  int64_t{4 * kMaxScanSegments} + kMaxKeptCoefficients + kSecondReader +
                  kAxesAndTables + kRecording <=
              kMaxCropScratch);
constexpr int kFewRows = 8;  // an eighth of an image

}  // namespace

// The part of the data that holds the crop's MCUs of one row.
struct RowPiece {
  ScanPoint from;
  int mcu = 0;     // at `from`
  int before = 0;  // MCUs before the crop's first
  size_t end = 0;
};

struct CropDecoder::Impl {
  Impl(int64_t most, PixelPolicy p) : max_pixels(most), policy(p), exact(p) {}
  bool plan(const JpegFrame& frame, const CropSpec& spec);
  bool decode_baseline(const FilePieces& file, std::span<const uint8_t> seek_index,
                       MutableImageView out);
  bool decode_progressive(MutableImageView out);
  CropPixels& pixels_of(const CropSpec& spec);
  bool finish(int row, RowSlot slot);
  bool read(std::span<const uint8_t> bytes, MutableImageView out);
  bool read(const SeekIndex& index, const FilePieces& file, MutableImageView out);
  bool read_rows(int first);
  bool read_known_rows(const SeekIndex& index, int rows);
  void begin_recording(std::span<const uint8_t> bytes, const SeekIndex* index);
  bool note_place();
  bool find(const SeekIndex& index, int row, RowPiece& piece) const;
  bool enter(ScanReader& from, const RowPiece& piece, RowSlot slot);
  bool is_worth_an_index(int rows) const;
  bool is_read_with(const FilePieces& file, std::span<const uint8_t> seek_index,
                    MutableImageView out);

  const int64_t max_pixels;
  const PixelPolicy policy;
  BaselineJpeg jpeg;
  HuffmanCache tables;
  ScanReader reader;
  ScanReader second;  // reads the next row of MCUs at the same time, where there is an index
  ProgressiveReader progressive;
  FastPixels fast;
  ExactPixels exact;
  CropPixels* pixels = nullptr;  // the one of the two that this crop uses
  // The results of CropPixels::finish_row so far.
  bool is_of_picture = true;
  SeekUse seek_use;
  size_t least_recorded = ~size_t{0};  // bytes of a scan
  bool records_this = false;           // the rows that are read now
  int known_rows = 0;                  // of MCUs that the given index has
  SeekRecorder recorder;
  std::vector<uint8_t> recorded;
};

// FastPixels has only the bilinear filter.
CropPixels& CropDecoder::Impl::pixels_of(const CropSpec& spec) {
  const bool is_fast = policy == PixelPolicy::fast && spec.filter == Filter::bilinear;
  CropPixels& other = is_fast ? static_cast<CropPixels&>(exact) : fast;
  if (other.scratch_bytes() > kMaxIdleScratch) other.release();
  return is_fast ? static_cast<CropPixels&>(fast) : exact;
}

// REQUIRES: spec is sane.
bool CropDecoder::Impl::plan(const JpegFrame& frame, const CropSpec& spec) {
  if (!lies_inside(spec.crop, frame.size) ||
      int64_t{frame.size.width} * frame.size.height > max_pixels) {
    return false;
  }
  pixels = &pixels_of(spec);
  is_of_picture = true;
  return pixels->plan(frame, spec);
}

bool CropDecoder::Impl::finish(int row, RowSlot slot) {
  is_of_picture = pixels->finish_row(row, slot);
  if (is_of_picture) pixels->resize(row);
  return is_of_picture;
}

// Decodes all MCUs from the first to the last that libjpeg would read for this crop.
bool CropDecoder::Impl::read(std::span<const uint8_t> bytes, MutableImageView out) {
  begin_recording(bytes, nullptr);
  pixels->begin(out);
  return reader.begin() && read_rows(0);
}

// The reader is at the first MCU of row `first`.
bool CropDecoder::Impl::read_rows(int first) {
  const Box& mcus = pixels->mcus();
  const int end = pixels->checked_rows();
  // Rows above the crop are skipped at once, and blocks right of it together with those left
  // of it in the next row, unless the places between them are noted.
  int unread = 0;
  // Two rows are stored before they become samples and pixels, which push the Huffman tables out of
  // the first cache.
  const bool takes_two = pixels->reserve_second_row();
  bool has_first = false;  // is stored, and waits for the second
  for (int row = first; row < end; ++row) {
    if (records_this && row >= recorder.places() &&
        !(reader.skip(std::exchange(unread, 0)) && note_place())) {
      return false;
    }
    const int row_in_crop = row - mcus.y;
    if (row_in_crop < 0 || row_in_crop >= mcus.height) {
      unread += jpeg.mcus_across;
      continue;
    }
    const RowSlot slot = has_first ? RowSlot::second : RowSlot::first;
    pixels->begin_row(reader, slot);
    if (!reader.skip(unread + mcus.x) || !reader.store(0, mcus.width)) return false;
    if (has_first && !finish(row_in_crop - 1, RowSlot::first)) return false;
    has_first = takes_two && !has_first && row_in_crop + 1 < mcus.height;
    if (!has_first && !finish(row_in_crop, slot)) return false;
    unread = jpeg.mcus_across - mcus.x - mcus.width;
  }
  if (!reader.skip(unread)) return false;
  // Damage right behind the last row does not count for this crop, but would for the next.
  const bool is_recorded = records_this && (end == jpeg.mcus_down || note_place());
  if (is_recorded) recorder.finish(end, recorded);
  return true;
}

bool CropDecoder::Impl::note_place() {
  ScanPoint place;
  if (!reader.here(place)) return false;
  recorder.add(place);
  return true;
}

bool CropDecoder::Impl::find(const SeekIndex& index, int row, RowPiece& piece) const {
  const Box& mcus = pixels->mcus();
  const int y = mcus.y + row;
  const int first = mcus.x / index.step();
  const int behind = (mcus.x + mcus.width + index.step() - 1) / index.step();
  ScanPoint to;
  if (!index.find(y, first, piece.from)) return false;
  const bool is_last = y + 1 == jpeg.mcus_down && behind == index.groups();
  if (!is_last && !index.find(y, behind, to)) return false;
  piece.end = is_last ? kMaxScanBytes : to.byte;
  piece.mcu = y * jpeg.mcus_across + first * index.step();
  piece.before = mcus.x - first * index.step();
  return true;
}

bool CropDecoder::Impl::enter(ScanReader& from, const RowPiece& piece, RowSlot slot) {
  pixels->begin_row(from, slot);
  return from.enter(piece.from, piece.mcu, piece.end) && from.skip(piece.before);
}

// Decodes only the crop's MCUs of the rows that the index has, and every MCU of those behind
// them.
bool CropDecoder::Impl::read(const SeekIndex& index, const FilePieces& file, MutableImageView out) {
  if (!file.is_whole() && pixels->checked_rows() > index.rows()) return false;
  pixels->begin(out);
  const Box& mcus = pixels->mcus();
  const int known = std::clamp(index.rows() - mcus.y, 0, mcus.height);
  if (!read_known_rows(index, known)) return false;
  if (pixels->checked_rows() <= index.rows()) return true;
  ScanPoint from;
  begin_recording(file.head, &index);
  return index.find(index.rows(), 0, from) &&
         reader.enter(from, index.rows() * jpeg.mcus_across, kMaxScanBytes) &&
         read_rows(index.rows());
}

// Two rows at once where that takes little memory.
bool CropDecoder::Impl::read_known_rows(const SeekIndex& index, int rows) {
  const int width = pixels->mcus().width;
  const bool has_second = pixels->reserve_second_row();
  second.open(reader);
  for (int row = 0; row < rows; ++row) {
    RowPiece piece, next;
    if (!find(index, row, piece) || !enter(reader, piece, RowSlot::first)) return false;
    const bool takes_two = has_second && row + 1 < rows && find(index, row + 1, next) &&
                           next.end - next.from.byte <= kMaxSecondPiece;
    if (!takes_two) {
      if (!reader.store(0, width) || !finish(row, RowSlot::first)) return false;
      continue;
    }
    if (!enter(second, next, RowSlot::second) ||
        !ScanReader::store_both(reader, second, 0, width) || !finish(row, RowSlot::first) ||
        !finish(++row, RowSlot::second)) {
      return false;
    }
  }
  return true;
}

// An index is not made anew for a few more rows. `index`: has the first rows, and the reader
// enters at its last place; or null.
void CropDecoder::Impl::begin_recording(std::span<const uint8_t> bytes, const SeekIndex* index) {
  const int rows = pixels->checked_rows();
  const bool is_more =
      rows == jpeg.mcus_down ? rows > known_rows : rows - known_rows > jpeg.mcus_down / kFewRows;
  records_this =
      is_more && bytes.size() - jpeg.scan_begin >= least_recorded &&
      (index ? recorder.begin(bytes, jpeg, *index) : recorder.begin(bytes, jpeg, SeekStep::row));
}

// Checking the seal costs about 2 % of reading the scan.
bool CropDecoder::Impl::is_worth_an_index(int rows) const {
  const Box& mcus = pixels->mcus();
  const int64_t all = int64_t{jpeg.mcus_across} * jpeg.mcus_down;
  const int64_t above = std::min(mcus.y, rows);
  const int64_t within = std::clamp(rows - mcus.y, 0, mcus.height);
  const int64_t unread = jpeg.mcus_across * above + (jpeg.mcus_across - mcus.width) * within;
  return 16 * unread >= all;
}

// Returns false if there is no index, if it does not belong to this file, or if the coefficients
// are those of no picture. The scan is then read from its start.
bool CropDecoder::Impl::is_read_with(const FilePieces& file, std::span<const uint8_t> seek_index,
                                     MutableImageView out) {
  known_rows = claimed_seek_rows(seek_index);
  if (seek_index.empty() || (file.is_whole() && !is_worth_an_index(known_rows))) return false;
  SeekIndex index;
  const bool is_of_file =
      index.open(seek_index) && index.is_of(file, jpeg) && read(index, file, out);
  if (is_of_file) {
    ++seek_use.used;
    seek_use.unread_bytes += static_cast<int64_t>(file.file_bytes - file.read_bytes());
  } else if (is_of_picture && file.is_whole()) {
    ++seek_use.refused;
  }
  if (!is_of_file) known_rows = 0;
  return is_of_file;
}

bool CropDecoder::Impl::decode_baseline(const FilePieces& file, std::span<const uint8_t> seek_index,
                                        MutableImageView out) {
  if (progressive.scan_bytes() > kMaxIdleScratch) progressive.release_scan();
  return reader.open(file, jpeg, tables) &&
         (is_read_with(file, seek_index, out) || (file.is_whole() && read(file.head, out)));
}

bool CropDecoder::Impl::decode_progressive(MutableImageView out) {
  if (reader.scratch_bytes() > kMaxIdleScratch) reader.release();
  const Box& mcus = pixels->mcus();
  bool is_sound =
      progressive.read(mcus, kMaxKeptCoefficients + kProgressiveBytesPerPixel * max_pixels);
  if (is_sound) pixels->begin(out);
  for (int row = 0; is_sound && row < mcus.height; ++row) {
    pixels->begin_row(progressive.coefficients(), row);
    is_sound = finish(row, RowSlot::first);
  }
  if (progressive.coefficients().scratch_bytes() > kMaxKeptCoefficients) {
    progressive.release_coefficients();
  }
  return is_sound;
}

CropDecoder::CropDecoder(int64_t max_pixels, PixelPolicy policy)
    : impl_(std::make_unique<Impl>(max_pixels, policy)) {}
CropDecoder::~CropDecoder() = default;

bool CropDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
                         std::span<const uint8_t> seek_index) {
  return decode_pieces(FilePieces(bytes), spec, out, seek_index);
}

bool CropDecoder::decode_pieces(const FilePieces& file, const CropSpec& spec, MutableImageView out,
                                std::span<const uint8_t> seek_index) {
  Impl& d = *impl_;
  d.recorded.clear();
  if (!is_sane(spec) || out.width != spec.window.width || out.height != spec.window.height) {
    return false;
  }
  if (parse_baseline(file.head, d.jpeg)) {
    return d.plan(d.jpeg, spec) && d.decode_baseline(file, seek_index, out);
  }
  return file.is_whole() && d.progressive.open(file.head) && d.plan(d.progressive.jpeg(), spec) &&
         d.decode_progressive(out);
}

void CropDecoder::record_places(size_t scan_bytes) { impl_->least_recorded = scan_bytes; }

std::span<const uint8_t> CropDecoder::recorded_index() const { return impl_->recorded; }

SeekUse CropDecoder::seek_use() const { return impl_->seek_use; }

int64_t CropDecoder::scratch_bytes() const {
  return impl_->fast.scratch_bytes() + impl_->exact.scratch_bytes() +
         impl_->reader.scratch_bytes() + impl_->second.scratch_bytes() +
         impl_->progressive.scratch_bytes() + impl_->tables.scratch_bytes() +
         impl_->recorder.scratch_bytes() + static_cast<int64_t>(impl_->recorded.capacity());
}

}  // namespace stoker
