// Our parser of JPEG headers against libjpeg's: libjpeg accepts what ours accepts, and reads the
// same values; ImageDecoder::info reports for every file what JpegDecoder reports.
#include <cstdlib>
#include <cstring>

#include "decode/image_decoder.h"
#include "decode/jpeg/headers.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "decode/jpeg/libjpeg_session.h"
#include "decode/jpeg/progressive_headers.h"
#include "decode/orientation.h"

namespace stoker {
namespace {

constexpr int64_t kMaxPixels = 1 << 24;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_same_table(const HuffmanSpec& ours, const JHUFF_TBL* theirs) {
  require(theirs != nullptr && std::memcmp(ours.counts, theirs->bits + 1, 16) == 0);
  require(std::memcmp(ours.values, theirs->huffval, static_cast<size_t>(ours.value_count)) == 0);
}

void require_same_frame(const JpegFrame& ours, const jpeg_decompress_struct& theirs) {
  require(theirs.image_width == static_cast<JDIMENSION>(ours.size.width));
  require(theirs.image_height == static_cast<JDIMENSION>(ours.size.height));
  require(theirs.num_components == ours.component_count && theirs.data_precision == 8);
  require(!theirs.arith_code);
  require(theirs.jpeg_color_space == (ours.component_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr));
  for (int c = 0; c < ours.component_count; ++c) {
    const JpegComponent& component = ours.components[c];
    const jpeg_component_info& info = theirs.comp_info[c];
    if (ours.component_count > 1) {
      require(info.h_samp_factor == component.across && info.v_samp_factor == component.down);
    }
    require(info.quant_tbl_no == component.quant);
    const JQUANT_TBL* quant = theirs.quant_tbl_ptrs[component.quant];
    require(quant != nullptr);
    for (int i = 0; i < kBlockSize; ++i) {
      require(static_cast<int16_t>(quant->quantval[i]) == ours.quant[component.quant][i]);
    }
  }
}

void require_same(const BaselineJpeg& ours, const jpeg_decompress_struct& theirs) {
  require_same_frame(ours, theirs);
  require(!theirs.progressive_mode);
  require(theirs.restart_interval == static_cast<unsigned>(ours.restart_interval));
  for (int c = 0; c < ours.component_count; ++c) {
    const JpegComponent& component = ours.components[c];
    const jpeg_component_info& info = theirs.comp_info[c];
    require_same_table(ours.dc[component.dc], theirs.dc_huff_tbl_ptrs[info.dc_tbl_no]);
    require_same_table(ours.ac[component.ac], theirs.ac_huff_tbl_ptrs[info.ac_tbl_no]);
  }
}

// Only the tables of the first scan are defined.
void require_same(const ProgressiveHeaders& ours, const jpeg_decompress_struct& theirs) {
  const ProgressiveJpeg& jpeg = ours.jpeg();
  const ScanHeader& scan = ours.scan();
  require_same_frame(jpeg, theirs);
  require(theirs.progressive_mode);
  require(theirs.restart_interval == static_cast<unsigned>(jpeg.restart_interval));
  require(theirs.comps_in_scan == scan.count && theirs.Ss == scan.first && theirs.Se == scan.last);
  require(theirs.Ah == scan.high && theirs.Al == scan.low);
  for (int i = 0; i < scan.count; ++i) {
    require(theirs.cur_comp_info[i] == &theirs.comp_info[scan.components[i]]);
    require_same_table(jpeg.dc[scan.dc[i]], theirs.dc_huff_tbl_ptrs[scan.dc[i]]);
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stoker;
  static JpegDecoder decoder(kMaxPixels);
  static ImageDecoder images({.exif = ExifPolicy::apply, .max_pixels = kMaxPixels});
  const std::span<const uint8_t> file(data, size);
  if (size < 3 || std::memcmp(data, "\xFF\xD8\xFF", 3) != 0) return 0;

  static BaselineJpeg jpeg;
  if (parse_baseline(file, jpeg)) {
    JpegSession session(file);
    require(session.read_header() && session.bytes_read() == jpeg.scan_begin);
    require_same(jpeg, session.cinfo());
  }

  static ProgressiveHeaders progressive;
  if (progressive.open(file)) {
    JpegSession session(file);
    require(session.read_header() && session.bytes_read() == progressive.scan().begin);
    require_same(progressive, session.cinfo());
  }

  Size stored;
  const DecodeStatus expected = decoder.open(file, stored);
  decoder.close();
  ImageInfo info;
  const DecodeStatus status = images.info(file, info);
  require(status.code == expected.code && status.message == expected.message);
  if (status.ok()) require(info.size == oriented_size(stored, info.orientation));
  return 0;
}
