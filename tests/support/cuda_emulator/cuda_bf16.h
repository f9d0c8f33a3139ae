// The conversions of CUDA's header, with the host's arithmetic.
#pragma once

#include "train/device/arithmetic.h"

inline stoker::device::Bf16 __float2bfloat16_rn(float value) {
  return stoker::device::number<stoker::device::Bf16>(value);
}
inline uint16_t __bfloat16_as_ushort(stoker::device::Bf16 value) { return value.bits; }
