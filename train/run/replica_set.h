// The replicas of a run in this process: their devices, their engines, and the collective that sums
// their gradients. Owner: TrainSetup. Movable. Threads: one thread constructs; afterwards each
// replica belongs to its own thread. Throws InvalidField if the devices do not allow the chosen
// reduction, and what the engines throw.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/collective/collective.h"
#include "train/collective/device_norm_exchange.h"
#include "train/collective/norm_exchange.h"
#include "train/run/batch_shape.h"
#include "train/run/parameter_server.h"
#include "train/run/processes.h"
#include "train/run/replica.h"

namespace stoker {

class ReplicaSet {
 public:
  ReplicaSet() = default;
  // `make_engine` may be empty. `processes` must outlive the set.
  ReplicaSet(const TrainOptions& options, const NetSpec& net, const ReplicaShape& shape,
             const TrainProcesses& processes, const EngineFactory& make_engine);

  const Replica& operator[](size_t rank) const { return replicas_[rank]; }
  size_t size() const { return replicas_.size(); }
  auto begin() const { return replicas_.begin(); }
  auto end() const { return replicas_.end(); }
  std::vector<Engine*> engines() const;
  std::vector<Device*> devices() const;

  // Over the replicas of all processes. Its sums go to the reduced gradients of updated_by().
  Collective& collective() const { return *collective_; }
  // The server of the weights, or the way to it; null: every replica has its own and updates them.
  ParameterServer* server() const { return server_.get(); }
  bool has_server() const { return server_ && server_->engine(); }  // in this process
  // The engine that a replica's gradients update: the server's, or its own.
  Engine& updated_by(size_t rank) const {
    return has_server() ? *server_->engine() : *replicas_[rank].engine;
  }
  // The engine whose state is that of the first model here: it is saved, and has its metrics.
  // (Where the server is in another process, the first replica has pulled what of it counts.)
  Engine& owner() const { return updated_by(0); }
  // The same for every model of this process: that of each replica, if they are independent.
  std::vector<Engine*> owners() const;
  // The metrics of an update of a model of this process, as Engine has them. Only for the thread of
  // the replica with the model's number, before its next pass.
  StepMetrics metrics_of(size_t model, int64_t update) const {
    return server_ ? server_->metrics_of(update) : updated_by(model).step_metrics_of(update);
  }
  int metrics_lag() const { return server_ ? server_->metrics_lag() : owner().metrics_lag(); }
  // Makes all sums, synchronised batch norms and steps of the server fail, now or later, because of
  // the `reason`; from any thread.
  void abort(const std::string& reason) const noexcept;
  // The bytes of this process's replicas together, since the start. Only for replica 0's thread.
  Traffic traffic() const;
  // Bytes that a replica sends and receives in a step: the mean over all replicas of the run.
  Traffic planned_traffic() const { return planned_traffic_; }
  // Returns whether batch norms are synchronised between several devices.
  bool norms_through_host() const { return device_norms_ && device_norms_->through_host(); }
  // Returns whether the engines start the collective's sums themselves, in forward_backward().
  bool in_buckets() const { return in_buckets_; }

 private:
  void reduce_in_buckets(int64_t bucket_bytes);
  void make_server(const TrainOptions& options, const NetSpec& net, const EngineOptions& replica,
                   const TrainProcesses& processes, const EngineFactory& make_engine);
  void plan_traffic(const TrainOptions& options, int all_replicas);

  // Engines use the one or the other; null: every replica has batch norms of its own.
  std::unique_ptr<NormExchange> norms_;
  std::vector<Replica> replicas_;
  std::unique_ptr<DeviceNormExchange> device_norms_;  // after the replicas: it goes before them
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<Collective> collective_;  // after the server: its sums go there
  bool in_buckets_ = false;
  size_t models_ = 1;  // of this process
  Traffic planned_traffic_;
};

}  // namespace stoker
