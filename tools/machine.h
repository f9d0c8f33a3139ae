// What figures were measured on and with, for the head of every result: the machine, its GPUs, how
// busy it was, the build and its commit. Starts no context on a device. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stoker {

// {date, cpu, cores_usable, cores_machine, memory_bytes, system, load_average, gpus: [{name, model,
// links}], version, commit, build, compiler, libraries: {name: version}}. load_average: over the
// last minute, what else ran included.
nlohmann::ordered_json describe_machine();

// "AMD EPYC, 2 of 2 cores; stoker 0.1.0 (1a2b3c4d5e6f); 2026-11-22 00:10:05 UTC; load 1.52"
std::string machine_line(const nlohmann::ordered_json& machine);

}  // namespace stoker
