#include "tools/machine/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace stoker {
namespace {

constexpr double kMicro = 1e-6, kMilli = 1e-3;

// Returns -1 if the file has no such number.
int64_t read_counter(const std::string& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value && value >= 0 ? value : -1;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double joules_between(double after, double before) {
  return after < 0 || before < 0 ? -1 : after - before;
}
double joules_together(double a, double b) { return a < 0 || b < 0 ? -1 : a + b; }

}  // namespace

Energy operator-(const Energy& after, const Energy& before) {
  return {joules_between(after.cpus, before.cpus), joules_between(after.gpus, before.gpus)};
}

Energy operator+(const Energy& a, const Energy& b) {
  return {joules_together(a.cpus, b.cpus), joules_together(a.gpus, b.gpus)};
}

EnergyMeter::EnergyMeter(const std::string& powercap, const std::string& library) : nvml_(library) {
  find_packages(powercap);
  find_gpus(library);
}

// A package's zone is named "package-0". Below it are those of its parts ("core", "dram"), which it
// contains or which are not its own; beside it may be one of the whole platform ("psys"), and a
// second one of the same package (intel-rapl-mmio).
void EnergyMeter::find_packages(const std::string& powercap) {
  std::map<std::string, std::string> zones;  // by name, in the order of theirs
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(powercap, missing)) {
    const std::string name = first_line(entry.path() / "name");
    if (!name.starts_with("package-")) continue;
    const auto [zone, is_new] = zones.emplace(name, entry.path());
    if (!is_new) zone->second = std::max<std::string>(zone->second, entry.path());
  }
  if (zones.empty()) why_not_.cpus = "no counters of CPU packages in " + powercap;
  for (const auto& [name, zone] : zones) {
    Package package{.counter = zone + "/energy_uj"};
    errno = 0;
    package.last = read_counter(package.counter);
    const int error = errno;
    package.range = read_counter(zone + "/max_energy_range_uj");
    if (package.last >= 0 && package.range > 0) {
      packages_.push_back(package);
      continue;
    }
    const bool unreadable = package.last < 0;
    why_not_.cpus =
        fmt::format("{}: {}", unreadable ? package.counter : zone + "/max_energy_range_uj",
                    unreadable && error != 0 ? std::strerror(error) : "no number in it");
    packages_.clear();  // a sum of some of them would be taken for all
    return;
  }
}

void EnergyMeter::find_gpus(const std::string& library) {
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  const bool found = nvml_.find("nvmlDeviceGetCount_v2", count) &&
                     nvml_.find("nvmlDeviceGetHandleByIndex_v2", handle) &&
                     nvml_.find("nvmlDeviceGetTotalEnergyConsumption", gpu_energy_);
  if (!nvml_.start(found)) {
    why_not_.gpus = nvml_.why_not();
    return;
  }
  unsigned all = 0;
  if (count(&all) != kNvmlSuccess) all = 0;
  for (unsigned i = 0; i < all; ++i) {
    void* gpu = nullptr;
    unsigned long long energy = 0;
    if (handle(i, &gpu) == kNvmlSuccess && gpu_energy_(gpu, &energy) == kNvmlSuccess) {
      gpus_.push_back(gpu);
    }
  }
  if (gpus_.empty()) why_not_.gpus = library + ": no GPU reports its energy";
  gpus_at_begin_ = read_gpus();
}

double EnergyMeter::read_cpus() {
  double joules = 0;
  for (Package& package : packages_) {
    const int64_t now = read_counter(package.counter);
    if (now < 0) return -1;
    const int64_t change = now - package.last;
    package.joules += kMicro * static_cast<double>(change < 0 ? change + package.range : change);
    package.last = now;
    joules += package.joules;
  }
  return packages_.empty() ? -1 : joules;
}

double EnergyMeter::read_gpus() const {
  double joules = 0;
  for (void* const gpu : gpus_) {
    unsigned long long energy = 0;
    if (gpu_energy_(gpu, &energy) != kNvmlSuccess) return -1;
    joules += kMilli * static_cast<double>(energy);
  }
  return gpus_.empty() ? -1 : joules;
}

Energy EnergyMeter::read() { return {read_cpus(), joules_between(read_gpus(), gpus_at_begin_)}; }

std::string energy_text(const Energy& energy, const NoEnergy& why_not, double images) {
  if (images <= 0) return "unknown: no image was fed";
  if (energy.cpus < 0 && energy.gpus < 0) {
    return fmt::format("not to be had here ({}; {})", why_not.cpus, why_not.gpus);
  }
  const auto part = [&](double joules, const char* of, const std::string& reason) {
    return joules < 0
               ? fmt::format("that of the {}: not to be had here ({})", of, reason)
               : fmt::format("{:.4g} J per 1,000 images by the {}", 1e3 * joules / images, of);
  };
  return fmt::format("{}, {}; the whole machine's, with what idles and other programs use",
                     part(energy.cpus, "CPU packages", why_not.cpus),
                     part(energy.gpus, "GPUs", why_not.gpus));
}

nlohmann::ordered_json energy_json(const Energy& energy, const NoEnergy& why_not, double images) {
  nlohmann::ordered_json result, reasons = nlohmann::ordered_json::object();
  const auto add = [&](const char* of, const char* field, double joules,
                       const std::string& reason) {
    const bool known = joules >= 0 && images > 0;
    result[field] = known ? nlohmann::ordered_json(1e3 * joules / images) : nullptr;
    if (!known) reasons[of] = reason;
  };
  add("cpus", "cpu_joules_per_1000_images", energy.cpus, why_not.cpus);
  add("gpus", "gpu_joules_per_1000_images", energy.gpus, why_not.gpus);
  result["why_not"] = reasons;
  return result;
}

}  // namespace stoker
