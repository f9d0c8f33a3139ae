#include "train/run/parameter_server.h"

#include "train/collective/process/process_group.h"

namespace stoker {

ParameterServer::ParameterServer(std::unique_ptr<Engine> engine, Collective& gradients,
                                 const ServerOptions& options)
    : engine_(std::move(engine)),
      gradients_(gradients),
      options_(options),
      here_(make_host_collective(options.replicas)),
      weights_(static_cast<size_t>(total_count(parameter_table(options.net)))),
      statistics_(static_cast<size_t>(total_count(statistics_table(options.net)))) {}

void ParameterServer::step(int rank, Engine& replica, const UpdateArgs& args, float decay,
                           bool lookahead) {
  gradients_.all_reduce(rank, replica.gradient_buffers(),
                        engine_ ? engine_->reduced_gradients() : replica.reduced_gradients());
  if (rank == 0) {
    if (engine_) update(args, decay, lookahead);
    share(std::as_writable_bytes(std::span(&metrics_, 1)));
    share(std::as_writable_bytes(std::span(weights_)));
    share(std::as_writable_bytes(std::span(statistics_)));
    traffic_.weights_received +=
        options_.replicas *
        static_cast<int64_t>((weights_.size() + statistics_.size()) * sizeof(float));
  }
  here_->barrier(rank);
  replica.write(StateKind::parameters, weights_);
  replica.write(StateKind::statistics, statistics_);
}

void ParameterServer::update(const UpdateArgs& args, float decay, bool lookahead) {
  engine_->expect_frozen(args.tensors);
  engine_->update(args);
  metrics_ = engine_->step_metrics();
  if (decay >= 0 && metrics_.finite) engine_->blend_average(decay, lookahead);
  engine_->read(StateKind::parameters, weights_);
  engine_->read(StateKind::statistics, statistics_);
}

void ParameterServer::share(std::span<std::byte> bytes) const {
  if (options_.group) broadcast(*options_.group, bytes);
}

void ParameterServer::refresh(std::span<Engine* const> replicas, bool averaged) const {
  std::vector<float> values;
  const auto copy = [&](StateKind kind, size_t count) {
    values.resize(count);
    if (engine_) engine_->read(kind, values);
    share(std::as_writable_bytes(std::span(values)));
    for (Engine* const replica : replicas) replica->write(kind, values);
  };
  copy(StateKind::parameters, weights_.size());
  copy(StateKind::statistics, statistics_.size());
  if (!averaged) return;
  copy(StateKind::average, weights_.size());
  copy(StateKind::average_statistics, statistics_.size());
}

void ParameterServer::abort() noexcept { here_->abort(); }

}  // namespace stoker
