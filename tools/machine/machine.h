// The conditions of a measurement, for the head of every result: the machine, its GPUs, how busy it
// was, the build and its commit. Creates no context on a device. Any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/machine/load.h"

namespace stoker {

// {date, cpu, cores_usable, cores_machine, memory_bytes, system, gpus: [{name, model, links}],
// version, commit, build, compiler, libraries: {name: version}}.
nlohmann::ordered_json describe_machine();

// A machine is quiet if everything but this process took at most this share of the time of the
// cores that it may use: other processes, interrupts, and what the hypervisor took for other
// machines. bench/report/measured_on.py has the same definition. What neighbours do to shared
// caches and to memory bandwidth is not visible here.
inline constexpr double kQuietShare = 0.02;

// Returns {share, quiet, limit} of the time between two readings (`change` is their difference), or
// {} if the kernel does not report it.
nlohmann::ordered_json describe_neighbours(const MachineLoad& change, int cores);

// Returns "AMD EPYC, 2 of 2 cores; stoker 0.1.0 (1a2b3c4d5e6f); 2026-11-22 00:10:05 UTC; quiet:
// others took 0.4% of the cores' time". The last part is there if `machine` has "neighbours".
std::string machine_line(const nlohmann::ordered_json& machine);

}  // namespace stoker
