// A strategy of training on several devices as tables name it. Pure.
#pragma once

#include <string>

#include "train/collective/reduce_kind.h"
#include "train/collective/wire/grad_wire.h"

namespace stoker {

// Returns "all-reduce:nccl, bf16"; fp32 is left out.
inline std::string strategy_name(ReduceKind reduction, GradWire wire) {
  std::string text = to_string(reduction);
  if (wire != GradWire::fp32) text += std::string(", ") + to_string(wire);
  return text;
}

}  // namespace stoker
