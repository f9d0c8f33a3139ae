// The arithmetic of an update, in chunks that the workers share. It changes only the memory that it
// gets. One thread calls; all workers compute.
#pragma once

#include <span>
#include <vector>

#include "train/cpu/workers.h"
#include "train/graph/update_arithmetic.h"

namespace stoker {

// Checks that all gradients, moments and metrics are finite and that every micro-batch reports
// finite losses, and scales the gradients from `nominal_rows` to the weights that count.
FiniteCheck check_finite(const GradientLayout& layout, int64_t nominal_rows, const float* reduced,
                         CpuWorkers& workers);

// Computes sum = sum + all buffers, element by element in their order; without the old sum, if the
// buffers are the `first`.
void add_buffers(std::span<const float* const> buffers, bool first, std::span<float> sum,
                 CpuWorkers& workers);

struct GradientScales {
  std::vector<TensorScale> of_tensors;
  double norm = 0;  // StepMetrics::gradient_norm
};
// Returns a scale for each tensor: `gradient_scale` and, where the arguments ask for it, clipping
// and LARS's trust ratios. Sums of squares are added up chunk by chunk in the order of the buffer,
// so that they do not depend on the workers.
GradientScales gradient_scales(const UpdateArgs& args, float gradient_scale,
                               const GradientLayout& layout, const float* reduced,
                               const float* weights, CpuWorkers& workers);

// Updates flat buffers by the scales of gradient_scales().
void update_tensors(const UpdateArgs& args, std::span<const TensorScale> scales,
                    const GradientLayout& layout, const float* reduced, const UpdatedStates& states,
                    CpuWorkers& workers);

// Updates the running statistics from the moments of micro-batches of `rows`.
void move_statistics(const GradientLayout& layout, int rows, const float* reduced,
                     float* statistics);

// Computes average = decay * average + (1 - decay) * current; then, if `pull`, current = average.
void blend(float decay, bool pull, std::span<float> average, std::span<float> current,
           CpuWorkers& workers);

}  // namespace stoker
