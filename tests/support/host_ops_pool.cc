// Pooling, and copies and padding of channels, in plain loops.

#include "tests/support/host_ops.h"
#include "train/engine/dropout.h"

namespace stoker::host {
namespace {

int64_t in_at(const PoolShape& s, int row, int y, int x) {
  return ((static_cast<int64_t>(row) * s.in_height + y) * s.in_width + x) * s.channels;
}

template <typename Visit>  // visit(row, y, x, index of the pixel's first channel)
void for_each_output(const PoolShape& s, Visit visit) {
  int64_t at = 0;
  for (int row = 0; row < s.rows; ++row) {
    for (int y = 0; y < s.out_height; ++y) {
      for (int x = 0; x < s.out_width; ++x, at += s.channels) visit(row, y, x, at);
    }
  }
}

template <typename Visit>  // visit(tap, y, x) inside the picture
void for_each_pool_tap(const PoolShape& s, int out_y, int out_x, Visit visit) {
  for (int tap = 0; tap < s.kernel.height * s.kernel.width; ++tap) {
    const int y = out_y * s.stride + tap / s.kernel.width - s.padding.height;
    const int x = out_x * s.stride + tap % s.kernel.width - s.padding.width;
    if (y >= 0 && y < s.in_height && x >= 0 && x < s.in_width) visit(tap, y, x);
  }
}

// Calls visit(y, x) for what an average pool sees inside the picture, and returns by how much it
// divides.
template <typename Visit>
int for_each_averaged(const PoolShape& s, int out_y, int out_x, Visit visit) {
  if (!s.adaptive) {
    for_each_pool_tap(s, out_y, out_x, [&](int, int y, int x) { visit(y, x); });
    return s.kernel.height * s.kernel.width;
  }
  int count = 0;
  for (int y = 0; y < s.in_height; ++y) {
    for (int x = 0; x < s.in_width; ++x) {
      // The windows of PyTorch's definition, without its divisions: pixel x is in window i if some
      // point of [x, x + 1) is in [i, i + 1) * in / out.
      const auto sees = [](int i, int out, int at, int in) {
        return int64_t{at + 1} * out > int64_t{i} * in && int64_t{at} * out < int64_t{i + 1} * in;
      };
      if (!sees(out_y, s.out_height, y, s.in_height) || !sees(out_x, s.out_width, x, s.in_width)) {
        continue;
      }
      visit(y, x);
      ++count;
    }
  }
  return count;
}

template <typename Visit>  // visit(index of a pixel of the wide side, of the narrow side)
void for_each_padded(const PadShape& s, Visit visit) {
  int64_t wide = 0;
  for (int row = 0; row < s.rows; ++row) {
    for (int y = 0; y < s.out_height; ++y) {
      for (int x = 0; x < s.out_width; ++x, wide += s.out_channels) {
        const int64_t line = static_cast<int64_t>(row) * s.in_height + y * s.stride;
        visit(wide, (line * s.in_width + x * s.stride) * s.in_channels);
      }
    }
  }
}

}  // namespace

void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* argmax) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      for (int c = 0; c < s.channels; ++c) {
        float best = 0;
        int won = -1;
        for_each_pool_tap(s, out_y, out_x, [&](int tap, int in_y, int in_x) {
          const float value = load<T>(x, in_at(s, row, in_y, in_x) + c);
          if (!device::wins(value, best, won < 0)) return;
          best = value;
          won = tap;
        });
        store<T>(y, at + c, best);
        argmax[at + c] = static_cast<uint8_t>(won);
      }
    });
  });
}

void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* argmax, void* dx) {
  std::vector<float> sums(static_cast<size_t>(in_at(s, s.rows, 0, 0)), 0.0f);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      for_each_pool_tap(s, out_y, out_x, [&](int tap, int in_y, int in_x) {
        for (int c = 0; c < s.channels; ++c) {
          if (argmax[at + c] == tap) sums[in_at(s, row, in_y, in_x) + c] += load<T>(dy, at + c);
        }
      });
    });
  });
  store_floats(sums, s.type, dx);
}

void average_pool(const PoolShape& s, const void* x, void* y) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      for (int c = 0; c < s.channels; ++c) {
        float sum = 0;
        const int count = for_each_averaged(s, out_y, out_x, [&](int in_y, int in_x) {
          sum += load<T>(x, in_at(s, row, in_y, in_x) + c);
        });
        store<T>(y, at + c, sum / static_cast<float>(count));
      }
    });
  });
}

void average_pool_backward(const PoolShape& s, const void* dy, void* dx) {
  std::vector<float> sums(static_cast<size_t>(in_at(s, s.rows, 0, 0)), 0.0f);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      const int count = for_each_averaged(s, out_y, out_x, [](int, int) {});
      for_each_averaged(s, out_y, out_x, [&](int in_y, int in_x) {
        for (int c = 0; c < s.channels; ++c) {
          sums[in_at(s, row, in_y, in_x) + c] += load<T>(dy, at + c) / static_cast<float>(count);
        }
      });
    });
  });
  store_floats(sums, s.type, dx);
}

void copy_channels(const ChannelsShape& s, const void* x, void* y) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int64_t pixel = 0; pixel < s.pixels; ++pixel) {
      for (int c = 0; c < s.channels; ++c) {
        store<T>(y, pixel * s.target_channels + s.to + c,
                 load<T>(x, pixel * s.source_channels + s.from + c));
      }
    }
  });
}

void dropout(const DropoutShape& s, int64_t position, const void* values, void* out) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < s.rows * s.pixels * s.channels; ++i) {
      const int64_t c = i % s.channels, pixel = i / s.channels % s.pixels;
      const uint64_t key = dropout_row_key(s.key, position + i / s.channels / s.pixels);
      const float factor = dropout_factor(key, c * s.pixels + pixel, s.rate);
      store<T>(out, i, factor == 0 ? 0.0f : factor * load<T>(values, i));
    }
  });
}

void pad_channels(const PadShape& s, const void* x, void* y) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_padded(s, [&](int64_t wide, int64_t narrow) {
      for (int c = 0; c < s.out_channels; ++c) {
        store<T>(y, wide + c, c < s.in_channels ? load<T>(x, narrow + c) : 0.0f);
      }
    });
  });
}

void pad_channels_backward(const PadShape& s, const void* dy, void* dx) {
  std::vector<float> sums(static_cast<size_t>(s.rows) * s.in_height * s.in_width * s.in_channels,
                          0.0f);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_padded(s, [&](int64_t wide, int64_t narrow) {
      for (int c = 0; c < s.in_channels; ++c) sums[narrow + c] = load<T>(dy, wide + c);
    });
  });
  store_floats(sums, s.type, dx);
}

}  // namespace stoker::host
