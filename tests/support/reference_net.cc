#include "tests/support/reference_net.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/support/reference_interpreter.h"

namespace stoker {
namespace reference {
namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gelu_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return normal_cdf(x) + x * density;
}

}  // namespace

void ReferenceInterpreter::load(Tensor& out) const {
  for_each(out, [&](int n, int c, int y, int x) {
    const size_t at =
        ((static_cast<size_t>(n) * out.shape.height + y) * out.shape.width + x) * 3 + c;
    out.v[out.at(n, c, y, x)] = (input_.images[at] / 255.0 - input_.mean[c]) / input_.stddev[c];
  });
}

void ReferenceInterpreter::forward_node(int i) {
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
    case OpKind::tanh:
      return each([](double x) { return std::tanh(x); });
    case OpKind::sigmoid:
      return each(sigmoid);
    case OpKind::max_pool:
      return max_pool(i, false);
    case OpKind::avg_pool:
      return average_window(i, false);
    case OpKind::adaptive_avg_pool:
      return average_adaptive(i, false);
    case OpKind::add:
      out.v = values_[node.input].v;
      for (size_t k = 0; k < out.v.size(); ++k) out.v[k] += values_[node.more_inputs[0]].v[k];
      return;
    case OpKind::concat:
      return concat(i, false);
    case OpKind::dropout:
      return dropout(i, false);
    case OpKind::pad_channels:
      return pad_channels(i, false);
    case OpKind::linear:
      return linear_forward(i);
  }
}

void ReferenceInterpreter::backward_node(int i) {
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
    case OpKind::tanh:
      return each([](double x) { return 1 - std::tanh(x) * std::tanh(x); });
    case OpKind::sigmoid:
      return each([](double x) { return sigmoid(x) * (1 - sigmoid(x)); });
    case OpKind::max_pool:
      return max_pool(i, true);
    case OpKind::avg_pool:
      return average_window(i, true);
    case OpKind::adaptive_avg_pool:
      return average_adaptive(i, true);
    case OpKind::add:
      for (const int input : inputs_of(node)) {
        for (size_t k = 0; k < g.size(); ++k) gradients_[input].v[k] += g[k];
      }
      return;
    case OpKind::concat:
      return concat(i, true);
    case OpKind::dropout:
      return dropout(i, true);
    case OpKind::pad_channels:
      return pad_channels(i, true);
    case OpKind::linear:
      return linear_backward(i);
  }
}

double ReferenceInterpreter::loss(int head, Values* gradient) const {
  const int classes = net_.classes;
  const bool binary = net_.loss == LossKind::binary;
  const double smooth = binary ? input_.label_smoothing / 2 : input_.label_smoothing / classes;
  const double share_of_output = binary ? 1.0 / classes : 1.0;
  const Values& all = values_[head].v;
  if (gradient != nullptr) gradient->assign(all.size(), 0.0);
  double total = 0;
  for (int n = 0; n < input_.rows; ++n) {
    const double* row = all.data() + static_cast<size_t>(n) * classes;
    const bool mixed = input_.mix_labels != nullptr;
    const double share = mixed ? input_.mix_weights[n] : 1.0;
    const int second = mixed ? input_.mix_labels[n] : input_.labels[n];
    double sum = 0;
    for (int k = 0; k < classes; ++k) sum += std::exp(row[k]);
    for (int k = 0; k < classes; ++k) {
      const int own = binary && classes == 1 ? 1 : k;
      double hard = share * (own == input_.labels[n]) + (1 - share) * (own == second);
      if (input_.targets != nullptr) hard = input_.targets[static_cast<size_t>(n) * classes + k];
      const double wanted = smooth + (1.0 - input_.label_smoothing) * hard;
      const double probability = binary ? sigmoid(row[k]) : std::exp(row[k]) / sum;
      double loss = wanted * std::log(probability);
      if (binary) loss += (1 - wanted) * std::log(1 - probability);
      total -= input_.weights[n] * share_of_output * loss;
      if (gradient != nullptr) {
        (*gradient)[static_cast<size_t>(n) * classes + k] =
            input_.weights[n] * share_of_output * (probability - wanted);
      }
    }
  }
  return total;
}

double ReferenceInterpreter::weighted_loss() const {
  double total = 0;
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    if (net_.nodes[i].kind != OpKind::linear) continue;
    total += net_.nodes[i].loss_weight * loss(static_cast<int>(i), nullptr);
  }
  return total;
}

void ReferenceInterpreter::backward() {
  for (size_t i = 0; i < net_.nodes.size(); ++i) gradients_[i] = Tensor(input_.rows, shapes_[i]);
  for (int i = static_cast<int>(net_.nodes.size()) - 1; i > 0; --i) {
    if (net_.nodes[i].kind == OpKind::linear) {
      loss(i, &gradients_[i].v);
      for (double& g : gradients_[i].v) g *= net_.nodes[i].loss_weight;
    }
    backward_node(i);
  }
}

Values ReferenceInterpreter::batch_statistics() const {
  Values all;
  for (const NormMoments& m : moments_) {
    all.insert(all.end(), m.mean.begin(), m.mean.end());
    all.insert(all.end(), m.variance.begin(), m.variance.end());
  }
  return all;
}

}  // namespace reference

using reference::ReferenceInterpreter;
using reference::Values;

ReferenceStep reference_step(const NetSpec& net, const std::vector<double>& parameters,
                             const ReferenceInput& input) {
  ReferenceInterpreter interpreter(net, parameters, input, nullptr);
  interpreter.forward();
  ReferenceStep step;
  step.loss_sum = interpreter.last_loss();
  interpreter.backward();
  step.logits = interpreter.logits();
  step.gradients = interpreter.parameter_gradients();
  step.statistics = interpreter.batch_statistics();
  return step;
}

double reference_loss(const NetSpec& net, const std::vector<double>& parameters,
                      const ReferenceInput& input) {
  ReferenceInterpreter interpreter(net, parameters, input, nullptr);
  interpreter.forward();
  return interpreter.weighted_loss();
}

std::vector<double> reference_logits(const NetSpec& net, const std::vector<double>& parameters,
                                     const std::vector<double>& statistics,
                                     const ReferenceInput& input) {
  ReferenceInterpreter interpreter(net, parameters, input, &statistics);
  interpreter.forward();
  return interpreter.logits();
}

}  // namespace stoker
