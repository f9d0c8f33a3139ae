// The GPUs in a profiled run: from made-up readings, from a fake driver, and without one.
#include "tools/profile/gpu_load.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "staging/stage_stats.h"
#include "tests/support/wait_until.h"
#include "tools/profile/report.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr int64_t kMilli = 1'000'000;

GpuFigures figures(int index, int busy_percent, int mhz) {
  return {.index = index,
          .cuda = "cuda:3",
          .name = "H100",
          .busy_percent = busy_percent,
          .memory_used_bytes = busy_percent * 1000,
          .memory_bytes = 80'000,
          .sm_clock_mhz = mhz,
          .sm_clock_max_mhz = 1980,
          .pcie_to_gpu_bytes_per_second = 10 * busy_percent};
}

// Measured from 0 to 300 ms and from 500 to 600 ms, replayed from 600 to 800 ms; GPU 1 reports only
// its clock.
ProfiledRun made_up_run() {
  ProfiledRun run;
  run.windows = {{Phase::measured, 0, 300 * kMilli, 1, {}},
                 {Phase::other_workers, 300 * kMilli, 500 * kMilli, 2, {}},
                 {Phase::measured, 500 * kMilli, 600 * kMilli, 1, {}},
                 {Phase::replayed, 600 * kMilli, 800 * kMilli, 1, {}}};
  const auto read = [&](int64_t ms, int busy_percent, int mhz) {
    GpuFigures silent{.index = 1, .name = "H100", .sm_clock_mhz = 1980};
    run.gpus.readings.push_back(
        {ms * kMilli, (ms + 40) * kMilli, {figures(0, busy_percent, mhz), silent}});
  };
  read(-20, 7, 300);  // begins before the phase
  read(10, 40, 1000);
  read(110, 50, 1200);
  read(280, 1, 300);  // ends after the phase
  read(400, 2, 300);  // of another phase
  read(520, 90, 1400);
  read(620, 100, 1900);
  return run;
}

TEST(GpuLoad, IsOfTheReadingsInsideAPhase) {
  const ProfiledRun run = made_up_run();
  const std::vector<GpuLoad> measured = gpu_loads(run, windows_of(run, Phase::measured));
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].readings, 3);
  EXPECT_NEAR(measured[0].busy_mean, 0.6, 1e-9);
  EXPECT_NEAR(measured[0].busy_least, 0.4, 1e-9);
  EXPECT_NEAR(measured[0].busy_most, 0.9, 1e-9);
  EXPECT_NEAR(measured[0].sm_clock_mhz, 1200, 1e-9);
  EXPECT_EQ(measured[0].sm_clock_max_mhz, 1980);
  EXPECT_EQ(measured[0].memory_used_bytes, 90'000);
  EXPECT_NEAR(measured[0].pcie_to_gpu_bytes_per_second, 600, 1e-9);
  EXPECT_EQ(measured[0].pcie_from_gpu_bytes_per_second, -1);
  EXPECT_EQ(measured[1].index, 1);
  EXPECT_EQ(measured[1].busy_mean, -1);
  EXPECT_EQ(measured[1].busy_least, -1);
  EXPECT_EQ(measured[1].sm_clock_mhz, 1980);
  const std::vector<GpuLoad> replayed = gpu_loads(run, windows_of(run, Phase::replayed));
  ASSERT_EQ(replayed.size(), 2u);
  EXPECT_EQ(replayed[0].readings, 1);
  EXPECT_NEAR(replayed[0].busy_mean, 1, 1e-9);
  EXPECT_TRUE(gpu_loads(run, windows_of(run, Phase::warm_up)).empty());
}

Profile profile_of(const ProfiledRun& run, bool on_gpus) {
  FeedShape shape{.rows = 4};
  shape.on_gpus = on_gpus;
  return make_profile(run, shape, {}, {}, [](SampleId) { return ""; });
}

std::string load_text(const Profile& profile) {
  std::string text;
  for (const std::string& line : verdict_lines(profile)) text += line + "\n";
  return text;
}

TEST(GpuLoad, IsToldPerPhaseAndEvidenceNamesASlowClock) {
  const Profile profile = profile_of(made_up_run(), true);
  const Json json = profile_json(profile);
  ASSERT_EQ(json["measured"]["gpus"].size(), 2u);
  EXPECT_EQ(json["measured"]["gpus"][0]["name"], "H100");
  EXPECT_NEAR(json["measured"]["gpus"][0]["busy_share"], 0.6, 1e-9);
  EXPECT_EQ(json["measured"]["gpus"][0]["memory_bytes"], 80'000);
  EXPECT_TRUE(json["measured"]["gpus"][1]["busy_share"].is_null());
  EXPECT_TRUE(json["measured"]["gpus"][1]["memory_used_bytes"].is_null());
  EXPECT_NEAR(json["replayed"]["gpus"][0]["sm_clock_mhz"], 1900, 1e-9);
  EXPECT_FALSE(json.contains("no_gpus"));
  const std::string text = load_text(profile);
  EXPECT_THAT(text, HasSubstr("GPU 0 (cuda:3): busy 60% (40 to 90%), 1200 of 1980 MHz"));
  EXPECT_THAT(text, HasSubstr("GPU 1: busy unknown, 1980 MHz, memory unknown"));
  EXPECT_THAT(text, HasSubstr("- cuda:3 ran at 1200 of at most 1980 MHz while it was busy 60% of "
                              "the time [3 readings of NVML]"));
}

// There is no evidence for an idle GPU, for a clock near the highest, or for another program's GPU.
TEST(GpuLoad, IsNoEvidenceOtherwise) {
  GpuFigures other = figures(0, 95, 300);
  other.cuda = "";
  for (const GpuFigures& gpu : {figures(0, 5, 300), figures(0, 95, 1700), other}) {
    ProfiledRun run = made_up_run();
    for (GpuReading& reading : run.gpus.readings) reading.gpus = {gpu};
    EXPECT_EQ(load_text(profile_of(run, true)).find("readings of NVML"), std::string::npos)
        << gpu.busy_percent << " " << gpu.sm_clock_mhz;
  }
}

TEST(GpuLoad, IsUnknownOnlyToARunOnGpus) {
  ProfiledRun run = made_up_run();
  run.gpus = {.no_gpus = "no NVIDIA driver"};
  EXPECT_THAT(load_text(profile_of(run, true)),
              HasSubstr("? unknown: what the GPUs did: no NVIDIA driver"));
  const Profile profile = profile_of(run, false);
  EXPECT_EQ(load_text(profile).find("GPU"), std::string::npos);
  const Json json = profile_json(profile);
  EXPECT_EQ(json["no_gpus"], "no NVIDIA driver");
  EXPECT_TRUE(json["measured"]["gpus"].empty());
}

int64_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(GpuSampler, IsNoThreadWithoutADriver) {
  const int64_t before = threads();
  GpuSampler sampler("libno-such-library.so.1");
  EXPECT_EQ(threads(), before);
  const GpuReadings readings = sampler.finish();
  EXPECT_THAT(readings.no_gpus, HasSubstr("libno-such-library"));
  EXPECT_TRUE(readings.readings.empty());
}

#ifdef STOKER_FAKE_CUDA_DIR
TEST(GpuSampler, ReadsUntilItIsFinished) {
  const int64_t begin = steady_now_ns();
  constexpr char kLibrary[] = STOKER_FAKE_CUDA_DIR "/libnvidia-ml.so.1";
  void* const library = dlopen(kLibrary, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto begun = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_readings"));
  ASSERT_NE(begun, nullptr);
  const int before = begun();
  GpuSampler sampler(kLibrary);
  EXPECT_TRUE(wait_until([&] { return begun() > before + 2; }));
  const GpuReadings readings = sampler.finish();
  EXPECT_EQ(readings.no_gpus, "");
  ASSERT_GE(readings.readings.size(), 2u);
  EXPECT_LE(std::ssize(readings.readings), 1 + (steady_now_ns() - begin) / (100 * kMilli));
  int64_t last = begin;
  for (const GpuReading& reading : readings.readings) {
    EXPECT_GE(reading.begin_ns, last);
    EXPECT_GE(reading.end_ns, reading.begin_ns);
    ASSERT_EQ(reading.gpus.size(), 2u);
    EXPECT_EQ(reading.gpus[0].busy_percent, 87);
    last = reading.end_ns;
  }
  dlclose(library);
}
#endif

}  // namespace
}  // namespace stoker
