// Evaluates the models that a run trains: each by itself on all samples, on the devices of all
// replicas that train it. Every process calls these functions. Threads: one, while no step runs.
// Errors: what evaluate() throws.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "train/run/setup.h"

namespace stoker {

// Returns the result of every model of the run, in every process. A process that `stop` interrupts
// makes all results incomplete. Bad samples are listed in `quarantine_file` ("": nowhere), those
// of independent replicas once. REQUIRES: setup.eval.
std::vector<EvalResult> evaluate_models(TrainSetup& setup, int views, const std::atomic<bool>& stop,
                                        const std::string& quarantine_file);

}  // namespace stoker
