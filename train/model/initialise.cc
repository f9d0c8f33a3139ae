#include "train/model/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stoker {
namespace {

// SplitMix64: well mixed, and stateless, so that any index can be drawn directly.
uint64_t mixed_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xd1342543de82ef95ull + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The random numbers of one tensor, keyed by its position in the table, so that the size of one
// tensor does not change the draws of the next.
class TensorDraws {
 public:
  TensorDraws(uint64_t seed, uint64_t tensor) : key_(mixed_bits(seed, tensor)) {}
  double uniform(int64_t index) const {  // [0, 1)
    return static_cast<double>(mixed_bits(key_, index) >> 11) * 0x1.0p-53;
  }
  double normal(int64_t index) const {  // Box-Muller
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(2 * index)));
    return radius * std::cos(2.0 * std::numbers::pi * uniform(2 * index + 1));
  }

 private:
  uint64_t key_;
};

void fill_uniform(const TensorDraws& draws, double bound, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(bound * (2.0 * draws.uniform(i) - 1.0));
  }
}

void fill_normal(const TensorDraws& draws, double deviation, float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(deviation * draws.normal(i));
}

void pass_through(const TensorInfo& info, float* values) {
  const int64_t taps = info.shape[2] * info.shape[3];
  const int64_t filter = info.shape[1] * taps;
  for (int64_t o = 0; o < std::min(info.shape[0], info.shape[1]); ++o) {
    std::fill_n(values + o * filter, filter, 0.0f);
    values[o * filter + o * taps + taps / 2] = 1.0f;
  }
}

// Marks the batch norms at the end of a residual branch: their output is the first input of an
// addition.
std::vector<bool> ends_of_branches(const NetSpec& net) {
  std::vector<bool> ends(net.nodes.size(), false);
  for (const NetNode& node : net.nodes) {
    if (node.kind == OpKind::add && net.nodes[node.input].kind == OpKind::batch_norm) {
      ends[node.input] = true;
    }
  }
  return ends;
}

int64_t fan_in(const TensorInfo& weight) { return weight.count / weight.shape[0]; }

int64_t fan_out(const NetSpec& net, const TensorInfo& weight) {
  if (weight.kind != ParameterKind::conv_weight) return weight.shape[0];
  const Size& kernel = net.nodes[weight.node].kernel;
  const int64_t taps = int64_t{kernel.width} * kernel.height;
  return net.nodes[weight.node].flat ? weight.shape[0] : weight.shape[0] * taps;
}

void fill_weight(const NetSpec& net, const TensorInfo& info, const TensorDraws& draws,
                 float* values) {
  const NetNode& node = net.nodes[info.node];
  const auto in = static_cast<double>(fan_in(info)), out = static_cast<double>(fan_out(net, info));
  const auto normal = [&](double deviation) { fill_normal(draws, deviation, values, info.count); };
  const auto uniform = [&](double bound) { fill_uniform(draws, bound, values, info.count); };
  switch (node.init) {
    case WeightInit::uniform:
      return uniform(1.0 / std::sqrt(in));
    case WeightInit::kaiming_out:
      return normal(std::sqrt(2.0 / out));
    case WeightInit::kaiming_in:
      return normal(std::sqrt(2.0 / in));
    case WeightInit::normal:
      return normal(node.init_deviation);
    case WeightInit::glorot_uniform:
      return uniform(std::sqrt(6.0 / (in + out)));
    case WeightInit::dirac:
      uniform(1.0 / std::sqrt(in));
      if (node.padding.width > 0) pass_through(info, values);
      return;
  }
}

}  // namespace

std::vector<float> initial_parameters(const NetSpec& net, const InitOptions& options) {
  const std::vector<TensorInfo> table = parameter_table(net);
  const std::vector<bool> branch_end = ends_of_branches(net);
  std::vector<float> parameters(total_count(table), 0.0f);
  int64_t weight_fan_in = 1;
  for (size_t t = 0; t < table.size(); ++t) {
    const TensorInfo& info = table[t];
    float* values = parameters.data() + info.offset;
    const TensorDraws draws(options.seed, t);
    const double bias_bound = 1.0 / std::sqrt(static_cast<double>(weight_fan_in));
    switch (info.kind) {
      case ParameterKind::conv_weight:
      case ParameterKind::linear_weight:
        fill_weight(net, info, draws, values);
        weight_fan_in = fan_in(info);
        break;
      case ParameterKind::conv_bias:
      case ParameterKind::linear_bias:
        if (!net.nodes[info.node].zero_bias) fill_uniform(draws, bias_bound, values, info.count);
        break;
      case ParameterKind::norm_weight: {
        const bool zero = options.zero_gamma && branch_end[info.node];
        std::fill_n(values, info.count, zero ? 0.0f : 1.0f);
        break;
      }
      case ParameterKind::norm_bias:
        break;
    }
  }
  return parameters;
}

std::vector<float> initial_statistics(const NetSpec& net) {
  const std::vector<TensorInfo> table = statistics_table(net);
  std::vector<float> statistics(total_count(table), 0.0f);
  for (size_t t = 1; t < table.size(); t += 2) {
    std::fill_n(statistics.begin() + table[t].offset, table[t].count, 1.0f);
  }
  return statistics;
}

}  // namespace stoker
