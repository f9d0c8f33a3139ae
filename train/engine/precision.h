// Which numbers of a net are held in which precision. One rule for all engines; what an engine
// cannot or should not do is an argument of it, with the reason beside the value. Values.
#pragma once

#include <cstdint>

namespace stoker {

enum class Precision : uint8_t { fp32, bf16 };  // bf16: activations and products; weights stay fp32

constexpr int64_t bytes_of(Precision precision) { return precision == Precision::bf16 ? 2 : 4; }

// The masters of all parameters, momenta, averages, statistics, gradient buffers, numbers per
// channel, logits and the loss are fp32 in every net.
struct TensorPrecisions {
  Precision activations = Precision::fp32;  // and their gradients, and the convolutions' weights
  Precision convolution_gradients = Precision::fp32;  // as computed; they are then cast to fp32
  Precision head = Precision::fp32;  // features and weights of the linear layer, logits' gradient
};

// What an engine's kernels give and take in a bf16 net.
struct PrecisionRules {
  bool convolutions_leave_bf16 = false;
  bool head_takes_bf16 = false;
};

constexpr TensorPrecisions tensor_precisions(Precision net, const PrecisionRules& rules) {
  return {net, rules.convolutions_leave_bf16 ? net : Precision::fp32,
          rules.head_takes_bf16 ? net : Precision::fp32};
}

}  // namespace stoker
