// The optimisers of host_ops.h as plain loops.
#include <vector>

#include "tests/support/host_ops.h"

namespace stoker::host {
namespace {

const TensorRate* per_tensor(const UpdateRates& rates) {
  return reinterpret_cast<const TensorRate*>(&rates + 1);
}

}  // namespace

void scale_tensors(const UpdateShape& s, const UpdateRates& rates, const FiniteCheck& check,
                   const float* reduced, const float* weights, TensorScale* scales) {
  std::vector<TensorSquares> squares(static_cast<size_t>(s.tensor_count));
  double all = 0;
  for (int c = 0; c < s.chunk_count; ++c) {
    const TensorChunk& chunk = s.chunks[c];
    if (per_tensor(rates)[chunk.tensor].frozen) continue;
    TensorSquares& sum = squares[static_cast<size_t>(chunk.tensor)];
    for (int64_t i = chunk.offset; i < chunk.offset + chunk.count; ++i) {
      sum.gradient += static_cast<double>(reduced[i]) * reduced[i];
      sum.weight += static_cast<double>(weights[i]) * weights[i];
    }
  }
  for (const TensorSquares& each : squares) all += each.gradient;
  const float clipped = device::clipped_scale(rates, check.gradient_scale, all);
  for (int t = 0; t < s.tensor_count; ++t) {
    scales[t] =
        device::tensor_scale(rates, per_tensor(rates)[t], clipped, squares[static_cast<size_t>(t)]);
  }
}

void update(const UpdateShape& s, const UpdateRates& rates, const FiniteCheck& check,
            const TensorScale* scales, const float* reduced, const UpdatedStates& states) {
  for (int c = 0; c < s.chunk_count; ++c) {
    const TensorChunk& chunk = s.chunks[c];
    const TensorRate& rate = per_tensor(rates)[chunk.tensor];
    if (rate.frozen) continue;
    const TensorScale scale =
        scales != nullptr ? scales[chunk.tensor] : TensorScale{check.gradient_scale, 1.0f};
    for (int64_t i = chunk.offset; i < chunk.offset + chunk.count; ++i) {
      if (states.second_moments != nullptr) {
        device::adam(rates, rate, scale, reduced[i], states.weights + i, states.momenta + i,
                     states.second_moments + i);
      } else {
        device::sgd(rates, rate, scale, reduced[i], states.weights + i, states.momenta + i);
      }
      if (states.copies != nullptr) store<device::Bf16>(states.copies, i, states.weights[i]);
    }
  }
}

}  // namespace stoker::host
