// What a Loader's parts are given of its options, and what it refuses. Pure.
#pragma once

#include <vector>

#include "pipeline/augment.h"
#include "pipeline/loader_types.h"
#include "pipeline/sampler.h"
#include "pipeline/source/source.h"
#include "staging/device.h"

namespace stoker {

// `devices`: how many this process has.
SamplerOptions sampler_options(const Source& source, const LoaderOptions& options, int devices);

// Loader::check().
void check_loader(const Source& source, const AugmentSpec& augment,
                  const std::vector<Device*>& devices, const LoaderOptions& options);

}  // namespace stoker
