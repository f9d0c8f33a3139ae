#include "decode/image_decoder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "decode/byte_reader.h"
#include "decode/codec/avif_file.h"
#include "decode/codec/codec_plugin.h"
#include "decode/codec/decoder.h"
#include "decode/codec/file_headers.h"
#include "decode/codec/frame.h"
#include "decode/codec/pnm_file.h"
#include "decode/jpeg/libjpeg_decoder.h"
#include "decode/orientation.h"
#include "decode/resize/resize_kernels.h"
#include "decode/resize/row_resizer.h"

namespace stoker {
namespace {

// Pixels; JPEG, WebP and GIF have no larger pictures.
constexpr int kMaxPictureSide = 65535;

ImageFormat sniff(std::span<const uint8_t> bytes) {
  if (begins_with(bytes, "\xFF\xD8\xFF", 3)) return ImageFormat::jpeg;
  if (begins_with(bytes, "\x89PNG\r\n\x1A\n", 8)) return ImageFormat::png;
  if (begins_with(bytes, "BM", 2)) return ImageFormat::bmp;
  if (begins_with(bytes, "RIFF", 4) && begins_with(bytes, "WEBP", 4, 8)) return ImageFormat::webp;
  if (begins_with(bytes, "II*\0", 4) || begins_with(bytes, "MM\0*", 4)) return ImageFormat::tiff;
  if (begins_with(bytes, "II+\0", 4) || begins_with(bytes, "MM\0+", 4)) return ImageFormat::tiff;
  if (begins_with(bytes, "GIF87a", 6) || begins_with(bytes, "GIF89a", 6)) return ImageFormat::gif;
  if (is_avif(bytes)) return ImageFormat::avif;
  if (is_jpeg2000(bytes)) return ImageFormat::jpeg2000;
  if (is_pnm(bytes)) return ImageFormat::pnm;
  return ImageFormat::unknown;
}

std::string text(Box box) {
  return std::to_string(box.width) + "x" + std::to_string(box.height) + " at " +
         std::to_string(box.x) + "," + std::to_string(box.y);
}

std::string text(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

DecodeStatus check_spec(const CropSpec& spec, Size image) {
  if (!lies_inside(spec.crop, image)) {
    return {DecodeCode::bad_region, -1,
            "the crop " + text(spec.crop) + " does not lie inside an image of " + text(image)};
  }
  if (!lies_inside(spec.window, spec.resized)) {
    return {DecodeCode::bad_region, -1,
            "the window " + text(spec.window) + " does not lie inside " + text(spec.resized)};
  }
  return {};
}

void check_output(const CropSpec& spec, MutableImageView out) {
  if (out.width == spec.window.width && out.height == spec.window.height) return;
  std::fprintf(stderr, "stoker: decode: an output of %dx%d for a window of %dx%d\n", out.width,
               out.height, spec.window.width, spec.window.height);
  std::abort();
}

}  // namespace

struct ImageDecoder::Impl {
  explicit Impl(const DecodeOptions& o)
      : options(o), crop(o.max_pixels, o.pixels), jpeg(o.max_pixels), resizer(o.pixels) {}
  DecodeStatus open(std::span<const uint8_t> bytes, CodecHeader& header, bool to_read);
  DecodeStatus read(std::span<const uint8_t> bytes, const CodecHeader& header, Box region,
                    RowSink& sink);

  bool is_finished_crop(const FilePieces& file, const CropSpec& spec, MutableImageView out,
                        std::span<const uint8_t> seek_index);

  // The orientation by which the pixels are turned; 1 if they are not.
  int turn(const CodecHeader& header) const {
    const bool turns = header.is_always_turned || options.exif == ExifPolicy::apply;
    return turns ? header.orientation : 1;
  }

  const DecodeOptions options;
  bool is_crop = false;  // CropDecoder finished the last one
  CropDecoder crop;
  JpegDecoder jpeg;
  CodecDecoder codec;
  RowResizer resizer;
  OrientingSink orienting;
};

// Returns true if CropDecoder took the file and finished the crop. All other files, and all damaged
// ones, go through open() and read(), which report what is wrong with them.
bool ImageDecoder::Impl::is_finished_crop(const FilePieces& file, const CropSpec& spec,
                                          MutableImageView out,
                                          std::span<const uint8_t> seek_index) {
  is_crop = sniff(file.head) == ImageFormat::jpeg &&
            (options.exif != ExifPolicy::apply || jpeg_orientation(file.head) == 1) &&
            crop.decode_pieces(file, spec, out, seek_index);
  return is_crop;
}

// Reads the header. With `to_read` a JPEG file stays open for read().
DecodeStatus ImageDecoder::Impl::open(std::span<const uint8_t> bytes, CodecHeader& header,
                                      bool to_read) {
  if (bytes.empty()) return {DecodeCode::empty, 0, "no bytes"};
  header = {};
  header.format = sniff(bytes);
  if (header.format == ImageFormat::jpeg) {
    const DecodeStatus status =
        to_read ? jpeg.open(bytes, header.size) : jpeg.info(bytes, header.size);
    if (status.ok()) header.orientation = jpeg_orientation(bytes);
    return status;
  }
  const DecodeStatus status = read_codec_header(bytes, header);
  if (status.ok() && std::max(header.size.width, header.size.height) > kMaxPictureSide) {
    return {DecodeCode::too_large, -1,
            text(header.size) + " pixels; a side may have " + std::to_string(kMaxPictureSide)};
  }
  const int64_t pixels = int64_t{header.size.width} * header.size.height;
  const int64_t planned = std::max(pixels, header.planned_pixels);
  if (status.ok() && planned > options.max_pixels) {
    return {DecodeCode::too_large, -1,
            text(header.size) + " pixels" +
                (planned > pixels ? ", which count as " + std::to_string(planned) : "") +
                "; the limit is " + std::to_string(options.max_pixels)};
  }
  return status;
}

DecodeStatus ImageDecoder::Impl::read(std::span<const uint8_t> bytes, const CodecHeader& header,
                                      Box region, RowSink& sink) {
  if (header.format == ImageFormat::jpeg) return jpeg.read(region, sink);
  const DecodeStatus status = check_codec_body(bytes, header);
  return status.ok() ? codec.decode(bytes, header, region, sink) : status;
}

ImageDecoder::ImageDecoder(const DecodeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
ImageDecoder::~ImageDecoder() = default;

DecodeStatus ImageDecoder::info(std::span<const uint8_t> bytes, ImageInfo& info) {
  CodecHeader header;
  const DecodeStatus status = impl_->open(bytes, header, false);
  if (!status.ok()) return status;
  info = {header.format, oriented_size(header.size, impl_->turn(header)), header.orientation};
  return status;
}

bool ImageDecoder::decode_pieces(const FilePieces& file, const CropSpec& spec, MutableImageView out,
                                 std::span<const uint8_t> seek_index) {
  check_output(spec, out);
  return impl_->is_finished_crop(file, spec, out, seek_index);
}

DecodeStatus ImageDecoder::decode(std::span<const uint8_t> bytes, const CropSpec& spec,
                                  MutableImageView out, std::span<const uint8_t> seek_index) {
  check_output(spec, out);
  if (impl_->is_finished_crop(FilePieces(bytes), spec, out, seek_index)) return {};
  CodecHeader header;
  DecodeStatus status = impl_->open(bytes, header, true);
  if (!status.ok()) return status;
  const int orientation = impl_->turn(header);
  status = check_spec(spec, oriented_size(header.size, orientation));
  if (!status.ok()) {
    impl_->jpeg.close();
    return status;
  }
  Box needed = impl_->resizer.begin(spec, out);
  needed.x += spec.crop.x;
  needed.y += spec.crop.y;
  if (orientation == 1) return impl_->read(bytes, header, needed, impl_->resizer);

  const Box stored = stored_box(needed, header.size, orientation);
  impl_->orienting.begin({stored.width, stored.height}, orientation);
  status = impl_->read(bytes, header, stored, impl_->orienting);
  if (status.ok()) {
    const ImageView pixels = impl_->orienting.oriented();
    impl_->resizer.rows(pixels.data, pixels.stride_bytes, pixels.height);
  }
  impl_->orienting.end();
  return status;
}

void ImageDecoder::record_places() { impl_->crop.record_places(); }

std::span<const uint8_t> ImageDecoder::recorded_index() const {
  return impl_->is_crop ? impl_->crop.recorded_index() : std::span<const uint8_t>{};
}

SeekUse ImageDecoder::seek_use() const { return impl_->crop.seek_use(); }

int64_t ImageDecoder::scratch_bytes() const {
  return impl_->jpeg.scratch_bytes() + impl_->codec.scratch_bytes() +
         impl_->resizer.scratch_bytes() + impl_->orienting.scratch_bytes() +
         impl_->crop.scratch_bytes();
}

std::vector<CodecPluginStatus> query_codec_plugins() {
  std::vector<CodecPluginStatus> all;
  for (const ImageFormat format : {ImageFormat::jpeg2000, ImageFormat::avif}) {
    const CodecPluginName& name = codec_plugin_name(format);
    CodecPluginStatus status{name.format, name.library, "", ""};
    if (const CodecPlugin* plugin = open_codec_plugin(format, status.problem)) {
      status.version = plugin->library;
    }
    all.push_back(status);
  }
  return all;
}

ScratchBound decode_scratch_bound(const DecodeOptions& options, Size output) {
  constexpr int64_t kComponents = 4;     // CMYK
  constexpr int64_t kSampling = 4;       // the largest sampling factor
  constexpr int64_t kCubicReach = 4;     // source pixels per output pixel, times the scale
  constexpr int64_t kOpenRows = 5;       // output rows that a source row belongs to, reduced cubic
  constexpr int64_t kBlockRows = 8 + 2;  // a row of blocks and its context
  constexpr int64_t kCodecRows = 160;    // bytes per column: PNG's rows, filtered, undone, as RGB
  constexpr int64_t kCodecParts = 3;     // that keep scratch: PNG's reader, the frame, the rows
  constexpr int64_t kWindow = 1 << 17;   // what deflated data may refer back to, and some more
  const int64_t width = std::min<int64_t>(kMaxPictureSide, options.max_pixels);
  const int64_t batch = kMaxRowGroup * width * kComponents;
  const int64_t codec = kCodecRows * width + kWindow;
  // One of the two is at work.
  const int64_t libjpeg = width * kComponents * kSampling * (kBlockRows + 1) + (int64_t{1} << 20);
  const auto taps = [](int out) {
    return kCubicReach * (kMaxPictureSide / std::max(out, 1) + 1) + 2;
  };
  const auto table = [&](int out) { return out * (taps(out) * 8 + 16); };
  const int64_t columns = static_cast<int64_t>(
      resize_scratch_bytes(static_cast<int>(width), output.width) + kMaxVectorBytes);
  const int64_t ring = std::min<int64_t>(kMaxPictureSide, taps(output.height) + kMaxRowGroup) *
                       (int64_t{3} * output.width + kMaxVectorBytes + 8);
  // If the vertical pass comes first: the sums of open rows, and complete rows.
  const int64_t wide = 3 * width * (kOpenRows * int64_t{sizeof(int32_t)} + kMaxRowGroup);
  const int64_t streamed = batch + std::max(libjpeg, codec) + table(output.width) +
                           table(output.height) + columns + ring + wide + kMaxCropScratch +
                           kCodecParts * kKeptCodecBytes;
  // 16-bit coefficients of four components, or a frame of four 8-bit channels beside a strip or
  // tile of four 16-bit ones; a turned image also has its 8-bit pixels.
  const int64_t per_pixel = 3 * kComponents + 3;
  static_assert(kProgressiveBytesPerPixel <= 3 * kComponents);
  constexpr int64_t kSpareTile = int64_t{16} << 20;  // a tile may be larger than its image
  return {streamed, streamed + per_pixel * options.max_pixels + kSpareTile};
}

}  // namespace stoker
