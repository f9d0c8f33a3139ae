// The energy that a machine has used, by its own counters: of its CPU packages from Linux's
// powercap (RAPL of Intel and AMD), of its GPUs from NVIDIA's management library. It is that of the
// whole machine: other programs and what idles are part of it. A package's memory, where it has a
// counter of its own, is not. Creates no context on a device. Threads: one at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/machine/gpu_figures.h"

namespace stoker {

inline constexpr const char* kPowercap = "/sys/class/powercap";

struct Energy {  // joules; -1: not to be had
  double cpus = -1, gpus = -1;
};
Energy operator-(const Energy& after, const Energy& before);
Energy operator+(const Energy& a, const Energy& b);

// Why a machine says nothing; "" where it does.
struct NoEnergy {
  std::string cpus, gpus;
};

class EnergyMeter {
 public:
  explicit EnergyMeter(const std::string& powercap = kPowercap,
                       const std::string& library = kNvmlLibrary);
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Returns what was used since the meter was made. Counters begin anew after 65 kJ or more, which
  // a package takes minutes for: call it every minute at least.
  Energy read();
  const NoEnergy& why_not() const { return why_not_; }

 private:
  struct Package {
    std::string counter;  // its file, in microjoules
    int64_t range = 0;    // the counter's highest value
    int64_t last = 0;
    double joules = 0;
  };
  void find_packages(const std::string& powercap);
  void find_gpus(const std::string& library);
  double read_cpus();
  double read_gpus() const;  // since the driver was loaded

  NvmlLibrary nvml_;
  int (*gpu_energy_)(void*, unsigned long long*) = nullptr;  // in millijoules
  std::vector<void*> gpus_;                                  // those that report it
  double gpus_at_begin_ = 0;
  std::vector<Package> packages_;
  NoEnergy why_not_;
};

// Returns "12.3 J per 1,000 images by the CPU packages, 45.6 J by the GPUs ...", or "not to be had
// here (why)".
std::string energy_text(const Energy& energy, const NoEnergy& why_not, double images);

// Returns {cpu_joules_per_1000_images, gpu_joules_per_1000_images, why_not: {cpus, gpus}}: null
// where it is not to be had, for the reason in why_not, which has no others.
nlohmann::ordered_json energy_json(const Energy& energy, const NoEnergy& why_not, double images);

}  // namespace stoker
