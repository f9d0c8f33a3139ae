// What an update does with the reduced gradients, in pieces that the workers share. Pure but for
// the memory that it is given; one thread calls, all workers work.
#pragma once

#include <span>

#include "train/cpu/workers.h"
#include "train/engine/engine.h"
#include "train/graph/gradient_layout.h"

namespace stoker {

float step_metric(const GradientLayout& layout, const float* reduced, StepMetric metric);

// All gradients and moments, and what the micro-batches say of their losses.
bool all_finite(const GradientLayout& layout, const float* reduced, CpuWorkers& workers);

// Gradients are taken times `gradient_scale`. Flat buffers.
void update_tensors(const UpdateArgs& args, float gradient_scale, const GradientLayout& layout,
                    const float* reduced, float* weights, float* momenta, CpuWorkers& workers);

// The running statistics, from the moments of micro-batches of `rows`.
void move_statistics(const GradientLayout& layout, int rows, const float* reduced,
                     float* statistics);

// average = decay * average + (1 - decay) * current; then, if `pull`, current = average.
void blend(float decay, bool pull, std::span<float> average, std::span<float> current,
           CpuWorkers& workers);

}  // namespace stoker
