// The parts of measure_run(), one file each. Each fills in its own fields of RunMeasurements.
#pragma once

#include <vector>

#include "tools/profile/run_measurements.h"

namespace stoker {

// Fills in steps, samples_per_second, spread, split, and the model's times of a step. Reads
// `seconds`.
void measure_steps(const ProfiledRun& run, int rows, const std::vector<PhaseWindow>& windows,
                   RunMeasurements& result);
// Fills in the slowest files, who was busy, and the model's times of a row. Reads `seconds`.
void measure_rows(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                  RunMeasurements& result);
// Fills in who used the cores, and what came from a disk.
void measure_load(const std::vector<PhaseWindow>& windows, RunMeasurements& result);

}  // namespace stoker
