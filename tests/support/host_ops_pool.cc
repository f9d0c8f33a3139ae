// Pooling and channel padding in plain loops.
#include <cstring>

#include "tests/support/host_ops.h"

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
void for_each_tap(const PoolShape& s, int out_y, int out_x, Visit visit) {
  for (int tap = 0; tap < s.kernel * s.kernel; ++tap) {
    const int y = out_y * s.stride + tap / s.kernel - s.padding;
    const int x = out_x * s.stride + tap % s.kernel - s.padding;
    if (y >= 0 && y < s.in_height && x >= 0 && x < s.in_width) visit(tap, y, x);
  }
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

void max_pool(const PoolShape& s, const void* x, void* y, uint8_t* taps) {
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      for (int c = 0; c < s.channels; ++c) {
        float best = 0;
        int won = -1;
        for_each_tap(s, out_y, out_x, [&](int tap, int in_y, int in_x) {
          const float value = load<T>(x, in_at(s, row, in_y, in_x) + c);
          if (!device::wins(value, best, won < 0)) return;
          best = value;
          won = tap;
        });
        store<T>(y, at + c, best);
        taps[at + c] = static_cast<uint8_t>(won);
      }
    });
  });
}

void max_pool_backward(const PoolShape& s, const void* dy, const uint8_t* taps, void* dx) {
  std::vector<float> sums(static_cast<size_t>(in_at(s, s.rows, 0, 0)), 0.0f);
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for_each_output(s, [&](int row, int out_y, int out_x, int64_t at) {
      for_each_tap(s, out_y, out_x, [&](int tap, int in_y, int in_x) {
        for (int c = 0; c < s.channels; ++c) {
          if (taps[at + c] == tap) sums[in_at(s, row, in_y, in_x) + c] += load<T>(dy, at + c);
        }
      });
    });
  });
  store_floats(sums, s.type, dx);
}

void average_pool(const PoolShape& s, const void* x, void* y) {
  const int64_t pixels = static_cast<int64_t>(s.in_height) * s.in_width;
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < static_cast<int64_t>(s.rows) * s.channels; ++i) {
      float sum = 0;
      for (int64_t p = 0; p < pixels; ++p) {
        sum += load<T>(x, (i / s.channels * pixels + p) * s.channels + i % s.channels);
      }
      store<T>(y, i, sum / static_cast<float>(pixels));
    }
  });
}

void average_pool_backward(const PoolShape& s, const void* dy, void* dx) {
  const int64_t pixels = static_cast<int64_t>(s.in_height) * s.in_width;
  with_type(s.type, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < s.rows * pixels * s.channels; ++i) {
      const int64_t row = i / (pixels * s.channels);
      store<T>(dx, i, load<T>(dy, row * s.channels + i % s.channels) / static_cast<float>(pixels));
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
