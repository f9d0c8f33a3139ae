// Forward and backward of the reference net's operations, written like their formulas.
#include <cmath>
#include <limits>

#include "tests/support/reference_interpreter.h"
#include "train/engine/dropout.h"

namespace stoker::reference {

void ReferenceInterpreter::conv_forward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  Tensor& out = values_[i];
  const int64_t weight = offset(i, ParameterKind::conv_weight);
  const int64_t bias = offset(i, ParameterKind::conv_bias);
  for_each(out, [&](int n, int o, int y, int x) {
    double sum = bias >= 0 ? parameters_[bias + o] : 0.0;
    for (int c = 0; c < in.shape.channels; ++c) {
      for_each_tap(node, in.shape, y, x, [&](int ky, int kx, int in_y, int in_x) {
        sum += parameters_[weight_at(weight, node, in.shape.channels, o, c, ky, kx)] *
               in.v[in.at(n, c, in_y, in_x)];
      });
    }
    out.v[out.at(n, o, y, x)] = sum;
  });
}

void ReferenceInterpreter::conv_backward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  Tensor& in_gradient = gradients_[node.input];
  const Tensor& gradient = gradients_[i];
  const int64_t weight = offset(i, ParameterKind::conv_weight);
  const int64_t bias = offset(i, ParameterKind::conv_bias);
  for_each(gradient, [&](int n, int o, int y, int x) {
    const double g = gradient.v[gradient.at(n, o, y, x)];
    if (bias >= 0) parameter_gradients_[bias + o] += g;
    for (int c = 0; c < in.shape.channels; ++c) {
      for_each_tap(node, in.shape, y, x, [&](int ky, int kx, int in_y, int in_x) {
        const int64_t w = weight_at(weight, node, in.shape.channels, o, c, ky, kx);
        const size_t at = in.at(n, c, in_y, in_x);
        parameter_gradients_[w] += g * in.v[at];
        in_gradient.v[at] += g * parameters_[w];
      });
    }
  });
}

void ReferenceInterpreter::norm_forward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  Tensor& out = values_[i];
  NormMoments& m = moments_[i];
  const int channels = in.shape.channels;
  const double count = static_cast<double>(in.rows) * in.pixels();
  m.mean.assign(channels, 0.0);
  m.variance.assign(channels, 0.0);
  for_each(in, [&](int n, int c, int y, int x) { m.mean[c] += in.v[in.at(n, c, y, x)] / count; });
  for_each(in, [&](int n, int c, int y, int x) {
    const double d = in.v[in.at(n, c, y, x)] - m.mean[c];
    m.variance[c] += d * d / count;
  });
  if (running_ != nullptr) {
    const auto from = running_->begin() + statistics_offset(i);
    m.mean.assign(from, from + channels);
    m.variance.assign(from + channels, from + 2 * channels);
  }
  const int64_t weight = offset(i, ParameterKind::norm_weight);
  const int64_t bias = offset(i, ParameterKind::norm_bias);
  for_each(in, [&](int n, int c, int y, int x) {
    const double normal =
        (in.v[in.at(n, c, y, x)] - m.mean[c]) / std::sqrt(m.variance[c] + node.eps);
    out.v[out.at(n, c, y, x)] = parameters_[weight + c] * normal + parameters_[bias + c];
  });
}

void ReferenceInterpreter::norm_backward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  const Tensor& gradient = gradients_[i];
  const NormMoments& m = moments_[i];
  const int64_t weight = offset(i, ParameterKind::norm_weight);
  const int64_t bias = offset(i, ParameterKind::norm_bias);
  const double count = static_cast<double>(in.rows) * in.pixels();
  const auto normal = [&](int n, int c, int y, int x) {
    return (in.v[in.at(n, c, y, x)] - m.mean[c]) / std::sqrt(m.variance[c] + node.eps);
  };
  for_each(in, [&](int n, int c, int y, int x) {
    const double g = gradient.v[gradient.at(n, c, y, x)];
    parameter_gradients_[weight + c] += g * normal(n, c, y, x);
    parameter_gradients_[bias + c] += g;
  });
  for_each(in, [&](int n, int c, int y, int x) {
    const double g = gradient.v[gradient.at(n, c, y, x)];
    const double centred = g - parameter_gradients_[bias + c] / count -
                           normal(n, c, y, x) * parameter_gradients_[weight + c] / count;
    gradients_[node.input].v[in.at(n, c, y, x)] +=
        parameters_[weight + c] / std::sqrt(m.variance[c] + node.eps) * centred;
  });
}

void ReferenceInterpreter::max_pool(int i, bool back) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  Tensor& out = values_[i];
  for_each(out, [&](int n, int c, int y, int x) {
    size_t best = 0;
    double highest = -std::numeric_limits<double>::infinity();
    for_each_tap(node, in.shape, y, x, [&](int, int, int in_y, int in_x) {
      const size_t at = in.at(n, c, in_y, in_x);
      if (in.v[at] > highest) {
        highest = in.v[at];
        best = at;
      }
    });
    if (back) {
      gradients_[node.input].v[best] += gradients_[i].v[out.at(n, c, y, x)];
    } else {
      out.v[out.at(n, c, y, x)] = highest;
    }
  });
}

void ReferenceInterpreter::average_window(int i, bool back) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  const double count = static_cast<double>(node.kernel.width) * node.kernel.height;
  for_each(values_[i], [&](int n, int c, int y, int x) {
    const size_t out = values_[i].at(n, c, y, x);
    for_each_tap(node, in.shape, y, x, [&](int, int, int in_y, int in_x) {
      const size_t at = in.at(n, c, in_y, in_x);
      if (back) {
        gradients_[node.input].v[at] += gradients_[i].v[out] / count;
      } else {
        values_[i].v[out] += in.v[at] / count;
      }
    });
  });
}

// Output y averages the pixels from floor(y * in / out) to ceil((y + 1) * in / out).
void ReferenceInterpreter::average_adaptive(int i, bool back) {
  const int input = net_.nodes[i].input;
  const Tensor& in = values_[input];
  const NodeShape& out = values_[i].shape;
  const auto begin = [](int at, int in_size, int out_size) { return at * in_size / out_size; };
  const auto end = [](int at, int in_size, int out_size) {
    return static_cast<int>(std::ceil((at + 1) * static_cast<double>(in_size) / out_size));
  };
  for_each(values_[i], [&](int n, int c, int y, int x) {
    const int top = begin(y, in.shape.height, out.height);
    const int bottom = end(y, in.shape.height, out.height);
    const int left = begin(x, in.shape.width, out.width);
    const int right = end(x, in.shape.width, out.width);
    const double count = static_cast<double>(bottom - top) * (right - left);
    const size_t to = values_[i].at(n, c, y, x);
    for (int in_y = top; in_y < bottom; ++in_y) {
      for (int in_x = left; in_x < right; ++in_x) {
        const size_t at = in.at(n, c, in_y, in_x);
        if (back) {
          gradients_[input].v[at] += gradients_[i].v[to] / count;
        } else {
          values_[i].v[to] += in.v[at] / count;
        }
      }
    }
  });
}

void ReferenceInterpreter::concat(int i, bool back) {
  int first = 0;
  for (const int input : inputs_of(net_.nodes[i])) {
    for_each(values_[input], [&](int n, int c, int y, int x) {
      const size_t part = values_[input].at(n, c, y, x);
      const size_t whole = values_[i].at(n, first + c, y, x);
      if (back) {
        gradients_[input].v[part] += gradients_[i].v[whole];
      } else {
        values_[i].v[whole] = values_[input].v[part];
      }
    });
    first += values_[input].shape.channels;
  }
}

void ReferenceInterpreter::dropout(int i, bool back) {
  const NetNode& node = net_.nodes[i];
  const auto row_values = static_cast<int64_t>(values_[i].v.size()) / input_.rows;
  for (size_t k = 0; k < values_[i].v.size(); ++k) {
    const auto row = static_cast<int64_t>(k) / row_values;
    const uint64_t key = dropout_row_key(dropout_key(input_.seed, i), input_.position + row);
    const double factor =
        running_ != nullptr
            ? 1.0
            : dropout_factor(key, static_cast<int64_t>(k) - row * row_values, node.rate);
    if (back) {
      gradients_[node.input].v[k] += factor * gradients_[i].v[k];
    } else {
      values_[i].v[k] = factor * values_[node.input].v[k];
    }
  }
}

void ReferenceInterpreter::pad_channels(int i, bool back) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  Tensor& out = values_[i];
  for_each(out, [&](int n, int c, int y, int x) {
    if (c >= in.shape.channels) return;
    const size_t from = in.at(n, c, y * node.stride, x * node.stride), to = out.at(n, c, y, x);
    if (back) {
      gradients_[node.input].v[from] += gradients_[i].v[to];
    } else {
      out.v[to] = in.v[from];
    }
  });
}

void ReferenceInterpreter::linear_forward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  const int64_t weight = offset(i, ParameterKind::linear_weight);
  const int64_t bias = offset(i, ParameterKind::linear_bias);
  for_each(values_[i], [&](int n, int o, int, int) {
    double sum = bias >= 0 ? parameters_[bias + o] : 0.0;
    for (int c = 0; c < in.shape.channels; ++c) {
      sum += parameters_[weight + o * in.shape.channels + c] * in.v[in.at(n, c, 0, 0)];
    }
    values_[i].v[values_[i].at(n, o, 0, 0)] = node.scale * sum;
  });
}

void ReferenceInterpreter::linear_backward(int i) {
  const NetNode& node = net_.nodes[i];
  const Tensor& in = values_[node.input];
  const int64_t weight = offset(i, ParameterKind::linear_weight);
  const int64_t bias = offset(i, ParameterKind::linear_bias);
  for_each(gradients_[i], [&](int n, int o, int, int) {
    const double g = node.scale * gradients_[i].v[values_[i].at(n, o, 0, 0)];
    if (bias >= 0) parameter_gradients_[bias + o] += g;
    for (int c = 0; c < in.shape.channels; ++c) {
      const int64_t w = weight + o * in.shape.channels + c;
      parameter_gradients_[w] += g * in.v[in.at(n, c, 0, 0)];
      gradients_[node.input].v[in.at(n, c, 0, 0)] += g * parameters_[w];
    }
  });
}

}  // namespace stoker::reference
