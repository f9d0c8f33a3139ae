#include "tests/decode/png_reference.h"

#include <png.h>

#include <cstdio>
#include <cstring>

namespace stoker {
namespace {

// One PNG in libpng. libpng reports errors through a callback that must not return; ours jumps back
// to read(), which owns nothing that needs destruction.
class PngFile {
 public:
  explicit PngFile(std::span<const uint8_t> bytes) : left_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ == nullptr) throw std::bad_alloc();
    info_ = png_create_info_struct(png_);
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  const char* message() const { return message_; }

  // Reads rows of 8 bits per channel, gray or RGB. Returns false on an error; message() says why.
  bool read(uint8_t** rows, size_t stride) {
    if (info_ == nullptr) return say("out of memory");
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    // Only the pixels are read: an error in any other chunk does not make the picture bad.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_read_fn(png_, this, on_read);
    png_read_info(png_, info_);
    set_transforms();
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != stride)
      return say("the pixels are not what the header says");
    png_read_image(png_, rows);
    return true;
  }

 private:
  void set_transforms() {
    const int colours = png_get_color_type(png_, info_);
    const int depth = png_get_bit_depth(png_, info_);
    if (colours == PNG_COLOR_TYPE_PALETTE) {
      png_set_palette_to_rgb(png_);  // and to RGB with alpha, where the palette has transparency
      if (png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) png_set_strip_alpha(png_);
      return;
    }
    if ((colours & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(png_);
    if (depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (depth == 16 && colours == PNG_COLOR_TYPE_GRAY) {
      png_set_read_user_transform_fn(png_, clip_16_bits);
      png_set_user_transform_info(png_, nullptr, 8, 1);
    } else if (depth == 16) {
      png_set_strip_16(png_);
    }
  }

  // Pillow's mode "I" to "RGB": everything above 255 is white.
  static void clip_16_bits(png_structp, png_row_infop row, png_bytep data) {
    for (png_uint_32 i = 0; i < row->width; ++i) {
      data[i] = data[2 * i] != 0 ? uint8_t{255} : data[2 * i + 1];
    }
    row->bit_depth = 8;
    row->pixel_depth = 8;
    row->rowbytes = row->width;
  }

  bool say(const char* text) {
    std::snprintf(message_, sizeof message_, "%s", text);
    return false;
  }
  static void on_error(png_structp png, png_const_charp text) {
    static_cast<PngFile*>(png_get_error_ptr(png))->say(text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, size_t count) {
    auto& left = static_cast<PngFile*>(png_get_io_ptr(png))->left_;
    if (count > left.size()) png_error(png, "the file ends too early");
    std::memcpy(to, left.data(), count);
    left = left.subspan(count);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const uint8_t> left_;
  char message_[160] = "";
};

}  // namespace

PngReference read_png_reference(std::span<const uint8_t> file) {
  const auto number = [&](size_t at) {
    return size_t{file[at]} << 24 | static_cast<size_t>(file[at + 1]) << 16 |
           static_cast<size_t>(file[at + 2]) << 8 | file[at + 3];
  };
  PngReference result;
  if (file.size() < 33) {
    result.problem = "no header";
    return result;
  }
  const size_t width = number(16), height = number(20);
  const size_t channels = (file[25] & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  std::vector<uint8_t> pixels(width * height * channels);
  std::vector<uint8_t*> rows(height);
  for (size_t y = 0; y < height; ++y) rows[y] = pixels.data() + y * width * channels;
  PngFile png(file);
  result.is_read = png.read(rows.data(), width * channels);
  result.problem = png.message();
  if (!result.is_read) return result;
  for (const uint8_t value : pixels) {
    result.pixels.insert(result.pixels.end(), channels == 1 ? 3 : 1, value);
  }
  return result;
}

}  // namespace stoker
