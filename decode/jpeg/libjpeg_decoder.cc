#include "decode/jpeg/libjpeg_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "decode/jpeg/headers.h"
#include "decode/jpeg/libjpeg_session.h"
#include "decode/jpeg/progressive_headers.h"
#include "decode/pixel_ops.h"
#include "decode/resize/resize_kernels.h"
#include "decode/scratch_vector.h"

namespace stoker {
namespace {

// libjpeg treats the edges of the requested columns as edges of the image; the chroma upsampling
// sees them up to two pixels inside. More costs nothing: whole blocks are decoded anyway.
constexpr int kUpsamplingReach = 8;

constexpr int kJpegBatchRows = kMaxRowGroup;

// Returns true if there is an end marker at or after `begin`. It searches from the back, because
// the marker is nearly always the last two bytes. FF D9 cannot occur inside entropy-coded data, so
// nothing is found in a file that lost its end; embedded thumbnails, which have their own end
// marker, come before the first scan.
bool has_end_marker(std::span<const uint8_t> bytes, size_t begin) {
  for (size_t i = bytes.size(); i >= begin + 2; --i) {
    if (bytes[i - 1] == 0xD9 && bytes[i - 2] == 0xFF) return true;
  }
  return false;
}

// Returns true if the file is large enough for its header. Every MCU takes at least one bit of
// Huffman code. Other files are refused before libjpeg allocates for them, so the file's size
// bounds the memory, too.
bool can_hold(const jpeg_decompress_struct& cinfo, size_t bytes) {
  if (cinfo.arith_code) return true;
  const int64_t mcu_width = int64_t{8} * cinfo.max_h_samp_factor;
  const int64_t mcu_height = int64_t{8} * cinfo.max_v_samp_factor;
  const int64_t mcus = ((cinfo.image_width + mcu_width - 1) / mcu_width) *
                       ((cinfo.image_height + mcu_height - 1) / mcu_height);
  return mcus <= 8 * static_cast<int64_t>(bytes);
}

// Returns true for a progressive file that lacks scans of the coefficients that libjpeg-turbo would
// then guess from the blocks around (the first 5 or 9 after DC), each version in its own way.
bool lacks_scans(const jpeg_decompress_struct& cinfo) {
  constexpr int kGuessed = 9;
  if (!cinfo.progressive_mode || cinfo.coef_bits == nullptr) return false;
  for (int c = 0; c < cinfo.num_components; ++c) {
    for (int k = 0; k <= kGuessed; ++k) {
      if (cinfo.coef_bits[c][k] != 0) return true;
    }
  }
  return false;
}

// Returns what libjpeg takes of a picture: the coefficients of one with several scans, and some
// rows of blocks with their context.
int64_t libjpeg_bytes(const jpeg_decompress_struct& cinfo) {
  constexpr int64_t kSampling = 4, kBlockRows = 8 + 2, kBlockBytes = 64 * sizeof(JCOEF);
  int64_t bytes = cinfo.image_width * cinfo.num_components * kSampling * (kBlockRows + 1);
  if (jpeg_has_multiple_scans(const_cast<jpeg_decompress_struct*>(&cinfo)) == FALSE) return bytes;
  const auto blocks = [](int64_t side, int factor, int max_factor) {
    const int64_t mcus = (side + 8 * max_factor - 1) / (8 * max_factor);
    return mcus * factor;
  };
  for (int c = 0; c < cinfo.num_components; ++c) {
    const jpeg_component_info& component = cinfo.comp_info[c];
    bytes += kBlockBytes *
             blocks(cinfo.image_width, component.h_samp_factor, cinfo.max_h_samp_factor) *
             blocks(cinfo.image_height, component.v_samp_factor, cinfo.max_v_samp_factor);
  }
  return bytes;
}

// Converts CMYK as Adobe stores it (inverted; Pillow assumes that for every CMYK JPEG) to RGB in
// place, as Pillow's convert("RGB") does.
void cmyk_to_rgb(uint8_t* row, int width) {
  const uint8_t* from = row;
  for (int x = 0; x < width; ++x, from += 4, row += 3) {
    const int light = from[3];
    for (int c = 0; c < 3; ++c) row[c] = ink_on_light(255 - from[c], light);
  }
}

std::string size_text(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

class CopySink final : public RowSink {
 public:
  explicit CopySink(MutableImageView out) : out_(out) {}
  void rows(const uint8_t* first, ptrdiff_t stride_bytes, int count) override {
    for (int r = 0; r < count; ++r, ++row_) {
      std::memcpy(out_.data + row_ * out_.stride_bytes, first + r * stride_bytes,
                  3 * static_cast<size_t>(out_.width));
    }
  }

 private:
  MutableImageView out_;
  int row_ = 0;
};

}  // namespace

struct JpegDecoder::Impl {
  explicit Impl(int64_t most) : max_pixels(most) {}
  DecodeStatus check_size(Size size, size_t offset) const;
  DecodeStatus check_header(Size size) const;
  DecodeStatus check_body(Box region) const;
  DecodeStatus start(Box region);
  DecodeStatus read(Box region, RowSink& sink);
  Size size() const {
    const jpeg_decompress_struct& cinfo = session->cinfo();
    return {static_cast<int>(cinfo.image_width), static_cast<int>(cinfo.image_height)};
  }

  const int64_t max_pixels;
  std::span<const uint8_t> bytes;       // between open() and close()
  std::optional<JpegSession> session;   // between open() and close()
  std::optional<ScratchCharge> charge;  // for libjpeg, between start() and close()
  int left = 0;                         // the image column of the first decoded one
  ScratchVector<uint8_t> rows;          // (kJpegBatchRows, decoded width, 3 or 4) u8
};

DecodeStatus JpegDecoder::Impl::check_size(Size size, size_t offset) const {
  if (int64_t{size.width} * size.height <= max_pixels) return {};
  return {DecodeCode::too_large, static_cast<int64_t>(offset),
          size_text(size) + " pixels; the limit is " + std::to_string(max_pixels)};
}

DecodeStatus JpegDecoder::Impl::check_header(Size size) const {
  const jpeg_decompress_struct& cinfo = session->cinfo();
  const auto offset = static_cast<int64_t>(session->bytes_read());
  const DecodeStatus status = check_size(size, session->bytes_read());
  if (!status.ok()) return status;
  if (cinfo.data_precision != 8) {
    return {DecodeCode::unsupported, offset,
            std::to_string(cinfo.data_precision) + " bits per sample"};
  }
  const int components = cinfo.num_components;
  if (components != 1 && components != 3 && components != 4) {
    return {DecodeCode::unsupported, offset, std::to_string(components) + " colour components"};
  }
  return {};
}

DecodeStatus JpegDecoder::Impl::check_body(Box region) const {
  if (!lies_inside(region, size())) {
    return {DecodeCode::bad_region, -1,
            "a region of " + size_text({region.width, region.height}) + " at " +
                std::to_string(region.x) + "," + std::to_string(region.y) +
                " does not lie inside an image of " + size_text(size())};
  }
  const size_t scan = session->bytes_read();
  const auto end = static_cast<int64_t>(bytes.size());
  if (!has_end_marker(bytes, scan)) return {DecodeCode::truncated, end, "no end marker"};
  if (!can_hold(session->cinfo(), bytes.size() - scan)) {
    return {DecodeCode::truncated, end,
            std::to_string(bytes.size()) + " bytes cannot hold " + size_text(size()) + " pixels"};
  }
  return {};
}

// Moves libjpeg to the first row of the region.
DecodeStatus JpegDecoder::Impl::start(Box region) {
  charge.emplace(libjpeg_bytes(session->cinfo()));
  const bool started = session->guarded([&](jpeg_decompress_struct& cinfo) {
    cinfo.out_color_space = cinfo.num_components == 4 ? JCS_CMYK : JCS_RGB;
    cinfo.dct_method = JDCT_ISLOW;
    cinfo.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&cinfo);  // reads all scans of a multi-scan file
  });
  if (!started) return session->failure();
  if (lacks_scans(session->cinfo())) {
    return {DecodeCode::truncated, static_cast<int64_t>(session->bytes_read()),
            "a progressive JPEG that ends before its last scans"};
  }
  const int image_width = static_cast<int>(session->cinfo().output_width);
  const int begin = std::max(0, region.x - kUpsamplingReach);
  const int end = std::min(image_width, region.x + region.width + kUpsamplingReach);
  JDIMENSION first_column = static_cast<JDIMENSION>(begin);
  JDIMENSION width = static_cast<JDIMENSION>(end - begin);
  const bool cropped = session->guarded(
      [&](jpeg_decompress_struct& cinfo) { jpeg_crop_scanline(&cinfo, &first_column, &width); });
  if (!cropped) return session->failure();
  left = static_cast<int>(first_column);
  const size_t need = size_t{kJpegBatchRows} * width * session->cinfo().output_components;
  if (rows.size() < need) rows.resize(need);
  const bool skipped = session->guarded([&](jpeg_decompress_struct& cinfo) {
    const JDIMENSION above = static_cast<JDIMENSION>(region.y);
    if (above > 0) jpeg_skip_scanlines(&cinfo, above);
    JSAMPROW row = rows.data();
    while (cinfo.output_scanline < above) jpeg_read_scanlines(&cinfo, &row, 1);
  });
  return skipped ? DecodeStatus{} : session->failure();
}

DecodeStatus JpegDecoder::Impl::read(Box region, RowSink& sink) {
  const jpeg_decompress_struct& state = session->cinfo();
  const int channels = state.output_components;
  const size_t stride = static_cast<size_t>(state.output_width) * channels;
  for (int done = 0; done < region.height;) {
    const int batch = std::min(kJpegBatchRows, region.height - done);
    const bool read = session->guarded([&](jpeg_decompress_struct& cinfo) {
      JSAMPROW pointers[kJpegBatchRows];
      for (int r = 0; r < batch; ++r) pointers[r] = rows.data() + r * stride;
      for (int r = 0; r < batch;) {
        r += static_cast<int>(
            jpeg_read_scanlines(&cinfo, pointers + r, static_cast<JDIMENSION>(batch - r)));
      }
    });
    if (!read) return session->failure();
    uint8_t* first = rows.data() + static_cast<size_t>(region.x - left) * channels;
    for (int r = 0; channels == 4 && r < batch; ++r) cmyk_to_rgb(first + r * stride, region.width);
    sink.rows(first, static_cast<ptrdiff_t>(stride), batch);
    done += batch;
  }
  return {};
}

JpegDecoder::JpegDecoder(int64_t max_pixels) : impl_(std::make_unique<Impl>(max_pixels)) {}
JpegDecoder::~JpegDecoder() = default;

DecodeStatus JpegDecoder::info(std::span<const uint8_t> bytes, Size& size) {
  BaselineJpeg jpeg;
  if (parse_baseline(bytes, jpeg)) {
    size = jpeg.size;
    return impl_->check_size(size, jpeg.scan_begin);
  }
  ProgressiveHeaders progressive;
  if (progressive.open(bytes)) {
    size = progressive.jpeg().size;
    return impl_->check_size(size, progressive.scan().begin);
  }
  const DecodeStatus status = open(bytes, size);
  if (status.ok()) close();
  return status;
}

DecodeStatus JpegDecoder::open(std::span<const uint8_t> bytes, Size& size) {
  if (bytes.empty()) return {DecodeCode::empty, 0, "no bytes"};
  DecodeStatus status;
  impl_->bytes = bytes;
  impl_->session.emplace(bytes);
  if (impl_->session->read_header()) {
    size = impl_->size();
    status = impl_->check_header(size);
  } else {
    status = impl_->session->failure();
  }
  if (!status.ok()) close();
  return status;
}

DecodeStatus JpegDecoder::read(Box region, RowSink& sink) {
  DecodeStatus status = impl_->check_body(region);
  if (status.ok()) status = impl_->start(region);
  if (status.ok()) status = impl_->read(region, sink);
  close();
  return status;
}

void JpegDecoder::close() {
  impl_->session.reset();
  impl_->charge.reset();
}

DecodeStatus JpegDecoder::decode(std::span<const uint8_t> bytes, Box region, MutableImageView out) {
  if (out.width != region.width || out.height != region.height) std::abort();
  Size size;
  DecodeStatus status = open(bytes, size);
  if (!status.ok()) return status;
  CopySink sink(out);
  return read(region, sink);
}

int64_t JpegDecoder::scratch_bytes() const { return static_cast<int64_t>(impl_->rows.capacity()); }

}  // namespace stoker
