#include "train/run/parameter_server.h"

#include <exception>
#include <initializer_list>
#include <vector>

#include "train/collective/process/process_group.h"

namespace stoker {
namespace {

class HostServer final : public ParameterServer {
 public:
  HostServer(std::unique_ptr<Engine> engine, const HostServerOptions& options)
      : ParameterServer(std::move(engine), options.replicas),
        group_(options.group),
        weights_(static_cast<size_t>(total_count(parameter_table(options.net)))),
        statistics_(static_cast<size_t>(total_count(statistics_table(options.net)))) {}

  StepMetrics metrics_of(int64_t) const override { return metrics_; }
  int metrics_lag() const override { return 0; }
  int64_t pulled_bytes() const override {
    return static_cast<int64_t>((weights_.size() + statistics_.size()) * sizeof(float));
  }
  std::string place() const override { return "in host memory"; }

  void refresh(std::span<Engine* const> replicas, bool averaged) const override {
    std::vector<float> values;
    const auto copy = [&](StateKind kind, size_t count) {
      values.resize(count);
      if (engine()) engine()->read(kind, values);
      share(std::as_writable_bytes(std::span(values)));
      for (Engine* const replica : replicas) replica->write(kind, values);
    };
    copy(StateKind::parameters, weights_.size());
    copy(StateKind::statistics, statistics_.size());
    if (!averaged) return;
    copy(StateKind::average, weights_.size());
    copy(StateKind::average_statistics, statistics_.size());
  }

 private:
  void update(const UpdateArgs& args, float decay, bool lookahead) override {
    if (engine()) {
      engine()->expect_frozen(args.tensors);
      engine()->update(args);
      metrics_ = engine()->step_metrics();
      if (decay >= 0 && metrics_.finite) engine()->blend_average(decay, lookahead);
      engine()->read(StateKind::parameters, weights_);
      engine()->read(StateKind::statistics, statistics_);
    }
    share(std::as_writable_bytes(std::span(&metrics_, 1)));
    share(std::as_writable_bytes(std::span(weights_)));
    share(std::as_writable_bytes(std::span(statistics_)));
  }

  void pull(Engine& replica) override {
    replica.write(StateKind::parameters, weights_);
    replica.write(StateKind::statistics, statistics_);
  }

  // Replaces the bytes by those of process 0.
  void share(std::span<std::byte> bytes) const {
    if (group_) broadcast(*group_, bytes);
  }

  ProcessGroup* const group_;
  // After the last update. An engine may measure a batch's moments from the running statistics.
  std::vector<float> weights_, statistics_;
  StepMetrics metrics_;
};

// A sum waits for the replicas' gradients, these wait for what the replicas pulled, and that waits
// for the last update: so an update never changes what is still being copied.
class DeviceServer final : public ParameterServer {
 public:
  DeviceServer(std::unique_ptr<Engine> engine, Device& device, std::span<Engine* const> replicas)
      : ParameterServer(std::move(engine), static_cast<int>(replicas.size())),
        place_("on " + device.name()),
        replicas_(replicas.begin(), replicas.end()),
        updated_(device.make_event()) {}

  ~DeviceServer() override {
    for (Engine* const replica : replicas_) {
      try {
        replica->stream()->synchronize();  // so that nothing copies from the server any more
      } catch (const std::exception&) {
        // The device has failed and has already reported it; there is nothing to wait for.
      }
    }
  }

  StepMetrics metrics_of(int64_t update) const override {
    return engine()->step_metrics_of(update);
  }
  int metrics_lag() const override { return engine()->metrics_lag(); }
  int64_t pulled_bytes() const override {
    return static_cast<int64_t>(engine()->device_state(StateKind::parameters).size_bytes() +
                                engine()->device_state(StateKind::statistics).size_bytes());
  }
  std::string place() const override { return place_; }

  // They have the weights and the statistics.
  void refresh(std::span<Engine* const> replicas, bool averaged) const override {
    if (!averaged) return;
    for (Engine* const replica : replicas) {
      copy(*replica, {StateKind::average, StateKind::average_statistics});
    }
  }

 private:
  // The metrics come late, so that a skipped update may be averaged once more. That does no harm:
  // the run ends before anything is saved.
  void update(const UpdateArgs& args, float decay, bool lookahead) override {
    engine()->expect_frozen(args.tensors);
    engine()->update(args);
    if (decay >= 0) engine()->blend_average(decay, lookahead);
    engine()->stream()->record(*updated_);
  }

  void pull(Engine& replica) override {
    copy(replica, {StateKind::parameters, StateKind::statistics});
  }

  void copy(Engine& replica, std::initializer_list<StateKind> kinds) const {
    replica.stream()->wait(*updated_);
    for (const StateKind kind : kinds) replica.copy_state(kind, engine()->device_state(kind));
  }

  const std::string place_;
  const std::vector<Engine*> replicas_;
  const std::unique_ptr<Event> updated_;  // on the server's stream
};

}  // namespace

ParameterServer::ParameterServer(std::unique_ptr<Engine> engine, int replicas)
    : engine_(std::move(engine)), replicas_(replicas), here_(replicas) {}

void ParameterServer::step(int rank, Engine& replica, const UpdateArgs& args, float decay,
                           bool lookahead) {
  if (rank == 0) {
    update(args, decay, lookahead);
    traffic_.weights_received += replicas_ * pulled_bytes();
  }
  here_.wait();
  pull(replica);
}

std::unique_ptr<ParameterServer> make_host_server(std::unique_ptr<Engine> engine,
                                                  const HostServerOptions& options) {
  return std::make_unique<HostServer>(std::move(engine), options);
}

std::unique_ptr<ParameterServer> make_device_server(std::unique_ptr<Engine> engine, Device& device,
                                                    std::span<Engine* const> replicas) {
  return std::make_unique<DeviceServer>(std::move(engine), device, replicas);
}

}  // namespace stoker
