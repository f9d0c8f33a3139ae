// A parameter server: the weights, the optimiser's state and the running statistics of a run lie
// with the server, in the host memory of process 0. In a step replicas push their gradients, the
// server sums them in the order of ranks and applies the update, and replicas pull the new weights
// and statistics; a replica's own momenta are not used. The server is a thread of process 0 and an
// engine like the replicas', so that with fp32 gradients the weights have the bits of an
// all-reduce. Every process has an object of this class; in the others it is the way to the server.
//
// Owner: ReplicaSet. Threads: step() is called by every replica's thread, abort() by any; the other
// functions by one, while no step runs. Processes make the same calls in the same order. Errors:
// those of the engine, the collective and the processes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "train/collective/collective.h"
#include "train/engine/engine.h"

namespace stoker {

struct ServerOptions {
  NetSpec net;
  int replicas = 1;               // of this process
  ProcessGroup* group = nullptr;  // null: a single process; must outlive the server
};

class ParameterServer {
 public:
  // `engine` has the weights and never a batch; null in all processes but the first. `gradients`
  // sums them in one place, of all replicas, and must outlive the server.
  ParameterServer(std::unique_ptr<Engine> engine, Collective& gradients,
                  const ServerOptions& options);

  Engine* engine() { return engine_.get(); }  // null where the server is not
  // Pushes a replica's gradients; the first one's thread then updates the weights as `args` say and
  // averages them if `decay` >= 0; then pulls the weights.
  void step(int rank, Engine& replica, const UpdateArgs& args, float decay, bool lookahead);
  // Of the last update, in every process.
  const StepMetrics& metrics() const { return metrics_; }
  // Copies to this process's replicas what they need to evaluate.
  void refresh(std::span<Engine* const> replicas, bool averaged) const;
  void abort() noexcept;  // makes waiting replicas fail, now or later
  // Of the weights that this process's replicas pulled. Only for the thread of replica 0.
  const Traffic& traffic() const { return traffic_; }

 private:
  void update(const UpdateArgs& args, float decay, bool lookahead);
  void share(std::span<std::byte> bytes) const;  // replaces them by those of process 0

  const std::unique_ptr<Engine> engine_;
  Collective& gradients_;
  const ServerOptions options_;
  const std::unique_ptr<Collective> here_;  // the barrier of this process's replicas
  // After the last update. An engine may measure a batch's moments from the running statistics.
  std::vector<float> weights_, statistics_;
  StepMetrics metrics_;
  Traffic traffic_;
};

}  // namespace stoker
