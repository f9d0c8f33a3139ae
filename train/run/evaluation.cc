#include "train/run/evaluation.h"

#include <algorithm>

#include "staging/error_text.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// Every replica has a feed of its own, because each needs all samples.
std::vector<EvalResult> evaluate_each(const TrainSetup& setup, const EvalOptions& options) {
  std::vector<EvalResult> own(setup.replicas.size());
  FirstError error;
  run_threads("evaluating", std::ssize(own), [&](int64_t i) {
    try {
      EvalOptions each = options;
      // All replicas read the same samples.
      if (i > 0 || !setup.processes.is_rank0()) each.quarantine_file.clear();
      const Replica& replica = setup.replicas[i];
      Engine* const engine = replica.engine.get();
      Device* const device = replica.device.get();
      own[i] = evaluate(*setup.eval, {&engine, 1}, {&device, 1}, setup.shape.rows, each);
    } catch (...) {
      error.keep_current();
    }
  });
  error.rethrow();
  return own;
}

}  // namespace

std::vector<EvalResult> evaluate_models(TrainSetup& setup, int views, const std::atomic<bool>& stop,
                                        const std::string& quarantine_file) {
  EvalOptions options = setup.eval_options(views);
  options.stop = &stop;
  options.quarantine_file = quarantine_file;
  if (setup.independent()) {
    const std::vector<EvalResult> own = evaluate_each(setup, options);
    std::vector<EvalResult> all = setup.processes.all_gather(std::span(own));
    const bool complete = std::ranges::all_of(all, &EvalResult::complete);
    for (EvalResult& each : all) each.complete = complete;
    return all;
  }
  if (const ParameterServer* server = setup.replicas.server()) {
    server->refresh(setup.replicas.engines(), options.averaged);
  }
  return {evaluate(*setup.eval, setup.replicas.engines(), setup.replicas.devices(),
                   setup.shape.rows, options)};
}

}  // namespace stoker
