// The parts of measure_run, a file each: each fills in its fields of RunMeasurements.
#pragma once

#include <vector>

#include "tools/profile/run_measurements.h"

namespace stoker {

// steps, rows_per_second, spread, split, and the model's times of a step. Reads `seconds`.
void measure_steps(const ProfiledRun& run, int rows, const std::vector<PhaseWindow>& windows,
                   RunMeasurements& result);
// The slowest files, who was busy, and the model's times of a row. Reads `seconds`.
void measure_rows(const ProfiledRun& run, const std::vector<PhaseWindow>& windows,
                  RunMeasurements& result);
// Who had the cores, and what came from a disk.
void measure_load(const std::vector<PhaseWindow>& windows, RunMeasurements& result);

}  // namespace stoker
