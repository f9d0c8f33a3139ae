// stoker info: what this build and this machine have.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "decode/image_decoder.h"
#include "staging/device_list.h"
#include "tools/command/command.h"
#include "tools/machine/build_info.h"
#include "tools/machine/host_info.h"

namespace stoker {
namespace {

constexpr double kInfoGiB = 1024.0 * 1024 * 1024;

std::string cuda_version(int version) {
  return version == 0 ? "" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

nlohmann::ordered_json to_json(const CudaDeviceInfo& device, const GpuLinks& links, bool usable) {
  return {{"name", device.name},
          {"model", device.model},
          {"memory_bytes", device.memory_bytes},
          {"compute_capability", fmt::format("{}.{}", device.compute_major, device.compute_minor)},
          {"multiprocessors", device.multiprocessors},
          {"uuid", device.uuid},
          {"pci_bus_id", device.pci_bus_id},
          {"numa_node", device.numa_node},
          {"pcie_generation", links.pcie_generation},
          {"pcie_width", links.pcie_width},
          {"pcie_generation_max", links.pcie_generation_max},
          {"pcie_width_max", links.pcie_width_max},
          {"nvlinks", links.nvlinks},
          {"usable", usable}};
}

nlohmann::ordered_json to_json(const HostInfo& host, const GpuInfo& gpus) {
  nlohmann::ordered_json libraries = nlohmann::ordered_json::object();
  for (const BuildLibrary& library : kBuildLibraries) {
    libraries[library.name] =
        *library.version ? nlohmann::ordered_json(library.version) : nlohmann::ordered_json();
  }
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  devices.push_back({{"name", "cpu"}, {"cores", host.cores_usable}, {"usable", true}});
  for (size_t i = 0; i < gpus.cuda.devices.size(); ++i) {
    devices.push_back(
        to_json(gpus.cuda.devices[i], gpus.links.links[i], gpus.cuda.problem.empty()));
  }
  nlohmann::ordered_json codecs = nlohmann::ordered_json::object();
  for (const CodecPluginStatus& codec : query_codec_plugins()) {
    codecs[codec.library] = {
        {"format", codec.format}, {"version", codec.version}, {"problem", codec.problem}};
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
          {"cuda",
           {{"driver", gpus.links.driver},
            {"driver_cuda", cuda_version(gpus.cuda.driver_version)},
            {"problem", gpus.cuda.problem}}},
          {"codecs", codecs},
          {"libraries", libraries}};
}

void print_gpus(const GpuInfo& gpus) {
  for (size_t i = 0; i < gpus.cuda.devices.size(); ++i) {
    const CudaDeviceInfo& device = gpus.cuda.devices[i];
    fmt::print("           {}: {}, {:.1f} GiB, compute capability {}.{}", device.name, device.model,
               device.memory_bytes / kInfoGiB, device.compute_major, device.compute_minor);
    const std::string links = text_of(gpus.links.links[i]);
    if (!links.empty()) fmt::print(", {}", links);
    if (device.numa_node >= 0) fmt::print(", NUMA node {}", device.numa_node);
    fmt::print("\n");
  }
  if (!gpus.cuda.problem.empty()) {
    fmt::print("           {}: {}\n", gpus.cuda.devices.empty() ? "no GPU" : "GPUs are not usable",
               gpus.cuda.problem);
  }
  if (gpus.cuda.driver_version == 0) return;
  fmt::print("driver     {}{}CUDA {}\n", gpus.links.driver, gpus.links.driver.empty() ? "" : ", ",
             cuda_version(gpus.cuda.driver_version));
}

void print_info_text(const HostInfo& host, const GpuInfo& gpus) {
  fmt::print("stoker     {} ({}, {})\n", kBuildVersion, kBuildType, kBuildCompiler);
  fmt::print("cpu        {}\n", host.cpu.empty() ? "unknown" : host.cpu);
  fmt::print("features   {}\n", fmt::join(host.cpu_features, " "));
  fmt::print("cores      {} usable of {}\n", host.cores_usable, host.cores_machine);
  fmt::print("memory     {:.1f} GiB, {:.1f} GiB available", host.memory_bytes / kInfoGiB,
             host.memory_available_bytes / kInfoGiB);
  if (host.memory_limit_bytes > 0)
    fmt::print(", limit {:.1f} GiB", host.memory_limit_bytes / kInfoGiB);
  fmt::print("\ndevices    cpu:1 .. cpu:N (N replicas that share the cores)\n");
  print_gpus(gpus);
  for (const BuildLibrary& library : kBuildLibraries) {
    fmt::print("{:<10} {} {}\n", &library == kBuildLibraries ? "libraries" : "", library.name,
               *library.version ? library.version : "left out of this build");
  }
  for (const CodecPluginStatus& codec : query_codec_plugins()) {
    std::string text = codec.version + " (" + codec.format + ")";
    if (codec.version.empty()) text = "missing, so no " + codec.format + ": " + codec.problem;
    if (std::string_view(kBuildCodecs).find(codec.library) == std::string_view::npos) {
      text = "left out of this build, so no " + codec.format;
    }
    fmt::print("           {} {}\n", codec.library, text);
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
  const GpuInfo gpus = read_gpu_info();
  if (json) {
    fmt::print("{}\n", to_json(host, gpus).dump(2));
  } else {
    print_info_text(host, gpus);
  }
  return kExitOk;
}

}  // namespace stoker
