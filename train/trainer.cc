#include "train/trainer.h"

#include <atomic>
#include <stdexcept>

#include "pipeline/measure_hooks.h"
#include "train/run/loop.h"
#include "train/run/setup.h"

namespace stoker {
namespace {

// Returns the function for MeasureHooks::save_to.
std::function<void(const std::string&)> saver(const TrainSetup& setup) {
  return [&setup](const std::string& runs) {
    int replica = 0;
    for (const Engine* engine : setup.replicas.owners()) {
      save_checkpoint(checkpoint_folder(runs, replica++), setup.progress,
                      read_state(*engine, setup.options.recipe), 1);
    }
  };
}

}  // namespace

struct Trainer::Impl {
  Impl(const Source& train, const Source* eval, const TrainOptions& options,
       TrainObserver& observer_in, const EngineFactory& make_engine)
      : observer(observer_in), setup(train, eval, options, make_engine) {}

  TrainObserver& observer;
  TrainSetup setup;
  std::atomic<bool> stop{false};
  bool ran = false;
};

static_assert(std::atomic<bool>::is_always_lock_free, "request_stop() must be signal-safe");

Trainer::Trainer(const Source& train, const Source* eval, const TrainOptions& options,
                 TrainObserver& observer, EngineFactory make_engine) try
    : impl_(std::make_unique<Impl>(train, eval, options, observer, make_engine)) {
  if (options.measure) options.measure->save_to = saver(impl_->setup);
} catch (const std::exception& error) {
  if (options.processes) options.processes->abort(error.what());  // or they would wait
  throw;
}

Trainer::~Trainer() = default;

TrainResult Trainer::run() {
  if (impl_->ran) throw std::logic_error("Trainer::run() was called twice");
  impl_->ran = true;
  const bool first = impl_->setup.processes.is_rank0();
  if (first) impl_->observer.on_plan(impl_->setup.plan);
  const std::vector<RunModel>& models = impl_->setup.models;
  if (first && !models.front().checkpoint.empty()) {
    impl_->observer.on_message("resumed from " + models.front().checkpoint +
                               (models.size() > 1 ? " and those of the other replicas" : "") +
                               " after " + std::to_string(impl_->setup.progress.step) + " steps");
  }
  const std::unique_ptr<RunLock> lock = std::move(impl_->setup.lock);  // until the loop ends
  TrainResult result = TrainLoop(impl_->setup, impl_->observer, impl_->stop).run();
  result.expected_bytes = impl_->setup.expected_host_bytes;
  return result;
}

void Trainer::request_stop() noexcept { impl_->stop.store(true); }

const RunPlan& Trainer::plan() const { return impl_->setup.plan; }

int64_t Trainer::planned_bytes() const { return impl_->setup.planned_bytes; }

int64_t Trainer::global_batch() const { return impl_->setup.options.recipe.batch; }

int64_t Trainer::steps_per_epoch() const { return impl_->setup.steps_per_epoch; }

LoaderStats Trainer::feed_stats() const { return impl_->setup.loader->stats(); }

uint64_t Trainer::weights_hash() const {
  const TrainSetup& setup = impl_->setup;
  return state_hash(read_state(setup.replicas.owner(), setup.options.recipe));
}

}  // namespace stoker
