// The only file that uses libtiff.
#include "decode/codec/libtiff_reader.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "decode/scratch_vector.h"

namespace stoker {
namespace {

constexpr char kOtherHeader[] = "the pixels are not what the header says";

// The file in memory with another directory, and the first message of libtiff: an error, or a
// warning while pixels are read. Such warnings mean damage; earlier ones do not.
struct Source {
  std::span<const uint8_t> bytes;
  TiffPatch directory;
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
  const TiffPatch& patch = source.directory;
  const uint64_t begin = std::max<uint64_t>(source.at, patch.at);
  const uint64_t end = std::min<uint64_t>(source.at + given, patch.at + patch.bytes.size());
  for (uint64_t at = begin; at < end; ++at) {
    static_cast<uint8_t*>(to)[at - source.at] = patch.bytes[at - patch.at];
  }
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
toff_t size_of_source(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

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
// end, and "c" (large strips are not divided).
std::unique_ptr<TIFF, Closer> open_source(Source& source, const TiffLayout& layout) {
  const std::unique_ptr<TIFFOpenOptions, Closer> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) throw std::bad_alloc();
  // A copy of compressed bytes, two numbers for each part, or a part of YCbCr.
  constexpr int64_t kBytesOfAPart = 16, kRest = int64_t{1} << 20;
  const int64_t most = std::ssize(source.bytes) + layout.line_bytes() * layout.part.height +
                       kBytesOfAPart * static_cast<int64_t>(layout.offsets.count) + kRest;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &source);
  return std::unique_ptr<TIFF, Closer>(
      TIFFClientOpenExt("", "rmc", &source, read_bytes, write_nothing, seek_to, close_nothing,
                        size_of_source, nullptr, nullptr, options.get()));
}

template <class T>
T field(TIFF* tiff, uint32_t tag) {
  T value = 0;
  TIFFGetFieldDefaulted(tiff, tag, &value);
  return value;
}

// Returns true if libtiff read the same values from the header.
bool is_same(TIFF* tiff, const TiffLayout& layout) {
  const auto is = [&](uint32_t tag, int value) {
    return field<uint32_t>(tiff, tag) == static_cast<uint32_t>(value);
  };
  const bool has_same_parts =
      layout.is_tiled
          ? is(TIFFTAG_TILEWIDTH, layout.part.width) && is(TIFFTAG_TILELENGTH, layout.part.height)
          : std::min(field<uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP),
                     static_cast<uint32_t>(layout.size.height)) ==
                static_cast<uint32_t>(layout.part.height);
  return is(TIFFTAG_IMAGEWIDTH, layout.size.width) && is(TIFFTAG_IMAGELENGTH, layout.size.height) &&
         has_same_parts && (TIFFIsTiled(tiff) != 0) == layout.is_tiled &&
         field<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL) == layout.samples &&
         field<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE) == layout.bits &&
         field<uint16_t>(tiff, TIFFTAG_COMPRESSION) == layout.compression &&
         field<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC) == layout.photometric &&
         (field<uint16_t>(tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE) ==
             layout.is_separate;
}

}  // namespace

struct LibtiffReader::Impl {
  Impl(std::span<const uint8_t> bytes, const TiffLayout& given)
      : source{bytes, needed_tiff_directory(bytes)}, layout(given), charge(part_bytes(bytes)) {}

  // Whether lines can be had one by one: libtiff begins anew whenever the plane changes.
  bool is_by_line() const { return !layout.is_tiled && !layout.is_separate; }
  bool is_silent() const { return source.message[0] == 0; }

  // libtiff holds a part as it is stored, and one that it has unpacked.
  int64_t part_bytes(std::span<const uint8_t> bytes) const {
    return static_cast<int64_t>(bytes.size()) + layout.line_bytes() * layout.part.height;
  }

  // Reads the lines that are needed of a part.
  bool hold(const TiffPart& part) {
    const int64_t size = layout.line_bytes() * part.needed;
    held.resize(static_cast<size_t>(size));
    const auto number = static_cast<uint32_t>(part.number);
    return (layout.is_tiled ? TIFFReadEncodedTile(tiff.get(), number, held.data(), size)
                            : TIFFReadEncodedStrip(tiff.get(), number, held.data(), size)) == size;
  }

  Source source;
  const TiffLayout& layout;
  const ScratchCharge charge;  // for libtiff
  std::unique_ptr<TIFF, Closer> tiff;
  int row = 0;                  // of the next line
  ScratchVector<uint8_t> held;  // lines of a part that is not read line by line
  size_t read = 0;              // bytes of them
};

LibtiffReader::LibtiffReader(std::span<const uint8_t> bytes, const TiffLayout& layout)
    : impl_(std::make_unique<Impl>(bytes, layout)) {}
LibtiffReader::~LibtiffReader() = default;

DecodeStatus LibtiffReader::open() {
  const TiffLayout& layout = impl_->layout;
  impl_->tiff = open_source(impl_->source, layout);
  TIFF* tiff = impl_->tiff.get();
  if (tiff == nullptr) return {DecodeCode::corrupt, -1, problem()};
  if (!is_same(tiff, layout)) return {DecodeCode::corrupt, -1, kOtherHeader};
  if (TIFFIsCODECConfigured(static_cast<uint16_t>(layout.compression)) == 0) {
    return {DecodeCode::unsupported, -1,
            "libtiff was built without compression " + std::to_string(layout.compression)};
  }
  if (layout.is_ycc && layout.compression == COMPRESSION_JPEG) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  }
  const tmsize_t line = layout.is_tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff);
  if (!layout.is_converted() && line != layout.line_bytes()) {
    return {DecodeCode::corrupt, -1, kOtherHeader};
  }
  impl_->source.is_at_pixels = true;
  return {};
}

bool LibtiffReader::begin(const TiffPart& part) {
  impl_->row = part.top;
  impl_->read = 0;
  return impl_->is_by_line() || (impl_->hold(part) && impl_->is_silent());
}

bool LibtiffReader::next(uint8_t* line) {
  if (impl_->is_by_line()) {
    const auto row = static_cast<uint32_t>(impl_->row++);
    return TIFFReadScanline(impl_->tiff.get(), line, row, 0) == 1 && impl_->is_silent();
  }
  const auto size = static_cast<size_t>(impl_->layout.line_bytes());
  std::memcpy(line, impl_->held.data() + impl_->read, size);
  impl_->read += size;
  return true;
}

std::string LibtiffReader::problem() const {
  if (impl_->tiff == nullptr && impl_->is_silent()) return "libtiff cannot read the file";
  return impl_->is_silent() ? kOtherHeader : std::string("libtiff: ") + impl_->source.message;
}

bool LibtiffReader::convert(int first_row, int rows, int x, int width, uint8_t* rgb) {
  char ignored[1024];  // the handlers get the same message
  TIFFRGBAImage image;
  constexpr int kStopAtErrors = 1;
  if (TIFFRGBAImageBegin(&image, impl_->tiff.get(), kStopAtErrors, ignored) == 0) return false;
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&image, TIFFRGBAImageEnd);
  image.req_orientation = ORIENTATION_TOPLEFT;
  image.row_offset = first_row;
  const int columns = impl_->layout.size.width;
  ScratchVector<uint32_t> pixels(static_cast<size_t>(columns) * static_cast<size_t>(rows));
  if (TIFFRGBAImageGet(&image, pixels.data(), static_cast<uint32_t>(columns),
                       static_cast<uint32_t>(rows)) == 0) {
    return false;
  }
  for (int row = 0; row < rows; ++row) {
    const uint32_t* from = pixels.data() + int64_t{row} * columns + x;
    for (int i = 0; i < width; ++i) {
      *rgb++ = static_cast<uint8_t>(TIFFGetR(from[i]));
      *rgb++ = static_cast<uint8_t>(TIFFGetG(from[i]));
      *rgb++ = static_cast<uint8_t>(TIFFGetB(from[i]));
    }
  }
  return impl_->is_silent();
}

}  // namespace stoker
