// The kernel of staging/row_edits.h, compiled from its own source for the emulated GPU: which
// thread does what, and where a block's threads meet.
#include <gtest/gtest.h>

#include "staging/cuda_row_edits.cu"
#include "tests/staging/edited_rows.h"

// The emulator's streams: here kernels run at once.
namespace cuda_emulator {

bool launchable(const cudaLaunchConfig_t& config) {
  return config.gridDim.x > 0 && config.gridDim.y > 0 && config.gridDim.y < 65536;
}
void queue(cudaStream_t, std::function<void()> work) { work(); }

}  // namespace cuda_emulator

namespace stoker::testing {
namespace {

TEST(RowEditKernel, IsThePlainLoops) {
  EditMaker maker(3);
  // Lines of words and of bytes; one block for a pair and several.
  for (const auto& [height, width] :
       {std::pair{1, 1}, std::pair{8, 12}, std::pair{5, 7}, std::pair{33, 100}}) {
    for (const int rows : {1, 2, 5, 8}) {
      for (int i = 0; i < 10; ++i) {
        EditedRows batch = maker.make(rows, height, width);
        const std::vector<uint8_t> expected = edited_plainly(batch);
        ASSERT_EQ(launch_row_edits(nullptr, batch.args()), cudaSuccess);
        ASSERT_EQ(batch.images, expected) << rows << " rows of " << height << " x " << width;
      }
    }
  }
}

}  // namespace
}  // namespace stoker::testing
