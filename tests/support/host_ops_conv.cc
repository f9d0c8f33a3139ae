// Convolution and linear layers in plain loops: NHWC activations, OHWI weights, sums in fp32.
#include "tests/support/host_ops.h"

namespace stoker::host {
namespace {

int taps_of(const ConvShape& s) { return s.kernel.height * s.kernel.width; }

// Calls visit(output pixel, input pixel, tap); pixels are counted over all rows.
template <typename Visit>
void for_each_conv_tap(const ConvShape& s, Visit visit) {
  for (int row = 0; row < s.rows; ++row) {
    for (int y = 0; y < s.out_height; ++y) {
      for (int x = 0; x < s.out_width; ++x) {
        const int64_t out = (static_cast<int64_t>(row) * s.out_height + y) * s.out_width + x;
        for (int tap = 0; tap < taps_of(s); ++tap) {
          const int from_y = y * s.stride + tap / s.kernel.width - s.padding.height;
          const int from_x = x * s.stride + tap % s.kernel.width - s.padding.width;
          if (from_y < 0 || from_y >= s.in_height || from_x < 0 || from_x >= s.in_width) continue;
          visit(out, (static_cast<int64_t>(row) * s.in_height + from_y) * s.in_width + from_x, tap);
        }
      }
    }
  }
}

struct Counts {
  int64_t in, out, weights;
};

Counts counts_of(const ConvShape& s) {
  return {static_cast<int64_t>(s.rows) * s.in_height * s.in_width * s.in_channels,
          static_cast<int64_t>(s.rows) * s.out_height * s.out_width * s.out_channels,
          static_cast<int64_t>(s.out_channels) * taps_of(s) * s.in_channels};
}

// Returns weights as (tap, in, out), so that the inner loops below run over neighbours.
std::vector<float> taps_first(const ConvShape& s, const std::vector<float>& w) {
  std::vector<float> turned(w.size());
  const int taps = taps_of(s);
  for (int o = 0; o < s.out_channels; ++o) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int i = 0; i < s.in_channels; ++i) {
        turned[(static_cast<size_t>(tap) * s.in_channels + i) * s.out_channels + o] =
            w[(static_cast<size_t>(o) * taps + tap) * s.in_channels + i];
      }
    }
  }
  return turned;
}

void forward(const ConvShape& s, const float* x, const std::vector<float>& w, float* y) {
  const std::vector<float> turned = taps_first(s, w);
  for_each_conv_tap(s, [&](int64_t out, int64_t in, int tap) {
    float* to = y + out * s.out_channels;
    for (int i = 0; i < s.in_channels; ++i) {
      const float value = x[in * s.in_channels + i];
      const float* weights =
          turned.data() + (static_cast<size_t>(tap) * s.in_channels + i) * s.out_channels;
      for (int o = 0; o < s.out_channels; ++o) to[o] += value * weights[o];
    }
  });
}

void backward_data(const ConvShape& s, const float* dy, const float* w, float* dx) {
  const int taps = taps_of(s);
  for_each_conv_tap(s, [&](int64_t out, int64_t in, int tap) {
    float* to = dx + in * s.in_channels;
    for (int o = 0; o < s.out_channels; ++o) {
      const float value = dy[out * s.out_channels + o];
      const float* weights = w + (static_cast<int64_t>(o) * taps + tap) * s.in_channels;
      for (int i = 0; i < s.in_channels; ++i) to[i] += value * weights[i];
    }
  });
}

void backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw) {
  const int taps = taps_of(s);
  for_each_conv_tap(s, [&](int64_t out, int64_t in, int tap) {
    const float* from = x + in * s.in_channels;
    for (int o = 0; o < s.out_channels; ++o) {
      const float value = dy[out * s.out_channels + o];
      float* to = dw + (static_cast<int64_t>(o) * taps + tap) * s.in_channels;
      for (int i = 0; i < s.in_channels; ++i) to[i] += value * from[i];
    }
  });
}

}  // namespace

std::vector<float> as_floats(const void* data, int64_t count, Precision type) {
  std::vector<float> values(count);
  with_type(type, [&]<typename T>(Tag<T>) {
    for (int64_t i = 0; i < count; ++i) values[i] = load<T>(data, i);
  });
  return values;
}

void store_floats(const std::vector<float>& values, Precision type, void* out) {
  with_type(type, [&]<typename T>(Tag<T>) {
    for (size_t i = 0; i < values.size(); ++i) store<T>(out, static_cast<int64_t>(i), values[i]);
  });
}

void convolve(ConvPass pass, const ConvShape& s, const void* a, const void* b, void* out) {
  const Counts n = counts_of(s);
  const bool forwards = pass == ConvPass::forward;
  const bool to_weights = pass == ConvPass::backward_weights;
  const std::vector<float> first = as_floats(a, forwards || to_weights ? n.in : n.out, s.type);
  const std::vector<float> second = as_floats(b, to_weights ? n.out : n.weights, s.type);
  std::vector<float> result(forwards ? n.out : to_weights ? n.weights : n.in, 0.0f);
  if (forwards) {
    forward(s, first.data(), second, result.data());
  } else if (to_weights) {
    backward_weights(s, first.data(), second.data(), result.data());
  } else {
    backward_data(s, first.data(), second.data(), result.data());
  }
  store_floats(result, s.type, out);
}

void linear(const LinearShape& s, const void* x, const void* weight, const float* bias,
            float* logits) {
  const std::vector<float> in = as_floats(x, static_cast<int64_t>(s.rows) * s.features, s.type);
  const std::vector<float> w =
      as_floats(weight, static_cast<int64_t>(s.classes) * s.features, s.type);
  for (int row = 0; row < s.rows; ++row) {
    for (int k = 0; k < s.classes; ++k) {
      double sum = bias != nullptr ? bias[k] : 0.0;
      for (int f = 0; f < s.features; ++f) {
        sum += static_cast<double>(in[static_cast<size_t>(row) * s.features + f]) *
               w[static_cast<size_t>(k) * s.features + f];
      }
      logits[static_cast<int64_t>(row) * s.stride + k] = static_cast<float>(s.scale * sum);
    }
  }
}

void linear_backward(const LinearShape& s, const void* x, const void* weight, const void* dlogits,
                     float* dweight, float* dbias, void* dx) {
  const std::vector<float> in = as_floats(x, static_cast<int64_t>(s.rows) * s.features, s.type);
  const std::vector<float> w =
      as_floats(weight, static_cast<int64_t>(s.classes) * s.features, s.type);
  const std::vector<float> d = as_floats(dlogits, static_cast<int64_t>(s.rows) * s.stride, s.type);
  std::vector<double> dw(w.size(), 0.0), back(in.size(), 0.0), db(s.classes, 0.0);
  for (int row = 0; row < s.rows; ++row) {
    for (int k = 0; k < s.classes; ++k) {
      const double g = static_cast<double>(s.scale) * d[static_cast<size_t>(row) * s.stride + k];
      db[k] += g;
      for (int f = 0; f < s.features; ++f) {
        const size_t at = static_cast<size_t>(row) * s.features + f;
        dw[static_cast<size_t>(k) * s.features + f] += g * in[at];
        back[at] += g * w[static_cast<size_t>(k) * s.features + f];
      }
    }
  }
  for (size_t i = 0; i < dw.size(); ++i) dweight[i] = static_cast<float>(dw[i]);
  for (int k = 0; k < s.classes && dbias != nullptr; ++k) dbias[k] = static_cast<float>(db[k]);
  if (dx != nullptr) store_floats({back.begin(), back.end()}, s.type, dx);
}

}  // namespace stoker::host
