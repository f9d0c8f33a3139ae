#include "train/run/parameter_server.h"

namespace stoker {

ParameterServer::ParameterServer(std::unique_ptr<Engine> engine, Collective& gradients,
                                 int replicas)
    : engine_(std::move(engine)),
      gradients_(gradients),
      replicas_(replicas),
      weights_(static_cast<size_t>(total_count(parameter_table(engine_->net())))),
      statistics_(static_cast<size_t>(total_count(statistics_table(engine_->net())))) {}

void ParameterServer::step(int rank, Engine& replica, const UpdateArgs& args, float decay,
                           bool lookahead) {
  gradients_.all_reduce(rank, replica.gradient_buffers(), engine_->reduced_gradients());
  if (rank == 0) {
    engine_->expect_frozen(args.tensors);
    engine_->update(args);
    if (decay >= 0 && engine_->step_metrics().finite) engine_->blend_average(decay, lookahead);
    engine_->read(StateKind::parameters, weights_);
    engine_->read(StateKind::statistics, statistics_);
    traffic_.weights_received +=
        replicas_ * static_cast<int64_t>((weights_.size() + statistics_.size()) * sizeof(float));
  }
  gradients_.barrier(rank);
  replica.write(StateKind::parameters, weights_);
  replica.write(StateKind::statistics, statistics_);
}

void ParameterServer::refresh(Engine& replica, bool averaged) const {
  std::vector<float> values;
  const auto copy = [&](StateKind kind, size_t count) {
    values.resize(count);
    engine_->read(kind, values);
    replica.write(kind, values);
  };
  copy(StateKind::parameters, weights_.size());
  copy(StateKind::statistics, statistics_.size());
  if (!averaged) return;
  copy(StateKind::average, weights_.size());
  copy(StateKind::average_statistics, statistics_.size());
}

}  // namespace stoker
