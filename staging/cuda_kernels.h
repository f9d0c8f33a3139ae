// Loads the kernels of normalise.h and row_edits.h onto the current GPU, and launches one. Internal
// to the plugin.
#pragma once

#include <cuda_runtime_api.h>

#include "staging/normalise.h"
#include "staging/row_edits.h"

namespace stoker {

cudaError_t load_normalise();
cudaError_t launch_normalise(cudaStream_t stream, const NormaliseArgs& args);

cudaError_t load_row_edits();
cudaError_t launch_row_edits(cudaStream_t stream, const RowEditArgs& args);

}  // namespace stoker
