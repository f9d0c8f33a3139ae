// Generated images without a disk: a smooth pattern per class plus noise per sample, as raw_rgb. A
// sample is a pure function of (seed, id) and is generated when it is read, at about the speed of a
// copy, so the memory for any number of samples is one image per class and the noise.
#pragma once

#include <memory>

#include "pipeline/source.h"

namespace stoker {

// The label of a sample is id % classes. Throws std::invalid_argument with the numbers for samples,
// classes or sides < 1.
std::unique_ptr<Source> make_synthetic_source(int64_t samples, Size size, int classes,
                                              uint64_t seed);

}  // namespace stoker
