// The energy of a machine, from a drawn powercap folder and a fake NVML.
#include "tools/machine/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

constexpr char kNoLibrary[] = "libno-such-library.so.1";

class Powercap {
 public:
  void zone(const std::string& id, const std::string& name, int64_t energy, int64_t range) {
    folder_.write(id + "/name", name + "\n");
    folder_.write(id + "/max_energy_range_uj", std::to_string(range) + "\n");
    set(id, energy);
  }
  void set(const std::string& id, int64_t energy) {
    folder_.write(id + "/energy_uj", std::to_string(energy) + "\n");
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

TEST(EnergyMeter, AddsPackagesAndNothingTwice) {
  Powercap machine;
  machine.zone("intel-rapl:0", "package-0", 1'000'000, 9'000'000);
  machine.zone("intel-rapl:0:0", "core", 500'000, 9'000'000);  // a part of the package
  machine.zone("intel-rapl:1", "package-1", 8'000'000, 9'000'000);
  machine.zone("intel-rapl:2", "psys", 9'000, 9'000'000);                // the whole platform
  machine.zone("intel-rapl-mmio:0", "package-0", 1'000'000, 9'000'000);  // the package once more
  EnergyMeter meter(machine.path(), kNoLibrary);
  EXPECT_EQ(meter.why_not().cpus, "");
  EXPECT_THAT(meter.why_not().gpus, HasSubstr(kNoLibrary));
  EXPECT_EQ(meter.read().cpus, 0);
  machine.set("intel-rapl:0", 3'500'000);
  machine.set("intel-rapl:0:0", 2'000'000);
  machine.set("intel-rapl-mmio:0", 3'500'000);
  EXPECT_NEAR(meter.read().cpus, 2.5, 1e-9);
  machine.set("intel-rapl:1", 500'000);  // it began anew: 8 to 9, and half of one more
  EXPECT_NEAR(meter.read().cpus, 2.5 + 1.5, 1e-9);
  machine.set("intel-rapl:1", 8'000'000);
  machine.set("intel-rapl:0", 1'500'000);
  EXPECT_NEAR(meter.read().cpus, 4 + 7.5 + 7, 1e-9);
  EXPECT_EQ(meter.read().gpus, -1);
}

TEST(EnergyMeter, SaysWhyThereIsNone) {
  EXPECT_EQ(EnergyMeter("/no/such", kNoLibrary).why_not().cpus,
            "no counters of CPU packages in /no/such");
  Powercap machine;
  machine.zone("intel-rapl:0", "package-0", 5, 10);
  machine.zone("intel-rapl:1", "package-1", 5, 10);
  const std::string counter = machine.path() + "/intel-rapl:1/energy_uj";
  std::filesystem::remove(counter);
  std::filesystem::create_directory(counter);  // root reads whatever has no rights
  EnergyMeter meter(machine.path(), kNoLibrary);
  EXPECT_THAT(meter.why_not().cpus, HasSubstr(counter));
  EXPECT_EQ(meter.read().cpus, -1);  // not that of the other package
  std::filesystem::remove(counter);
  machine.zone("intel-rapl:1", "package-1", 5, 0);
  EXPECT_THAT(EnergyMeter(machine.path(), kNoLibrary).why_not().cpus,
              HasSubstr("intel-rapl:1/max_energy_range_uj: no number in it"));
  if (geteuid() == 0) return;
  machine.zone("intel-rapl:1", "package-1", 5, 10);
  std::filesystem::permissions(counter, std::filesystem::perms::none);
  EXPECT_THAT(EnergyMeter(machine.path(), kNoLibrary).why_not().cpus,
              HasSubstr(counter + ": Permission denied"));
}

TEST(Energy, IsToldPerThousandImages) {
  const NoEnergy no_gpus{"", "no NVIDIA driver"}, none{"no counters", "no NVIDIA driver"};
  EXPECT_EQ(energy_text({30, 5}, {}, 2000),
            "15 J per 1,000 images by the CPU packages, 2.5 J per 1,000 images by the GPUs; the "
            "whole machine's, with what idles and other programs use");
  EXPECT_THAT(energy_text({30, -1}, no_gpus, 2000),
              HasSubstr("15 J per 1,000 images by the CPU packages, that of the GPUs: not to be "
                        "had here (no NVIDIA driver)"));
  EXPECT_EQ(energy_text({}, none, 2000), "not to be had here (no counters; no NVIDIA driver)");
  EXPECT_EQ(energy_json({30, -1}, no_gpus, 2000).dump(),
            R"({"cpu_joules_per_1000_images":15.0,"gpu_joules_per_1000_images":null,)"
            R"("why_not":{"gpus":"no NVIDIA driver"}})");
  EXPECT_EQ((Energy{3, -1} + Energy{4, 5}).cpus, 7);
  EXPECT_EQ((Energy{3, -1} + Energy{4, 5}).gpus, -1);
}

#ifdef STOKER_FAKE_CUDA_DIR
// The second fake GPU does not report it.
TEST(EnergyMeter, AddsTheGpusThatReportIt) {
  EnergyMeter meter("/no/such", STOKER_FAKE_CUDA_DIR "/libnvidia-ml.so.1");
  EXPECT_EQ(meter.why_not().gpus, "");
  const double first = meter.read().gpus;
  EXPECT_NEAR(first, 2, 1e-9);  // the fake one's counter grows by 2 J at every look
  EXPECT_NEAR(meter.read().gpus - first, 2, 1e-9);
}
#endif

}  // namespace
}  // namespace stoker
