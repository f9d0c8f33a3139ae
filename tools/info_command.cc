// stoker info: what this build and this machine have.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/build_info.h"
#include "tools/command.h"
#include "tools/host_info.h"

namespace stoker {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

nlohmann::ordered_json to_json(const HostInfo& host) {
  nlohmann::ordered_json libraries = nlohmann::ordered_json::object();
  for (const BuildLibrary& library : kBuildLibraries) {
    libraries[library.name] =
        *library.version ? nlohmann::ordered_json(library.version) : nlohmann::ordered_json();
  }
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  devices.push_back({{"name", "cpu"}, {"cores", host.cores_usable}, {"usable", true}});
  for (const std::string& gpu : host.gpus) {
    devices.push_back({{"name", gpu}, {"usable", false}});
  }
  return {{"version", kBuildVersion},
          {"build", kBuildType},
          {"compiler", kBuildCompiler},
          {"cpu", host.cpu},
          {"cpu_features", host.cpu_features},
          {"cores_machine", host.cores_machine},
          {"cores_usable", host.cores_usable},
          {"memory_bytes", host.memory_bytes},
          {"memory_available_bytes", host.memory_available_bytes},
          {"memory_limit_bytes", host.memory_limit_bytes},
          {"devices", devices},
          {"libraries", libraries}};
}

void print_text(const HostInfo& host) {
  fmt::print("stoker     {} ({}, {})\n", kBuildVersion, kBuildType, kBuildCompiler);
  fmt::print("cpu        {}\n", host.cpu.empty() ? "unknown" : host.cpu);
  fmt::print("features   {}\n", fmt::join(host.cpu_features, " "));
  fmt::print("cores      {} usable of {}\n", host.cores_usable, host.cores_machine);
  fmt::print("memory     {:.1f} GiB, {:.1f} GiB available", host.memory_bytes / kGiB,
             host.memory_available_bytes / kGiB);
  if (host.memory_limit_bytes > 0) fmt::print(", limit {:.1f} GiB", host.memory_limit_bytes / kGiB);
  fmt::print("\ndevices    cpu:1 .. cpu:N (N replicas that share the cores)\n");
  for (const std::string& gpu : host.gpus) {
    fmt::print("           {}: not usable, this build has no CUDA part\n", gpu);
  }
  for (const BuildLibrary& library : kBuildLibraries) {
    fmt::print("{:<10} {} {}\n", &library == kBuildLibraries ? "libraries" : "", library.name,
               *library.version ? library.version : "left out of this build");
  }
}

}  // namespace

int run_info(int argc, char** argv) {
  bool json = false;
  auto app =
      make_parser("info",
                  "Says what this build and this machine have: version, CPU features, cores,\n"
                  "memory, devices, libraries. Creates no context on any device.",
                  "  stoker info\n"
                  "  stoker info --json\n");
  app->add_flag("--json", json, "Print JSON");
  if (const auto code = parse_options(*app, argc, argv)) return *code;
  const HostInfo host = read_host_info();
  if (json) {
    fmt::print("{}\n", to_json(host).dump(2));
  } else {
    print_text(host);
  }
  return kExitOk;
}

}  // namespace stoker
