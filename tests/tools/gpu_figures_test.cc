// The figures of NVIDIA's management library: of a fake one, and without one.
#include "tools/machine/gpu_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace stoker {
namespace {

using ::testing::ElementsAre;
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
  EXPECT_EQ(gpus[1].busy_percent, -1);  // it does not report it
}

// CUDA's numbers are not NVML's: the process sees some of the machine's GPUs, in another order.
TEST(GpuMonitor, SaysWhichIsWhoseByThePciBusId) {
  const auto cuda_names = [](const char* visible, const std::string& driver) {
    visible == nullptr ? unsetenv("CUDA_VISIBLE_DEVICES")
                       : setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    GpuMonitor monitor(STOKER_FAKE_CUDA_DIR "/libnvidia-ml.so.1", driver);
    std::vector<std::string> names;
    for (const GpuFigures& gpu : monitor.read()) names.push_back(gpu.cuda);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return names;
  };
  const std::string driver = STOKER_FAKE_CUDA_DIR "/libcuda.so.1";
  EXPECT_THAT(cuda_names(nullptr, driver), ElementsAre("cuda:0", "cuda:1"));
  EXPECT_THAT(cuda_names("1", driver), ElementsAre("", "cuda:0"));
  EXPECT_THAT(cuda_names("1,0", driver), ElementsAre("cuda:1", "cuda:0"));
  EXPECT_THAT(cuda_names("", driver), ElementsAre("", ""));
  EXPECT_THAT(cuda_names(nullptr, "libno-such-driver.so.1"), ElementsAre("", ""));
}
#endif

}  // namespace
}  // namespace stoker
