// Which values of a net have which precision. All engines use this rule; each engine passes a
// PrecisionRules for its kernels and gives the reason next to it. Values.
#pragma once

#include <cstdint>

namespace stoker {

enum class Precision : uint8_t { fp32, bf16 };  // bf16: activations and products; weights stay fp32

constexpr int64_t bytes_of(Precision precision) { return precision == Precision::bf16 ? 2 : 4; }

// The master weights, momenta, averages, statistics, gradient buffers, values per channel, logits
// and the loss are fp32 in every net.
struct TensorPrecisions {
  Precision activations = Precision::fp32;  // and their gradients, and the convolutions' weights
  Precision convolution_gradients = Precision::fp32;  // as computed; they are then cast to fp32
  // Features and weights of the linear layer, gradient of the logits.
  Precision head = Precision::fp32;
};

// Types that an engine's kernels read and write in a bf16 net.
struct PrecisionRules {
  bool convolutions_leave_bf16 = false;
  bool head_takes_bf16 = false;
};

constexpr TensorPrecisions tensor_precisions(Precision net, const PrecisionRules& rules) {
  return {net, rules.convolutions_leave_bf16 ? net : Precision::fp32,
          rules.head_takes_bf16 ? net : Precision::fp32};
}

}  // namespace stoker
