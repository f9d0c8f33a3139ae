// The only file that uses libtiff.
#include <tiffio.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "decode/codec/inflate.h"
#include "decode/codec/readers.h"
#include "decode/codec/tiff_header.h"

namespace stoker {
namespace {

// The bytes by which a tile may be larger than the image.
constexpr int64_t kMaxSpareTile = int64_t{16} << 20;

// The file in memory, and the first message of libtiff: an error, or a warning while pixels are
// read. Such warnings mean damage; earlier ones are mostly about tags that nobody needs.
struct Source {
  std::span<const uint8_t> bytes;
  uint64_t at = 0;
  bool is_at_pixels = false;
  char message[200] = "";

  void note(const char* format, va_list values) {
    if (message[0] != 0) return;
    std::vsnprintf(message, sizeof message, format, values);
    for (char& c : message) c = c == '\n' ? ' ' : c;
  }
};

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t count) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t left = source.at < source.bytes.size() ? source.bytes.size() - source.at : 0;
  const auto given = static_cast<size_t>(std::min(left, static_cast<uint64_t>(count)));
  if (given > 0) std::memcpy(to, source.bytes.data() + source.at, given);
  source.at += given;
  return static_cast<tmsize_t>(given);
}
tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<Source*>(handle);
  const uint64_t from = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? source.at
                                             : source.bytes.size();
  return source.at = from + offset;
}
int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

int on_error(TIFF*, void* user, const char*, const char* format, va_list values) {
  static_cast<Source*>(user)->note(format, values);
  return 1;
}
int on_warning(TIFF*, void* user, const char*, const char* format, va_list values) {
  auto& source = *static_cast<Source*>(user);
  if (source.is_at_pixels) source.note(format, values);
  return 1;
}

struct Closer {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

// Opens the file with "m" (not mapped), so that libtiff reads through read_bytes, which checks the
// end.
std::unique_ptr<TIFF, Closer> open(Source& source, Size size) {
  const std::unique_ptr<TIFFOpenOptions, Closer> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) throw std::bad_alloc();
  const int64_t most = int64_t{8} * size.width * size.height + kMaxSpareTile +
                       static_cast<int64_t>(source.bytes.size());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &source);
  return std::unique_ptr<TIFF, Closer>(TIFFClientOpenExt("", "rm", &source, read_bytes,
                                                         write_nothing, seek_to, close_nothing,
                                                         size_of, nullptr, nullptr, options.get()));
}

template <class T>
T field(TIFF* tiff, uint32_t tag) {
  T value = 0;
  TIFFGetFieldDefaulted(tiff, tag, &value);
  return value;
}

// Returns true if libtiff read the same values from the header.
bool is_same(TIFF* tiff, const TiffLayout& layout) {
  return field<uint32_t>(tiff, TIFFTAG_IMAGEWIDTH) == static_cast<uint32_t>(layout.size.width) &&
         field<uint32_t>(tiff, TIFFTAG_IMAGELENGTH) == static_cast<uint32_t>(layout.size.height) &&
         field<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL) == layout.samples &&
         field<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE) == layout.bits &&
         field<uint16_t>(tiff, TIFFTAG_COMPRESSION) == layout.compression &&
         field<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC) == layout.photometric &&
         (field<uint16_t>(tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE) ==
             layout.is_separate;
}

// All bytes of a strip or tile.
class StripInput final : public InflateInput {
 public:
  explicit StripInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool next(std::span<const uint8_t>& piece) override {
    const bool has_piece = !is_given_;
    if (has_piece) piece = bytes_;
    is_given_ = true;
    return has_piece;
  }

 private:
  const std::span<const uint8_t> bytes_;
  bool is_given_ = false;
};

// Returns true if these bytes are a zlib stream of `size` bytes with the right checksum. libtiff
// accepts broken streams, and with longer ones it may leave the last bytes of its output unwritten.
bool is_deflated(std::span<const uint8_t> bytes, int64_t size, Inflater& inflater) {
  constexpr int64_t kPiece = 8192;
  StripInput input(bytes);
  inflater.begin(input, {kPiece, static_cast<uint64_t>(size), true});
  for (int64_t at = 0; at < size; at += kPiece) {
    if (inflater.read(static_cast<size_t>(std::min(kPiece, size - at))) == nullptr) return false;
  }
  return inflater.ends_well() && !inflater.had_more();
}

class TiffReader {
 public:
  TiffReader(TIFF* tiff, std::span<const uint8_t> bytes, const TiffLayout& layout,
             CodecFrame& frame)
      : tiff_(tiff), bytes_(bytes), layout_(layout), frame_(frame) {}

  // The reason for a failure that libtiff does not report.
  const char* failure() const { return failure_; }

  bool read() {
    const bool is_jpeg_of_ycc =
        layout_.is_ycc && layout_.compression == COMPRESSION_JPEG && !layout_.is_separate;
    if (layout_.is_ycc && !is_jpeg_of_ycc) return read_converted();
    if (is_jpeg_of_ycc) TIFFSetField(tiff_, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    frame_.begin({0, 0, layout_.size.width, layout_.size.height}, layout_.colours);
    const int planes = layout_.is_separate ? frame_.channels() : 1;
    for (int plane = 0; plane < planes; ++plane) {
      if (!(TIFFIsTiled(tiff_) != 0 ? read_tiles(plane) : read_strips(plane))) return false;
    }
    return true;
  }

 private:
  // Returns the bytes of so many pixels, of one plane or of all.
  int64_t bytes_of(int pixels) const {
    return (int64_t{pixels} * layout_.bits * (layout_.is_separate ? 1 : layout_.samples) + 7) / 8;
  }

  // Checks strip or tile number `number`, whose pixels take `size` bytes.
  bool is_sound(uint32_t number, int64_t size) {
    if (layout_.compression != COMPRESSION_ADOBE_DEFLATE &&
        layout_.compression != COMPRESSION_DEFLATE) {
      return true;
    }
    const uint64_t at = TIFFGetStrileOffset(tiff_, number);
    const uint64_t count = TIFFGetStrileByteCount(tiff_, number);
    const bool is_whole = at <= bytes_.size() && count <= bytes_.size() - at &&
                          is_deflated(bytes_.subspan(at, count), size, inflater_);
    if (!is_whole) failure_ = "a strip or tile is no whole zlib stream of its size";
    return is_whole;
  }

  bool read_strips(int plane) {
    const int64_t line = bytes_of(layout_.size.width);
    const int64_t height = std::min(int64_t{field<uint32_t>(tiff_, TIFFTAG_ROWSPERSTRIP)},
                                    int64_t{layout_.size.height});
    if (height <= 0 || TIFFScanlineSize64(tiff_) != static_cast<uint64_t>(line)) return false;
    std::vector<uint8_t> strip(static_cast<size_t>(line * height));
    for (int64_t y = 0; y < layout_.size.height; y += height) {
      const int64_t rows = std::min(height, layout_.size.height - y);
      const auto number =
          TIFFComputeStrip(tiff_, static_cast<uint32_t>(y), static_cast<uint16_t>(plane));
      const tmsize_t wanted = line * rows;
      if (!is_sound(number, wanted) ||
          TIFFReadEncodedStrip(tiff_, number, strip.data(), wanted) != wanted) {
        return false;
      }
      for (int64_t r = 0; r < rows; ++r) {
        unpack(strip.data() + r * line, layout_.size.width, plane,
               frame_.row(static_cast<int>(y + r)));
      }
    }
    return true;
  }

  bool read_tiles(int plane) {
    const auto width = static_cast<int64_t>(field<uint32_t>(tiff_, TIFFTAG_TILEWIDTH));
    const auto height = static_cast<int64_t>(field<uint32_t>(tiff_, TIFFTAG_TILELENGTH));
    const int64_t image = bytes_of(layout_.size.width) * layout_.size.height;
    if (width <= 0 || height <= 0 || width > INT32_MAX || height > INT32_MAX) return false;
    const int64_t line = bytes_of(static_cast<int>(width));
    if (line > (image + kMaxSpareTile) / height) return false;
    if (TIFFTileSize64(tiff_) != static_cast<uint64_t>(line * height)) return false;
    std::vector<uint8_t> tile(static_cast<size_t>(line * height));
    for (int64_t y = 0; y < layout_.size.height; y += height) {
      for (int64_t x = 0; x < layout_.size.width; x += width) {
        const uint32_t number =
            TIFFComputeTile(tiff_, static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0,
                            static_cast<uint16_t>(plane));
        if (!is_sound(number, line * height) ||
            TIFFReadEncodedTile(tiff_, number, tile.data(), line * height) != line * height) {
          return false;
        }
        const auto columns = static_cast<int>(std::min(width, layout_.size.width - x));
        const int64_t rows = std::min(height, layout_.size.height - y);
        for (int64_t r = 0; r < rows; ++r) {
          unpack(tile.data() + r * line, columns, plane,
                 frame_.row(static_cast<int>(y + r)) + x * frame_.channels());
        }
      }
    }
    return true;
  }

  // Reads YCbCr that is not compressed as JPEG; libtiff converts it.
  bool read_converted() {
    frame_.begin({0, 0, layout_.size.width, layout_.size.height}, FrameColours::rgb);
    std::vector<uint32_t> pixels(static_cast<size_t>(layout_.size.width) * layout_.size.height);
    constexpr int kStopAtErrors = 1;
    if (TIFFReadRGBAImageOriented(tiff_, static_cast<uint32_t>(layout_.size.width),
                                  static_cast<uint32_t>(layout_.size.height), pixels.data(),
                                  ORIENTATION_TOPLEFT, kStopAtErrors) != 1) {
      return false;
    }
    uint8_t* to = frame_.row(0);
    for (const uint32_t pixel : pixels) {
      *to++ = static_cast<uint8_t>(TIFFGetR(pixel));
      *to++ = static_cast<uint8_t>(TIFFGetG(pixel));
      *to++ = static_cast<uint8_t>(TIFFGetB(pixel));
    }
    return true;
  }

  // A sample of up to 8 bits as it is.
  int index(const uint8_t* from, int64_t i) const {
    const auto bits = static_cast<int>(layout_.bits);
    const int64_t at = i * bits;
    return from[at / 8] >> (8 - bits - at % 8) & ((1 << bits) - 1);
  }

  uint8_t sample(const uint8_t* from, int64_t i) const {
    switch (layout_.bits) {
      case 1:
        return static_cast<uint8_t>(index(from, i) * 255);
      case 2:
        return static_cast<uint8_t>(index(from, i) * 85);
      case 4:
        return static_cast<uint8_t>(index(from, i) * 17);
      case 16: {
        uint16_t value;
        std::memcpy(&value, from + 2 * i, sizeof value);
        if (layout_.colours == FrameColours::gray)
          return value > 255 ? uint8_t{255} : static_cast<uint8_t>(value);
        return static_cast<uint8_t>(value >> 8);
      }
      default:
        return from[i];
    }
  }

  // Copies a row's samples, of one plane or of all, to the frame's channels.
  void unpack(const uint8_t* from, int pixels, int plane, uint8_t* to) const {
    const int channels = frame_.channels();
    const int given = layout_.is_separate ? 1 : static_cast<int>(layout_.samples);
    const int wanted = layout_.is_separate ? 1 : channels;
    const uint8_t inverted = layout_.photometric == PHOTOMETRIC_MINISWHITE ? 255 : 0;
    if (layout_.bits == 8 && given == channels && inverted == 0) {
      std::memcpy(to, from, static_cast<size_t>(pixels) * channels);
      return;
    }
    if (layout_.has_palette) {
      for (int i = 0; i < pixels; ++i) std::copy_n(layout_.palette[index(from, i)], 3, to + 3 * i);
      return;
    }
    for (int i = 0; i < pixels; ++i) {
      for (int c = 0; c < wanted; ++c) {
        to[i * channels + plane + c] = sample(from, int64_t{i} * given + c) ^ inverted;
      }
    }
  }

  TIFF* const tiff_;
  const std::span<const uint8_t> bytes_;
  const TiffLayout& layout_;
  CodecFrame& frame_;
  Inflater inflater_;
  const char* failure_ = "the pixels are not what the header says";
};

}  // namespace

DecodeStatus read_tiff_pixels(std::span<const uint8_t> bytes, const CodecHeader&,
                              CodecFrame& frame) {
  TiffLayout layout;
  DecodeStatus status = read_tiff_layout(bytes, layout);
  if (!status.ok()) return status;
  Source source{bytes};
  const std::unique_ptr<TIFF, Closer> tiff = open(source, layout.size);
  if (tiff != nullptr && !is_same(tiff.get(), layout)) {
    return {DecodeCode::corrupt, -1, "the pixels are not what the header says"};
  }
  if (tiff != nullptr && TIFFIsCODECConfigured(static_cast<uint16_t>(layout.compression)) == 0) {
    return {DecodeCode::unsupported, -1,
            "libtiff was built without compression " + std::to_string(layout.compression)};
  }
  std::string reason = "libtiff cannot read the file";
  if (tiff != nullptr) {
    TiffReader reader(tiff.get(), bytes, layout, frame);
    source.is_at_pixels = true;
    if (reader.read() && source.message[0] == 0) return {};
    reason = reader.failure();
  }
  return {DecodeCode::corrupt, -1,
          source.message[0] != 0 ? std::string("libtiff: ") + source.message : reason};
}

}  // namespace stoker
