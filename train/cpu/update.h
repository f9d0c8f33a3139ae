// The arithmetic of an update, in chunks that the workers share. It changes only the memory that it
// gets. One thread calls; all workers compute.
#pragma once

#include <span>

#include "train/cpu/workers.h"
#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"

namespace stoker {

float step_metric(const GradientLayout& layout, const float* reduced, StepMetric metric);

// Returns whether all gradients, moments and metrics are finite and every micro-batch reports
// finite losses.
bool all_finite(const GradientLayout& layout, const float* reduced, CpuWorkers& workers);

// Updates flat buffers; gradients are multiplied by `gradient_scale`.
void update_tensors(const UpdateArgs& args, float gradient_scale, const GradientLayout& layout,
                    const float* reduced, float* weights, float* momenta, CpuWorkers& workers);

// Updates the running statistics from the moments of micro-batches of `rows`.
void move_statistics(const GradientLayout& layout, int rows, const float* reduced,
                     float* statistics);

// Computes average = decay * average + (1 - decay) * current; then, if `pull`, current = average.
void blend(float decay, bool pull, std::span<float> average, std::span<float> current,
           CpuWorkers& workers);

}  // namespace stoker
