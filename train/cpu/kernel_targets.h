// The instruction sets for which the kernels of this folder are compiled; include it before
// Highway.
#pragma once

// Scalable vectors are left out, as in decode/resize/resize_kernels.cc; of AVX-512, the first set
// is enough (the others are the bits below it).
#define HWY_DISABLED_TARGETS ((HWY_AVX3 - 1) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
