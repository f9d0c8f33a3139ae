// Loads the normalise kernels onto the current GPU, and launches one. Internal to the plugin.
#pragma once

#include <cuda_runtime_api.h>

#include "staging/normalise.h"

namespace stoker {

cudaError_t load_normalise();
cudaError_t launch_normalise(cudaStream_t stream, const NormaliseArgs& args);

}  // namespace stoker
