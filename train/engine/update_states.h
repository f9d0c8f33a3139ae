// What the updates of all engines have in common. Plain structs that nvcc reads, too.
#pragma once

namespace stoker {

// What an update multiplies the gradients of a tensor by: the first before the weight decay is
// added, the second, LARS's trust ratio, after it.
struct TensorScale {
  float gradient = 0, trust = 1;
};

// Flat buffers that an update changes, in the engine's memory.
struct UpdatedStates {
  float* weights = nullptr;
  float* momenta = nullptr;
  float* second_moments = nullptr;  // Adam, else null
  void* copies = nullptr;           // device engines: the weights in bf16, or null
};

}  // namespace stoker
