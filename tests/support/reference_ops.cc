// Forward and backward of the reference net's operations, written like their formulas.
#include <cmath>
#include <limits>

#include "tests/support/reference_interpreter.h"

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

void ReferenceInterpreter::average(int i, bool back) {
  const Tensor& in = values_[net_.nodes[i].input];
  for_each(in, [&](int n, int c, int y, int x) {
    const size_t at = in.at(n, c, y, x), out = values_[i].at(n, c, 0, 0);
    if (back) {
      gradients_[net_.nodes[i].input].v[at] += gradients_[i].v[out] / in.pixels();
    } else {
      values_[i].v[out] += in.v[at] / in.pixels();
    }
  });
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
