#include "decode/crop_decoder.h"

#include "decode/jpeg/exact_pixels.h"
#include "decode/jpeg/fast_pixels.h"
#include "decode/jpeg/progressive_reader.h"
#include "decode/jpeg/seek_index.h"
#include "decode/resize/row_resizer.h"

namespace stoker {
namespace {

constexpr int64_t kAxesAndTables = int64_t{13} << 20;
// The scratch that the unused one of FastPixels and ExactPixels, and of the two readers, may keep
// for its next crop.
constexpr int64_t kMaxIdleScratch = int64_t{1} << 20;
constexpr int64_t kMaxKeptCoefficients = int64_t{2} << 20;
static_assert(kMaxPlaneScratch + 2 * kMaxIdleScratch + int64_t{kMaxScanBytes} +
                  int64_t{4 * kMaxScanSegments} + kMaxKeptCoefficients + kAxesAndTables <=
              kMaxCropScratch);

}  // namespace

struct CropDecoder::Impl {
  Impl(int64_t most, PixelPolicy p) : max_pixels(most), policy(p), exact(p) {}
  bool plan(const JpegFrame& frame, const CropSpec& spec);
  bool decode_baseline(std::span<const uint8_t> bytes, std::span<const uint8_t> seek_index,
                       MutableImageView out);
  bool decode_progressive(MutableImageView out);
  CropPixels& pixels_of(const CropSpec& spec);
  bool finish(int row);
  bool read(MutableImageView out);
  bool read(const SeekIndex& index, MutableImageView out);
  bool is_worth_an_index() const;
  bool is_read_with(std::span<const uint8_t> bytes, std::span<const uint8_t> seek_index,
                    MutableImageView out);

  const int64_t max_pixels;
  const PixelPolicy policy;
  BaselineJpeg jpeg;
  HuffmanCache tables;
  ScanReader reader;
  ProgressiveReader progressive;
  FastPixels fast;
  ExactPixels exact;
  CropPixels* pixels = nullptr;  // the one of the two that this crop uses
  // What CropPixels::finish_row returned so far.
  bool is_of_picture = true;
  SeekUse seek_use;
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

bool CropDecoder::Impl::finish(int row) {
  is_of_picture = pixels->finish_row(row);
  if (is_of_picture) pixels->resize(row);
  return is_of_picture;
}

// Decodes all MCUs from the first to the last that libjpeg would read for this crop.
bool CropDecoder::Impl::read(MutableImageView out) {
  pixels->begin(out);
  const Box& mcus = pixels->mcus();
  const int right = jpeg.mcus_across - mcus.x - mcus.width;
  if (!reader.begin()) return false;
  for (int row = 0; row < pixels->checked_rows(); ++row) {
    const int row_in_crop = row - mcus.y;
    if (row_in_crop < 0 || row_in_crop >= mcus.height) {
      if (!reader.skip(jpeg.mcus_across)) return false;
      continue;
    }
    pixels->begin_row(reader);
    if (!reader.skip(mcus.x) || !reader.store(0, mcus.width) || !reader.skip(right)) return false;
    if (!finish(row_in_crop)) return false;
  }
  return true;
}

// Decodes only the crop's MCUs.
bool CropDecoder::Impl::read(const SeekIndex& index, MutableImageView out) {
  pixels->begin(out);
  const Box& mcus = pixels->mcus();
  const int first = mcus.x / index.step();
  const int behind = (mcus.x + mcus.width + index.step() - 1) / index.step();
  const int begin = first * index.step();
  for (int row = 0; row < mcus.height; ++row) {
    const int y = mcus.y + row;
    ScanPoint from, to;
    if (!index.find(y, first, from)) return false;
    const bool is_last = y + 1 == jpeg.mcus_down && behind == index.groups();
    if (!is_last && !index.find(y, behind, to)) return false;
    const size_t end = is_last ? kMaxScanBytes : to.byte;
    pixels->begin_row(reader);
    if (!reader.enter(from, y * jpeg.mcus_across + begin, end) || !reader.skip(mcus.x - begin) ||
        !reader.store(0, mcus.width)) {
      return false;
    }
    if (!finish(row)) return false;
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

bool CropDecoder::Impl::decode_baseline(std::span<const uint8_t> bytes,
                                        std::span<const uint8_t> seek_index, MutableImageView out) {
  if (progressive.scan_bytes() > kMaxIdleScratch) progressive.release_scan();
  return reader.open(bytes, jpeg, tables) && (is_read_with(bytes, seek_index, out) || read(out));
}

bool CropDecoder::Impl::decode_progressive(MutableImageView out) {
  if (reader.scratch_bytes() > kMaxIdleScratch) reader.release();
  const Box& mcus = pixels->mcus();
  bool is_sound =
      progressive.read(mcus, kMaxKeptCoefficients + kProgressiveBytesPerPixel * max_pixels);
  if (is_sound) pixels->begin(out);
  for (int row = 0; is_sound && row < mcus.height; ++row) {
    pixels->begin_row(progressive.coefficients(), row);
    is_sound = finish(row);
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
  Impl& d = *impl_;
  if (!is_sane(spec) || out.width != spec.window.width || out.height != spec.window.height) {
    return false;
  }
  if (parse_baseline(bytes, d.jpeg)) {
    return d.plan(d.jpeg, spec) && d.decode_baseline(bytes, seek_index, out);
  }
  return d.progressive.open(bytes) && d.plan(d.progressive.jpeg(), spec) &&
         d.decode_progressive(out);
}

SeekUse CropDecoder::seek_use() const { return impl_->seek_use; }

int64_t CropDecoder::scratch_bytes() const {
  return impl_->fast.scratch_bytes() + impl_->exact.scratch_bytes() +
         impl_->reader.scratch_bytes() + impl_->progressive.scratch_bytes() +
         impl_->tables.scratch_bytes();
}

}  // namespace stoker
