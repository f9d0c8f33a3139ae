#include "decode/crop_decoder.h"

#include "decode/crop_planes.h"
#include "decode/row_resizer.h"
#include "decode/seek_index.h"

namespace stoker {
namespace {

constexpr int64_t kAxesAndTables = int64_t{9} << 20;
static_assert(kMaxPlaneScratch + int64_t{kMaxScanBytes} + int64_t{4 * kMaxScanSegments} +
                  kAxesAndTables <=
              kMaxCropScratch);

}  // namespace

struct CropDecoder::Impl {
  explicit Impl(int64_t most) : max_pixels(most) {}
  bool accepts(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out);
  bool read(MutableImageView out);
  bool read(const SeekIndex& index, MutableImageView out);
  bool is_worth_an_index() const;
  bool is_read_with(std::span<const uint8_t> bytes, std::span<const uint8_t> seek_index,
                    MutableImageView out);

  const int64_t max_pixels;
  BaselineJpeg jpeg;
  HuffmanCache tables;
  ScanReader reader;
  CropPlanes planes;
  SeekUse seek_use;
};

bool CropDecoder::Impl::accepts(std::span<const uint8_t> bytes, const CropSpec& spec,
                                MutableImageView out) {
  return is_sane(spec) && spec.filter == Filter::bilinear && out.width == spec.window.width &&
         out.height == spec.window.height && parse_baseline(bytes, jpeg) &&
         lies_inside(spec.crop, jpeg.size) &&
         int64_t{jpeg.size.width} * jpeg.size.height <= max_pixels;
}

// Decodes all MCUs from the first to the last that libjpeg would read for this crop.
bool CropDecoder::Impl::read(MutableImageView out) {
  planes.begin(out);
  const Box& mcus = planes.mcus();
  const int right = jpeg.mcus_across - mcus.x - mcus.width;
  if (!reader.begin()) return false;
  for (int row = 0; row < planes.checked_rows(); ++row) {
    const int row_in_crop = row - mcus.y;
    if (row_in_crop < 0 || row_in_crop >= mcus.height) {
      if (!reader.skip(jpeg.mcus_across)) return false;
      continue;
    }
    planes.begin_row(reader);
    if (!reader.skip(mcus.x) || !reader.store(0, mcus.width) || !reader.skip(right)) return false;
    planes.finish_row(row_in_crop);
    planes.resize(row_in_crop);
  }
  return true;
}

// The crop's MCUs alone.
bool CropDecoder::Impl::read(const SeekIndex& index, MutableImageView out) {
  planes.begin(out);
  const Box& mcus = planes.mcus();
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
    planes.begin_row(reader);
    if (!reader.enter(from, y * jpeg.mcus_across + begin, end) || !reader.skip(mcus.x - begin) ||
        !reader.store(0, mcus.width)) {
      return false;
    }
    planes.finish_row(row);
    planes.resize(row);
  }
  return true;
}

// The seal costs as much as some 2 % of the scan.
bool CropDecoder::Impl::is_worth_an_index() const {
  const Box& mcus = planes.mcus();
  const int64_t all = int64_t{jpeg.mcus_across} * jpeg.mcus_down;
  const int64_t unread =
      int64_t{jpeg.mcus_across} * mcus.y + int64_t{jpeg.mcus_across - mcus.width} * mcus.height;
  return 16 * unread >= all;
}

// False: no index, or none of these bytes. Then the scan is read from its begin.
bool CropDecoder::Impl::is_read_with(std::span<const uint8_t> bytes,
                                     std::span<const uint8_t> seek_index, MutableImageView out) {
  if (seek_index.empty() || !is_worth_an_index()) return false;
  SeekIndex index;
  const bool is_of_file = index.open(seek_index, bytes, jpeg) && read(index, out);
  ++(is_of_file ? seek_use.used : seek_use.refused);
  return is_of_file;
}

CropDecoder::CropDecoder(int64_t max_pixels) : impl_(std::make_unique<Impl>(max_pixels)) {}
CropDecoder::~CropDecoder() = default;

bool CropDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec, MutableImageView out,
                         std::span<const uint8_t> seek_index) {
  Impl& d = *impl_;
  if (!d.accepts(bytes, spec, out) || !d.planes.plan(d.jpeg, spec) ||
      !d.reader.open(bytes, d.jpeg, d.tables)) {
    return false;
  }
  return d.is_read_with(bytes, seek_index, out) || d.read(out);
}

SeekUse CropDecoder::seek_use() const { return impl_->seek_use; }

int64_t CropDecoder::scratch_bytes() const {
  return impl_->planes.scratch_bytes() + impl_->reader.scratch_bytes() +
         impl_->tables.scratch_bytes();
}

}  // namespace stoker
