#include "tests/support/reference_net.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/support/reference_interpreter.h"

namespace stoker {
namespace reference {
namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

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

double ReferenceInterpreter::loss(Values* gradient) const {
  const int classes = net_.classes;
  if (gradient != nullptr) gradient->assign(logits().size(), 0.0);
  double total = 0;
  for (int n = 0; n < input_.rows; ++n) {
    const double* row = logits().data() + static_cast<size_t>(n) * classes;
    const bool mixed = input_.mix_labels != nullptr;
    const double share = mixed ? input_.mix_weights[n] : 1.0;
    const int second = mixed ? input_.mix_labels[n] : input_.labels[n];
    double sum = 0;
    for (int k = 0; k < classes; ++k) sum += std::exp(row[k]);
    for (int k = 0; k < classes; ++k) {
      const double hard = share * (k == input_.labels[n]) + (1 - share) * (k == second);
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
  ReferenceInterpreter interpreter(net, parameters, input, nullptr);
  interpreter.forward();
  return interpreter.loss(nullptr);
}

std::vector<double> reference_logits(const NetSpec& net, const std::vector<double>& parameters,
                                     const std::vector<double>& statistics,
                                     const ReferenceInput& input) {
  ReferenceInterpreter interpreter(net, parameters, input, &statistics);
  interpreter.forward();
  return interpreter.logits();
}

}  // namespace stoker
