// The steps of a convolution by our own Winograd (winograd.h). Owner: a plan builder's caller. One
// thread.
#pragma once

#include <memory>

#include "train/cpu/plan_builder.h"

namespace stoker {

// Returns the steps of node `index` if it is a convolution that winograd.h takes and is faster at,
// else null.
std::unique_ptr<CpuSteps> make_winograd_steps(const CpuPlanBuilder& builder, int index);

}  // namespace stoker
