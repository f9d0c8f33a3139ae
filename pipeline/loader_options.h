// What a Loader's parts are given of its options. Pure.
#pragma once

#include "pipeline/loader.h"

namespace stoker {

// `devices`: how many this process has.
SamplerOptions sampler_options(const Source& source, const LoaderOptions& options, int devices);

}  // namespace stoker
