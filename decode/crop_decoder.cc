#include "decode/crop_decoder.h"

#include <utility>

#include "decode/jpeg/exact_pixels.h"
#include "decode/jpeg/fast_pixels.h"
#include "decode/jpeg/seek_index.h"
#include "decode/resize/row_resizer.h"

namespace stoker {
namespace {

constexpr int64_t kAxesAndTables = int64_t{12} << 20;
// The most bytes of a row of MCUs that is read together with the one before it; and a bound of what
// that takes: a copy, the ends of segments of two bytes each, coefficients.
constexpr size_t kMaxSecondPiece = size_t{256} << 10;
constexpr int64_t kSecondReader = int64_t{3} << 20;
static_assert(int64_t{kMaxSecondPiece + kEntropyPadding} + int64_t{4 * kMaxSecondPiece} +
                  kMaxSecondRow <=
              kSecondReader);
// The scratch that the unused one of FastPixels and ExactPixels may keep for its next crop.
constexpr int64_t kMaxIdleScratch = int64_t{2} << 20;
static_assert(kMaxPlaneScratch + kMaxIdleScratch + int64_t{kMaxScanBytes} +
                  int64_t{4 * kMaxScanSegments} + kSecondReader + kAxesAndTables <=
              kMaxCropScratch);

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
  bool accepts(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out);
  CropPixels& pixels_of(const CropSpec& spec);
  bool finish(int row, RowSlot slot);
  bool read(MutableImageView out);
  bool read(const SeekIndex& index, MutableImageView out);
  bool find(const SeekIndex& index, int row, RowPiece& piece) const;
  bool enter(ScanReader& from, const RowPiece& piece, RowSlot slot);
  bool is_worth_an_index() const;
  bool is_read_with(std::span<const uint8_t> bytes, std::span<const uint8_t> seek_index,
                    MutableImageView out);

  const int64_t max_pixels;
  const PixelPolicy policy;
  BaselineJpeg jpeg;
  HuffmanCache tables;
  ScanReader reader;
  ScanReader second;  // reads the next row of MCUs at the same time, where there is an index
  FastPixels fast;
  ExactPixels exact;
  CropPixels* pixels = nullptr;  // the one of the two that this crop uses
  // What CropPixels::finish_row returned so far.
  bool is_of_picture = true;
  SeekUse seek_use;
};

bool CropDecoder::Impl::accepts(std::span<const uint8_t> bytes, const CropSpec& spec,
                                MutableImageView out) {
  return is_sane(spec) && out.width == spec.window.width && out.height == spec.window.height &&
         parse_baseline(bytes, jpeg) && lies_inside(spec.crop, jpeg.size) &&
         int64_t{jpeg.size.width} * jpeg.size.height <= max_pixels;
}

// FastPixels has only the bilinear filter.
CropPixels& CropDecoder::Impl::pixels_of(const CropSpec& spec) {
  const bool is_fast = policy == PixelPolicy::fast && spec.filter == Filter::bilinear;
  CropPixels& other = is_fast ? static_cast<CropPixels&>(exact) : fast;
  if (other.scratch_bytes() > kMaxIdleScratch) other.release();
  return is_fast ? static_cast<CropPixels&>(fast) : exact;
}

bool CropDecoder::Impl::finish(int row, RowSlot slot) {
  is_of_picture = pixels->finish_row(row, slot);
  if (is_of_picture) pixels->resize(row);
  return is_of_picture;
}

// Decodes all MCUs from the first to the last that libjpeg would read for this crop.
bool CropDecoder::Impl::read(MutableImageView out) {
  pixels->begin(out);
  const Box& mcus = pixels->mcus();
  if (!reader.begin()) return false;
  // What is right of the crop is skipped together with what is left of it in the next row.
  int unread = 0;
  for (int row = 0; row < pixels->checked_rows(); ++row) {
    const int row_in_crop = row - mcus.y;
    if (row_in_crop < 0 || row_in_crop >= mcus.height) {
      if (!reader.skip(std::exchange(unread, 0)) || !reader.skip(jpeg.mcus_across)) return false;
      continue;
    }
    pixels->begin_row(reader, RowSlot::first);
    if (!reader.skip(unread + mcus.x) || !reader.store(0, mcus.width)) return false;
    if (!finish(row_in_crop, RowSlot::first)) return false;
    unread = jpeg.mcus_across - mcus.x - mcus.width;
  }
  return reader.skip(unread);
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

// Decodes only the crop's MCUs, two rows at once where that takes little memory.
bool CropDecoder::Impl::read(const SeekIndex& index, MutableImageView out) {
  pixels->begin(out);
  const int height = pixels->mcus().height, width = pixels->mcus().width;
  const bool has_second = pixels->reserve_second_row();
  second.open(reader);
  for (int row = 0; row < height; ++row) {
    RowPiece piece, next;
    if (!find(index, row, piece) || !enter(reader, piece, RowSlot::first)) return false;
    const bool takes_two = has_second && row + 1 < height && find(index, row + 1, next) &&
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

// Checking the seal costs about 2 % of reading the scan.
bool CropDecoder::Impl::is_worth_an_index() const {
  const Box& mcus = pixels->mcus();
  const int64_t all = int64_t{jpeg.mcus_across} * jpeg.mcus_down;
  const int64_t unread =
      int64_t{jpeg.mcus_across} * mcus.y + int64_t{jpeg.mcus_across - mcus.width} * mcus.height;
  return 16 * unread >= all;
}

// Returns false if there is no index, if it does not belong to these bytes, or if the coefficients
// are those of no picture. The scan is then read from its start.
bool CropDecoder::Impl::is_read_with(std::span<const uint8_t> bytes,
                                     std::span<const uint8_t> seek_index, MutableImageView out) {
  if (seek_index.empty() || !is_worth_an_index()) return false;
  SeekIndex index;
  const bool is_of_file = index.open(seek_index, bytes, jpeg) && read(index, out);
  if (is_of_picture) ++(is_of_file ? seek_use.used : seek_use.refused);
  return is_of_file;
}

CropDecoder::CropDecoder(int64_t max_pixels, PixelPolicy policy)
    : impl_(std::make_unique<Impl>(max_pixels, policy)) {}
CropDecoder::~CropDecoder() = default;

bool CropDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
                         std::span<const uint8_t> seek_index) {
  Impl& d = *impl_;
  if (!d.accepts(bytes, spec, out)) return false;
  d.pixels = &d.pixels_of(spec);
  if (!d.pixels->plan(d.jpeg, spec) || !d.reader.open(bytes, d.jpeg, d.tables)) return false;
  d.is_of_picture = true;
  return d.is_read_with(bytes, seek_index, out) || d.read(out);
}

SeekUse CropDecoder::seek_use() const { return impl_->seek_use; }

int64_t CropDecoder::scratch_bytes() const {
  return impl_->fast.scratch_bytes() + impl_->exact.scratch_bytes() +
         impl_->reader.scratch_bytes() + impl_->second.scratch_bytes() +
         impl_->tables.scratch_bytes();
}

}  // namespace stoker
