// The instruction sets for which the Winograd convolution is compiled; include it before Highway.
#pragma once

// Scalable vectors are left out, as in decode/resize/resize_kernels.cc, and AVX-512 (AVX3 and all
// bits below it), because there the kernels have not been run and measured yet.
#define HWY_DISABLED_TARGETS \
  (((HWY_AVX3 << 1) - 1) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
