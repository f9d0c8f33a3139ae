#include "tests/support/reference_net.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace stoker {
namespace {

using Values = std::vector<double>;

struct Tensor {  // (rows, C, H, W)
  int rows = 0;
  NodeShape shape;
  Values v;

  Tensor() = default;
  Tensor(int r, const NodeShape& s)
      : rows(r), shape(s), v(static_cast<size_t>(r) * s.channels * s.height * s.width, 0.0) {}
  size_t at(int n, int c, int y, int x) const {
    return ((static_cast<size_t>(n) * shape.channels + c) * shape.height + y) * shape.width + x;
  }
  int pixels() const { return shape.height * shape.width; }
};

template <typename Visit>  // visit(n, c, y, x)
void for_each(const Tensor& t, Visit visit) {
  for (int n = 0; n < t.rows; ++n) {
    for (int c = 0; c < t.shape.channels; ++c) {
      for (int y = 0; y < t.shape.height; ++y) {
        for (int x = 0; x < t.shape.width; ++x) visit(n, c, y, x);
      }
    }
  }
}

template <typename Visit>  // visit(ky, kx, y, x) for the taps inside the picture
void for_each_tap(const NetNode& node, const NodeShape& in, int out_y, int out_x, Visit visit) {
  for (int ky = 0; ky < node.kernel; ++ky) {
    for (int kx = 0; kx < node.kernel; ++kx) {
      const int y = out_y * node.stride + ky - node.padding;
      const int x = out_x * node.stride + kx - node.padding;
      if (y >= 0 && y < in.height && x >= 0 && x < in.width) visit(ky, kx, y, x);
    }
  }
}

struct NormMoments {
  Values mean, variance;
};

class Interpreter {
 public:
  Interpreter(const NetSpec& net, const Values& parameters, const ReferenceInput& input,
              const Values* running)
      : net_(net),
        parameters_(parameters),
        input_(input),
        running_(running),
        shapes_(node_shapes(net)),
        table_(parameter_table(net)),
        statistics_(statistics_table(net)),
        values_(net.nodes.size()),
        gradients_(net.nodes.size()),
        moments_(net.nodes.size()),
        parameter_gradients_(parameters.size(), 0.0) {}

  void forward() {
    for (size_t i = 0; i < net_.nodes.size(); ++i) {
      values_[i] = Tensor(input_.rows, shapes_[i]);
      forward_node(static_cast<int>(i));
    }
  }

  double loss(Values* gradient) const;
  void backward(const Values& logit_gradient) {
    for (size_t i = 0; i < net_.nodes.size(); ++i) gradients_[i] = Tensor(input_.rows, shapes_[i]);
    gradients_.back().v = logit_gradient;
    for (int i = static_cast<int>(net_.nodes.size()) - 1; i > 0; --i) backward_node(i);
  }

  const Values& logits() const { return values_.back().v; }
  const Values& parameter_gradients() const { return parameter_gradients_; }
  Values batch_statistics() const;

 private:
  int64_t offset(int node, ParameterKind kind) const {
    for (const TensorInfo& info : table_) {
      if (info.node == node && info.kind == kind) return info.offset;
    }
    return -1;
  }
  int64_t statistics_offset(int node) const {
    for (const TensorInfo& info : statistics_) {
      if (info.node == node) return info.offset;
    }
    return -1;
  }
  int64_t weight_at(int64_t base, const NetNode& node, int channels, int o, int c, int ky,
                    int kx) const {
    return base + ((static_cast<int64_t>(o) * channels + c) * node.kernel + ky) * node.kernel + kx;
  }

  void load(Tensor& out) const;
  void forward_node(int i);
  void backward_node(int i);
  void conv_forward(int i);
  void conv_backward(int i);
  void norm_forward(int i);
  void norm_backward(int i);
  void max_pool(int i, bool back);
  void average(int i, bool back);
  void pad_channels(int i, bool back);
  void linear_forward(int i);
  void linear_backward(int i);

  const NetSpec& net_;
  const Values& parameters_;
  const ReferenceInput& input_;
  const Values* running_;  // evaluation mode if not null
  const std::vector<NodeShape> shapes_;
  const std::vector<TensorInfo> table_, statistics_;
  std::vector<Tensor> values_, gradients_;
  std::vector<NormMoments> moments_;
  Values parameter_gradients_;
};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double gelu_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return normal_cdf(x) + x * density;
}

void Interpreter::load(Tensor& out) const {
  const Box& box = input_.mix.box;
  const double lambda = input_.mix.lambda;
  for_each(out, [&](int n, int c, int y, int x) {
    const auto pixel = [&](int row) {
      const size_t at =
          ((static_cast<size_t>(row) * out.shape.height + y) * out.shape.width + x) * 3 + c;
      return (input_.images[at] / 255.0 - input_.mean[c]) / input_.stddev[c];
    };
    const int partner = input_.rows - 1 - n;
    const bool in_box = x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
    double value = pixel(n);
    if (input_.mix.kind == Mix::Kind::mixup) {
      value = lambda * value + (1 - lambda) * pixel(partner);
    } else if (input_.mix.kind == Mix::Kind::cutmix && in_box) {
      value = pixel(partner);
    }
    out.v[out.at(n, c, y, x)] = value;
  });
}

void Interpreter::forward_node(int i) {
  const NetNode& node = net_.nodes[i];
  Tensor& out = values_[i];
  const auto each = [&](auto function) {
    for (size_t k = 0; k < out.v.size(); ++k) out.v[k] = function(values_[node.input].v[k]);
  };
  switch (node.kind) {
    case OpKind::input:
      return load(out);
    case OpKind::conv:
      return conv_forward(i);
    case OpKind::batch_norm:
      return norm_forward(i);
    case OpKind::relu:
      return each([](double x) { return std::max(x, 0.0); });
    case OpKind::gelu:
      return each([](double x) { return x * normal_cdf(x); });
    case OpKind::max_pool:
      return max_pool(i, false);
    case OpKind::global_avg_pool:
      return average(i, false);
    case OpKind::add:
      out.v = values_[node.input].v;
      for (size_t k = 0; k < out.v.size(); ++k) out.v[k] += values_[node.input2].v[k];
      return;
    case OpKind::pad_channels:
      return pad_channels(i, false);
    case OpKind::linear:
      return linear_forward(i);
  }
}

void Interpreter::backward_node(int i) {
  const NetNode& node = net_.nodes[i];
  const Values& g = gradients_[i].v;
  const auto each = [&](auto slope) {
    for (size_t k = 0; k < g.size(); ++k) {
      gradients_[node.input].v[k] += g[k] * slope(values_[node.input].v[k]);
    }
  };
  switch (node.kind) {
    case OpKind::input:
      return;
    case OpKind::conv:
      return conv_backward(i);
    case OpKind::batch_norm:
      return norm_backward(i);
    case OpKind::relu:
      return each([](double x) { return x > 0 ? 1.0 : 0.0; });
    case OpKind::gelu:
      return each(gelu_slope);
    case OpKind::max_pool:
      return max_pool(i, true);
    case OpKind::global_avg_pool:
      return average(i, true);
    case OpKind::add:
      for (size_t k = 0; k < g.size(); ++k) gradients_[node.input].v[k] += g[k];
      for (size_t k = 0; k < g.size(); ++k) gradients_[node.input2].v[k] += g[k];
      return;
    case OpKind::pad_channels:
      return pad_channels(i, true);
    case OpKind::linear:
      return linear_backward(i);
  }
}

void Interpreter::conv_forward(int i) {
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

void Interpreter::conv_backward(int i) {
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

void Interpreter::norm_forward(int i) {
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

void Interpreter::norm_backward(int i) {
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

void Interpreter::max_pool(int i, bool back) {
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

void Interpreter::average(int i, bool back) {
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

void Interpreter::pad_channels(int i, bool back) {
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

void Interpreter::linear_forward(int i) {
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

void Interpreter::linear_backward(int i) {
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

double Interpreter::loss(Values* gradient) const {
  const int classes = net_.classes;
  if (gradient != nullptr) gradient->assign(logits().size(), 0.0);
  double total = 0;
  for (int n = 0; n < input_.rows; ++n) {
    const double* row = logits().data() + static_cast<size_t>(n) * classes;
    const bool mixed = input_.mix.kind != Mix::Kind::none;
    const double lambda = mixed ? input_.mix.lambda : 1.0;
    const int partner = mixed ? input_.labels[input_.rows - 1 - n] : input_.labels[n];
    double sum = 0;
    for (int k = 0; k < classes; ++k) sum += std::exp(row[k]);
    for (int k = 0; k < classes; ++k) {
      const double hard = lambda * (k == input_.labels[n]) + (1 - lambda) * (k == partner);
      const double wanted =
          input_.label_smoothing / classes + (1.0 - input_.label_smoothing) * hard;
      const double probability = std::exp(row[k]) / sum;
      total -= input_.weights[n] * wanted * std::log(probability);
      if (gradient != nullptr) {
        (*gradient)[static_cast<size_t>(n) * classes + k] =
            input_.weights[n] * (probability - wanted);
      }
    }
  }
  return total;
}

Values Interpreter::batch_statistics() const {
  Values all;
  for (const NormMoments& m : moments_) {
    all.insert(all.end(), m.mean.begin(), m.mean.end());
    all.insert(all.end(), m.variance.begin(), m.variance.end());
  }
  return all;
}

}  // namespace

ReferenceStep reference_step(const NetSpec& net, const std::vector<double>& parameters,
                             const ReferenceInput& input) {
  Interpreter interpreter(net, parameters, input, nullptr);
  interpreter.forward();
  ReferenceStep step;
  Values gradient;
  step.loss_sum = interpreter.loss(&gradient);
  interpreter.backward(gradient);
  step.logits = interpreter.logits();
  step.gradients = interpreter.parameter_gradients();
  step.statistics = interpreter.batch_statistics();
  return step;
}

double reference_loss(const NetSpec& net, const std::vector<double>& parameters,
                      const ReferenceInput& input) {
  Interpreter interpreter(net, parameters, input, nullptr);
  interpreter.forward();
  return interpreter.loss(nullptr);
}

std::vector<double> reference_logits(const NetSpec& net, const std::vector<double>& parameters,
                                     const std::vector<double>& statistics,
                                     const ReferenceInput& input) {
  Interpreter interpreter(net, parameters, input, &statistics);
  interpreter.forward();
  return interpreter.logits();
}

}  // namespace stoker
