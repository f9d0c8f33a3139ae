// What NVIDIA's management library says, of a fake one, and where there is none.
#include "bench/gpu_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::HasSubstr;

TEST(GpuMonitor, SaysWhyThereIsNone) {
  GpuMonitor monitor("libno-such-library.so.1");
  EXPECT_THAT(monitor.why_not(), HasSubstr("libno-such-library"));
  EXPECT_TRUE(monitor.read().empty());
}

TEST(GpuMonitor, SaysWhatALibraryLacks) {
  GpuMonitor monitor("libm.so.6");
  EXPECT_EQ(monitor.why_not(), "libm.so.6 is too old");
  EXPECT_TRUE(monitor.read().empty());
}

#ifdef STOKER_FAKE_CUDA_DIR
TEST(GpuMonitor, ReadsWhatTheDriverSays) {
  GpuMonitor monitor(STOKER_FAKE_CUDA_DIR "/libnvidia-ml.so.1");
  ASSERT_EQ(monitor.why_not(), "");
  const std::vector<GpuFigures> gpus = monitor.read();
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].name, "Fake GPU");
  EXPECT_EQ(gpus[0].busy_percent, 87);
  EXPECT_EQ(gpus[0].memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(gpus[0].sm_clock_mhz, 1755);
  EXPECT_EQ(gpus[0].pcie_to_gpu_bytes_per_second, 1000 * 1024);
  EXPECT_EQ(gpus[0].pcie_from_gpu_bytes_per_second, 20 * 1024);
  EXPECT_EQ(gpus[1].busy_percent, -1);  // it does not say
}
#endif

}  // namespace
}  // namespace stoker
