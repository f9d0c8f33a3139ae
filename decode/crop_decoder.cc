#include "decode/crop_decoder.h"

#include "decode/crop_planes.h"
#include "decode/row_resizer.h"

namespace stoker {
namespace {

// As JpegDecoder, which also looks further back. What ends otherwise is its business.
bool ends_with_end_marker(std::span<const uint8_t> bytes, size_t scan_begin) {
  const size_t size = bytes.size();
  return size >= scan_begin + 2 && bytes[size - 2] == 0xFF && bytes[size - 1] == 0xD9;
}

constexpr int64_t kAxesAndTables = int64_t{9} << 20;
static_assert(kMaxPlaneScratch + int64_t{kMaxScanBytes} + int64_t{4 * kMaxScanSegments} +
                  kAxesAndTables <=
              kMaxCropScratch);

}  // namespace

struct CropDecoder::Impl {
  explicit Impl(int64_t most) : max_pixels(most) {}
  bool accepts(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out);
  bool read();

  const int64_t max_pixels;
  BaselineJpeg jpeg;
  HuffmanCache tables;
  ScanReader reader;
  CropPlanes planes;
};

bool CropDecoder::Impl::accepts(std::span<const uint8_t> bytes, const CropSpec& spec,
                                MutableImageView out) {
  if (!is_sane(spec) || spec.filter != Filter::bilinear || out.width != spec.window.width ||
      out.height != spec.window.height || !parse_baseline(bytes, jpeg) ||
      !lies_inside(spec.crop, jpeg.size) ||
      int64_t{jpeg.size.width} * jpeg.size.height > max_pixels ||
      !ends_with_end_marker(bytes, jpeg.scan_begin)) {
    return false;
  }
  // Every MCU takes a bit at least; a header that promises more than the file can hold is a trap.
  const int64_t bits = 8 * static_cast<int64_t>(bytes.size() - jpeg.scan_begin);
  return int64_t{jpeg.mcus_across} * jpeg.mcus_down <= bits;
}

// All MCUs from the first to the last that libjpeg would read for this crop.
bool CropDecoder::Impl::read() {
  const Box& mcus = planes.mcus();
  const int right = jpeg.mcus_across - mcus.x - mcus.width;
  for (int row = 0; row < planes.checked_rows(); ++row) {
    const int row_in_crop = row - mcus.y;
    if (row_in_crop < 0 || row_in_crop >= mcus.height) {
      if (!reader.skip(jpeg.mcus_across)) return false;
      continue;
    }
    planes.begin_row(reader);
    if (!reader.skip(mcus.x) || !reader.store(0, mcus.width) || !reader.skip(right)) return false;
    planes.finish_row(row_in_crop);
  }
  return true;
}

CropDecoder::CropDecoder(int64_t max_pixels) : impl_(std::make_unique<Impl>(max_pixels)) {}
CropDecoder::~CropDecoder() = default;

bool CropDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec,
                         MutableImageView out) {
  Impl& d = *impl_;
  if (!d.accepts(bytes, spec, out) || !d.planes.plan(d.jpeg, spec) ||
      !d.reader.begin(bytes, d.jpeg, d.tables) || !d.read()) {
    return false;
  }
  d.planes.resize(out);
  return true;
}

int64_t CropDecoder::scratch_bytes() const {
  return impl_->planes.scratch_bytes() + impl_->reader.scratch_bytes() +
         impl_->tables.scratch_bytes();
}

}  // namespace stoker
