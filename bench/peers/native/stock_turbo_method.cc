// The fastest path that stock libjpeg-turbo allows: rows above the crop are skipped
// (jpeg_skip_scanlines), columns beside it are not transformed (jpeg_crop_scanline), decoding stops
// after the last row; DCT scaling by 1/2, 1/4 or 1/8 wherever the crop stays at least as large as
// the output. Groups of rows go into stoker's own SIMD resize while they are in the cache.
// ../README.md lists the tricks that are left out, and what each of them would change.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bench/peers/native/method.h"
#include "decode/jpeg/libjpeg_session.h"
#include "decode/resize/row_resizer.h"

#define STOKER_QUOTE(x) #x
#define STOKER_TEXT(x) STOKER_QUOTE(x)

namespace stoker::peers {
namespace {

constexpr int kBatchRows = 16;

// Returns the largest power of two, at most 8, by which the crop can be reduced without being
// enlarged afterwards.
int dct_scale(const CropSpec& spec) {
  int scale = 1;
  while (scale < 8 && spec.crop.width >= 2 * scale * spec.resized.width &&
         spec.crop.height >= 2 * scale * spec.resized.height) {
    scale *= 2;
  }
  return scale;
}

// Returns the crop in an image scaled down to `size`, rounded to whole pixels.
CropSpec scaled(CropSpec spec, int scale, Size size) {
  if (scale == 1) return spec;
  const auto divide = [scale](int x) { return (x + scale / 2) / scale; };
  const int right = std::min(size.width, divide(spec.crop.x + spec.crop.width));
  const int bottom = std::min(size.height, divide(spec.crop.y + spec.crop.height));
  const int x = divide(spec.crop.x), y = divide(spec.crop.y);
  spec.crop = {x, y, right - x, bottom - y};
  return spec;
}

class StockTurbo final : public Method {
 public:
  void decode(int, std::span<const uint8_t> bytes, const CropSpec& spec,
              MutableImageView out) override {
    session_.emplace(bytes);
    if (!session_->read_header() || !read(spec, out)) fail();
    session_.reset();
  }

 private:
  bool read(const CropSpec& spec, MutableImageView out);
  bool start(int scale);
  bool seek(Box region);
  bool resize_rows(int first_column, int count);
  [[noreturn]] void fail() {
    const DecodeStatus status = session_->failure();
    session_.reset();
    throw std::runtime_error("libjpeg-turbo: " + status.message);
  }

  std::optional<JpegSession> session_;  // of the current image
  RowResizer resizer_{PixelPolicy::exact};
  int left_ = 0;  // the image column of the first decoded one
  std::vector<uint8_t> rows_;
};

bool StockTurbo::start(int scale) {
  return session_->guarded([scale](jpeg_decompress_struct& cinfo) {
    cinfo.out_color_space = JCS_RGB;
    cinfo.scale_num = 1;
    cinfo.scale_denom = static_cast<unsigned>(scale);
    jpeg_start_decompress(&cinfo);
  });
}

bool StockTurbo::seek(Box region) {
  JDIMENSION column = static_cast<JDIMENSION>(region.x);
  JDIMENSION width = static_cast<JDIMENSION>(region.width);
  const bool done = session_->guarded([&](jpeg_decompress_struct& cinfo) {
    jpeg_crop_scanline(&cinfo, &column, &width);
    if (region.y > 0) jpeg_skip_scanlines(&cinfo, static_cast<JDIMENSION>(region.y));
  });
  left_ = static_cast<int>(column);
  return done;
}

bool StockTurbo::resize_rows(int first_column, int count) {
  const size_t stride = size_t{3} * session_->cinfo().output_width;
  rows_.resize(std::max(rows_.size(), kBatchRows * stride));
  for (int done = 0; done < count;) {
    const int batch = std::min(kBatchRows, count - done);
    const bool read = session_->guarded([&](jpeg_decompress_struct& cinfo) {
      JSAMPROW pointers[kBatchRows];
      for (int r = 0; r < batch; ++r) pointers[r] = rows_.data() + r * stride;
      for (int r = 0; r < batch;) {
        r += static_cast<int>(
            jpeg_read_scanlines(&cinfo, pointers + r, static_cast<JDIMENSION>(batch - r)));
      }
    });
    if (!read) return false;
    resizer_.rows(rows_.data() + 3 * static_cast<ptrdiff_t>(first_column),
                  static_cast<ptrdiff_t>(stride), batch);
    done += batch;
  }
  return true;
}

bool StockTurbo::read(const CropSpec& spec, MutableImageView out) {
  const int scale = dct_scale(spec);
  if (!start(scale)) return false;
  const Size size{static_cast<int>(session_->cinfo().output_width),
                  static_cast<int>(session_->cinfo().output_height)};
  const CropSpec smaller = scaled(spec, scale, size);
  Box region = resizer_.begin(smaller, out);
  region.x += smaller.crop.x;
  region.y += smaller.crop.y;
  return seek(region) && resize_rows(region.x - left_, region.height);
}

}  // namespace

std::unique_ptr<Method> make_stock_turbo() { return std::make_unique<StockTurbo>(); }

std::string libjpeg_version() { return "libjpeg-turbo " STOKER_TEXT(LIBJPEG_TURBO_VERSION); }

}  // namespace stoker::peers

#undef STOKER_TEXT
#undef STOKER_QUOTE
