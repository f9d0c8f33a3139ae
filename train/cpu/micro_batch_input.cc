#include "train/cpu/micro_batch_input.h"

#include <bit>
#include <cmath>

namespace stoker {
namespace {

int reflected(int i, int size) {
  if (i < 0) return -i;
  return i >= size ? 2 * size - 2 - i : i;
}

std::vector<int> view_indices(int size, int shift, bool flip) {
  std::vector<int> from(size);
  for (int i = 0; i < size; ++i) from[i] = reflected((flip ? size - 1 - i : i) + shift, size);
  return from;
}

// The values of one image, and the distances between them.
struct Values {
  int channels;
  int64_t pixel, channel;
};

template <typename Table, typename Number>
void normalise(const Table& table, const uint8_t* pixels, int64_t count, const Values& v,
               Number* out) {
  for (int64_t i = 0; i < count; ++i) {
    for (int c = 0; c < v.channels; ++c) {
      out[i * v.pixel + c * v.channel] = table[c][pixels[3 * i + c]];
    }
  }
}

}  // namespace

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

MicroBatchInput::MicroBatchInput(Size size, int channels, Precision precision,
                                 ActivationLayout layout, const std::array<float, 3>& mean,
                                 const std::array<float, 3>& stddev)
    : size_(size),
      channels_(channels),
      precision_(precision),
      pixel_stride_(layout == ActivationLayout::nhwc ? channels : 1),
      channel_stride_(
          layout == ActivationLayout::nhwc ? 1 : static_cast<int64_t>(size.width) * size.height) {
  for (int c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      fp32_[c][v] = (static_cast<float>(v) / 255.0f - mean[c]) / stddev[c];
      bf16_[c][v] = to_bf16(fp32_[c][v]);
    }
  }
}

void MicroBatchInput::load(const uint8_t* images, int rows, void* out) const {
  if (precision_ == Precision::bf16) {
    load_rows(images, rows, static_cast<uint16_t*>(out));
  } else {
    load_rows(images, rows, static_cast<float*>(out));
  }
}

void MicroBatchInput::load(const uint8_t* images, int rows, const View& view, void* out) const {
  if (precision_ == Precision::bf16) {
    load_view(images, rows, view, static_cast<uint16_t*>(out));
  } else {
    load_view(images, rows, view, static_cast<float*>(out));
  }
}

template <typename Number>
void MicroBatchInput::load_rows(const uint8_t* images, int rows, Number* out) const {
  const int64_t pixels = static_cast<int64_t>(size_.width) * size_.height;
  const Values values{channels_, pixel_stride_, channel_stride_};
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* image = images + row * pixels * 3;
    Number* to = out + row * pixels * channels_;
    if constexpr (sizeof(Number) == 2) {
      normalise(bf16_, image, pixels, values, to);
    } else {
      normalise(fp32_, image, pixels, values, to);
    }
  }
}

template <typename Number>
void MicroBatchInput::load_view(const uint8_t* images, int rows, const View& view,
                                Number* out) const {
  const int64_t pixels = static_cast<int64_t>(size_.width) * size_.height;
  const std::vector<int> columns = view_indices(size_.width, view.shift_x, view.flip);
  const std::vector<int> lines = view_indices(size_.height, view.shift_y, false);
  for (int row = 0; row < rows; ++row) {
    const uint8_t* image = images + row * pixels * 3;
    Number* to = out + row * pixels * channels_;
    for (const int line : lines) {
      for (const int column : columns) {
        const uint8_t* pixel = image + 3 * (static_cast<int64_t>(line) * size_.width + column);
        for (int c = 0; c < channels_; ++c) {
          if constexpr (sizeof(Number) == 2) {
            to[c * channel_stride_] = bf16_[c][pixel[c]];
          } else {
            to[c * channel_stride_] = fp32_[c][pixel[c]];
          }
        }
        to += pixel_stride_;
      }
    }
  }
}

}  // namespace stoker
