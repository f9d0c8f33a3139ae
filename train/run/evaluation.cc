#include "train/run/evaluation.h"

#include <algorithm>

#include "staging/error_text.h"
#include "staging/threads.h"

namespace stoker {
namespace {

// Every model has a feed of its own, because each needs all samples.
std::vector<EvalResult> evaluate_own(const TrainSetup& setup, const EvalOptions& options) {
  const std::vector<Engine*> engines = setup.replicas.engines();
  const std::vector<Device*> devices = setup.replicas.devices();
  std::vector<EvalResult> own(static_cast<size_t>(setup.shape.local_models));
  const size_t count = engines.size() / own.size();
  FirstError error;
  run_threads("evaluating", std::ssize(own), [&](int64_t i) {
    try {
      EvalOptions each = options;
      const bool other_reads_them = i > 0 || !(setup.processes.is_rank0() || options.processes);
      if (other_reads_them) each.quarantine_file.clear();
      const size_t first = static_cast<size_t>(i) * count;
      own[i] = evaluate(*setup.eval, std::span(engines).subspan(first, count),
                        std::span(devices).subspan(first, count), setup.shape.rows, each);
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
  if (const ParameterServer* server = setup.replicas.server()) {
    server->refresh(setup.replicas.engines(), options.averaged);
  }
  const std::vector<EvalResult> own = evaluate_own(setup, options);
  // A process says nothing of its cache to the others.
  const std::vector<EvalFigures> figures =
      setup.of_all_models(std::vector<EvalFigures>(own.begin(), own.end()));
  const bool complete = std::ranges::all_of(figures, &EvalFigures::complete);
  std::vector<EvalResult> all;
  for (size_t i = 0; i < figures.size(); ++i) {
    all.push_back({figures[i], own[i % own.size()].cache});
    all.back().complete = complete;
  }
  return all;
}

}  // namespace stoker
