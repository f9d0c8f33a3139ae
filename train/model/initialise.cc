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

void fill_conv(const NetSpec& net, const InitOptions& options, const TensorInfo& info,
               const TensorDraws& draws, float* values) {
  if (options.conv == ConvInit::kaiming_normal) {
    const auto fan_out = static_cast<double>(info.shape[0] * info.shape[2] * info.shape[3]);
    fill_normal(draws, std::sqrt(2.0 / fan_out), values, info.count);
    return;
  }
  fill_uniform(draws, 1.0 / std::sqrt(static_cast<double>(fan_in(info))), values, info.count);
  if (options.conv == ConvInit::dirac && net.nodes[info.node].padding > 0) {
    pass_through(info, values);
  }
}

}  // namespace

InitOptions default_init(const NetSpec& net, uint64_t seed) {
  const bool airnet = net.name.rfind("airnet", 0) == 0;
  return {seed, airnet ? ConvInit::dirac : ConvInit::kaiming_normal, false};
}

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
        fill_conv(net, options, info, draws, values);
        weight_fan_in = fan_in(info);
        break;
      case ParameterKind::linear_weight:
        weight_fan_in = fan_in(info);
        fill_uniform(draws, 1.0 / std::sqrt(static_cast<double>(weight_fan_in)), values,
                     info.count);
        break;
      case ParameterKind::conv_bias:
        if (options.conv != ConvInit::dirac) fill_uniform(draws, bias_bound, values, info.count);
        break;
      case ParameterKind::linear_bias:
        fill_uniform(draws, bias_bound, values, info.count);
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
