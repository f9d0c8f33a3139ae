// One kernel: a block edits some lines of a pair of rows. Most pairs of a batch that is only erased
// have nothing to be done, and their blocks end at once.
#include <algorithm>
#include <cstdint>

#include "staging/cuda_kernels.h"
#include "staging/cuda_launch.h"
#include "staging/row_edits_body.h"

namespace stoker {
namespace {

constexpr int kRowEditThreads = 256;
constexpr int kLines = 16;  // of a block

template <int kCount>
__global__ void __launch_bounds__(kRowEditThreads) row_edits_kernel(const RowEditArgs args) {
  const EditPair pair = pair_of(args, blockIdx.x);
  if (pair.first_edit.none() && pair.second_edit.none()) return;
  const int first_line = static_cast<int>(blockIdx.y) * kLines;
  const int lines = min(kLines, args.height - first_line);
  const int groups = 3 * args.width / kCount;
  for (int i = static_cast<int>(threadIdx.x); i < lines * groups; i += kRowEditThreads) {
    edit_values<kCount>(pair, args.width, first_line + i / groups, i % groups, args.noise);
  }
}

}  // namespace

cudaError_t load_row_edits() { return load_kernels(row_edits_kernel<1>, row_edits_kernel<4>); }

cudaError_t launch_row_edits(cudaStream_t stream, const RowEditArgs& args) {
  const dim3 blocks(static_cast<unsigned>((args.rows + 1) / 2),
                    static_cast<unsigned>((args.height + kLines - 1) / kLines));
  const auto kernel = values_at_once(args) == 4 ? row_edits_kernel<4> : row_edits_kernel<1>;
  return launch_kernel(stream, kernel, blocks, kRowEditThreads, args);
}

}  // namespace stoker
