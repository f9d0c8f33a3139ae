// Launches the kernel of row_edits.h. Internal to the plugin.
#pragma once

#include <cuda_runtime_api.h>

#include "staging/row_edits.h"

namespace stoker {

cudaError_t launch_row_edits(cudaStream_t stream, const RowEditArgs& args);

}  // namespace stoker
